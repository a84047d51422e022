"""Times that questions name, in six languages, and what they do to the order of facts."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holomem import Memory, NewFact, times

NOW = datetime(2026, 12, 2, 15, 30, tzinfo=UTC)  # a Wednesday


def said(question, now=NOW):
    """(first day, day after the last) of the first period; None where there is none."""
    periods = times.named(question, now).periods
    days = [str(datetime.fromtimestamp(t, now.tzinfo))[:10] for p in periods[:1] for t in (p.start, p.end)]
    return tuple(days) or None


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("what happened on 2023-05-08?", "2023-05-08", "2023-05-09"),
        ("was geschah am 8.5.2023?", "2023-05-08", "2023-05-09"),
        ("the backup of 2024-02", "2024-02-01", "2024-03-01"),
        ("Who had dinner with Maria on May 3, 2023?", "2023-05-03", "2023-05-04"),
        ("the 3rd of May 2023", "2023-05-03", "2023-05-04"),
        ("in mid-August 2023", "2023-08-01", "2023-09-01"),
        ("What did John attend in December 2023?", "2023-12-01", "2024-01-01"),
        ("что было 9 мая 2024 года", "2024-05-09", "2024-05-10"),
        ("что решили в мае 2023", "2023-05-01", "2023-06-01"),
        ("im März 2024", "2024-03-01", "2024-04-01"),
        ("el 3 de mayo de 2023", "2023-05-03", "2023-05-04"),
        ("le 3 août 2023", "2023-08-03", "2023-08-04"),
        ("2023年5月8日", "2023-05-08", "2023-05-09"),
        ("2023年5月", "2023-05-01", "2023-06-01"),
        ("in May", "2026-05-01", "2026-06-01"),
        ("5月8日", "2026-05-08", "2026-05-09"),
        ("what was bought in 2022", "2022-01-01", "2023-01-01"),
        ("2022年", "2022-01-01", "2023-01-01"),
        ("what did I do yesterday", "2026-12-01", "2026-12-02"),
        ("что я делал вчера", "2026-12-01", "2026-12-02"),
        ("vorgestern", "2026-11-30", "2026-12-01"),
        ("last week", "2026-11-23", "2026-11-30"),
        ("на прошлой неделе", "2026-11-23", "2026-11-30"),
        ("letzte Woche", "2026-11-23", "2026-11-30"),
        ("la semana pasada", "2026-11-23", "2026-11-30"),
        ("la semaine dernière", "2026-11-23", "2026-11-30"),
        ("上周", "2026-11-23", "2026-11-30"),
        ("last weekend", "2026-11-28", "2026-11-30"),
        ("last month", "2026-11-01", "2026-12-01"),
        ("в этом месяце", "2026-12-01", "2027-01-01"),
        ("去年", "2025-01-01", "2026-01-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("3 weeks ago", "2026-11-09", "2026-11-16"),
        ("два дня назад", "2026-11-30", "2026-12-01"),
        ("vor 3 Tagen", "2026-11-29", "2026-11-30"),
        ("hace dos años y hace 2 años", "2024-01-01", "2025-01-01"),
        ("il y a 2 mois", "2026-10-01", "2026-11-01"),
        ("三天前", "2026-11-29", "2026-11-30"),
        ("on Friday", "2026-11-27", "2026-11-28"),
        ("в среду", "2026-11-25", "2026-11-26"),
    ],
)
def test_what_a_question_says_of_time(question, start, end):
    assert said(question) == (start, end)


@pytest.mark.parametrize(
    "question",
    ["may I ask", "KB-2023", "10.20.0.53", "v2.3.1", "at 10:15", "port 51820", "Mai Nguyen", "2023-02-31", "year 3024", "", "!?"],
)  # fmt: skip
def test_what_names_no_time(question):
    assert times.named(question, NOW) == times.Named()


@pytest.mark.parametrize(
    "question",
    [
        "which port now?",
        "какая сейчас версия",
        "wer ist aktuell zuständig",
        "a qué hora es ahora",
        "qui est maintenant responsable",
        "现在的版本",
    ],
)
def test_what_asks_for_the_present(question):
    assert times.named(question, NOW).present


def test_a_time_that_is_named_is_not_the_present():
    assert not times.named("the latest release of July 2023", NOW).present


def test_days_are_those_of_the_callers_zone():
    late = datetime(2026, 12, 2, 23, 30, tzinfo=timezone(timedelta(hours=9)))
    assert said("yesterday", late) == ("2026-12-01", "2026-12-02")


def test_a_month_without_a_year_is_that_of_any():
    periods = times.named("in May", NOW).periods
    assert len(periods) == times.YEARS
    assert len(set(periods)) == times.YEARS


@given(st.text(max_size=80), st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1)))
def test_any_text_at_any_time_is_read(question, now):
    for period in times.named(question, now.replace(tzinfo=UTC)).periods:
        assert period.start < period.end


@given(st.from_regex(r"[0-9]{1,4}[-./ ][0-9]{1,3}[-./ ][0-9]{1,4}(年|月| days ago| may 2023)?", fullmatch=True))
def test_any_number_is_read(question):
    times.named(question, NOW)


def test_a_period_prefers_what_was_said_then_or_a_little_later():
    (day,) = times.named("2023-05-08", NOW).periods
    hour = 3600.0
    created = np.array([day.start - hour, day.start, day.end + 24 * hour, day.end + 30 * 24 * hour, np.nan])
    before, within, after, later, never = times.preference(created, [day])
    assert within == 1 + times.PREFERENCE
    assert before == later == never == 1
    assert 1 < after < within


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.data())
def test_only_newer_facts_overtake_and_only_the_best(scores, data):
    score = np.array(scores)
    sized = {"min_size": len(scores), "max_size": len(scores)}
    created = np.array(data.draw(st.lists(st.integers(0, 3), **sized)), float)
    cosines = np.array(data.draw(st.lists(st.floats(-1, 1), **sized)))
    factors = times.newest(score, created, cosines)
    lifted, best = score * factors, int(score.argmax())
    over = lifted > score[best]
    assert (created[over] > created[best]).all()
    assert (cosines[over] >= times.CLOSE).all()
    assert (factors[~over] == 1).all()


DAY = datetime(2023, 5, 8, 14, tzinfo=UTC)


def test_the_time_of_a_fact_is_when_it_was_said(path):
    with Memory(path, embedder=None) as memory:
        fact = memory.get(memory.add("Caroline went to a support group", time=DAY))
        assert (fact.created_at, fact.updated_at) == (DAY, DAY)
        eastern = DAY.astimezone(timezone(timedelta(hours=-5)))
        assert memory.get(memory.add("Melanie painted a sunrise", time=eastern)).created_at == DAY
        with pytest.raises(TypeError, match="time"):
            memory.add("said at no time", time="2023-05-08")
        assert len(memory) == 2


def test_a_fact_of_the_time_that_is_asked_for_comes_first(path):
    with Memory(path, embedder=None) as memory:
        for day in range(1, 29):
            memory.add(f"Caroline told of group {day} at dinner", time=datetime(2023, 5, day, 19, tzinfo=UTC))
        plain = memory.search("which group did Caroline tell of at dinner")
        asked = memory.search("which group did Caroline tell of at dinner on 17 May 2023")
        assert asked[0].fact.created_at.day == 17
        assert asked[0].timely == pytest.approx(1 + times.PREFERENCE)
        assert {hit.timely for hit in plain} == {1.0}
        for hit in asked:
            assert hit.score == pytest.approx(hit.relevance * hit.fact.trust_score * hit.decay * hit.timely)


def test_where_all_facts_are_of_one_time_nothing_changes(path):
    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"Caroline told of group {n} at dinner", time=DAY) for n in range(9)])
        plain = memory.search("what group did Caroline tell of")
        asked = memory.search("what group did Caroline tell of in May 2023")
        assert [hit.fact.fact_id for hit in plain] == [hit.fact.fact_id for hit in asked]


def test_asked_for_now_the_newer_of_two_close_facts_leads(path, embedder):
    with Memory(path, embedder=embedder) as memory:
        old = memory.add("the home network listens on port 51820 of WireGuard", time=datetime(2025, 10, 10))
        new = memory.add(
            "the home network listens on the port 51999 of WireGuard since June", time=datetime(2026, 6, 2)
        )
        question = "on which port of WireGuard the home network listens"
        assert [hit.fact.fact_id for hit in memory.search(question, min_score=0)] == [old, new]
        assert [hit.fact.fact_id for hit in memory.search(f"{question} now", min_score=0)] == [new, old]
