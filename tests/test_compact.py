import base64
import copy
import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from holomem.embedding.charsmap import charsmap
from holomem.embedding.compact import META, CompactTokenizer, Unsupported
from holomem.embedding.compact_build import _compare, build, build_apart
from holomem.embedding.compact_file import FORMAT, PAGE, found, trie
from holomem.embedding.compact_texts import texts
from holomem.embedding.hashes import file_hash
from holomem.errors import ModelError

RULES = {
    **dict.fromkeys("\t\n\r\xa0\u3000\u200b", " "),
    **{
        "\x01": "",
        "\ufeff": "",
        "\xad": "",
        "\ufb01": "fi",
        "\xb2": "2",
        "\u2122": "tm",
        "\u2026": "...",
        "\uff76": "\u30ab",
        "\u0958": "\u0915\u093c",
    },
    **{
        "e\u0301": "é",
        "и\u0306": "й",
        "\u0344": "\u0308\u0301",
        "\uff1c": "<",
        "\uff1e": ">",
        "\uff53": "s",
        "\xb4": " \u0301",
    },
}
WORDS = ["the", "hello", "ab", "bc", "abc", "fi", "привет", "при", "вет", "中国", "कि", "é", "е\u0308", "<s>x", "é" * 9]
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
PRECOMPILED = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(RULES)).decode()}
SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
METASPACE = {"type": "Metaspace", "replacement": META, "add_prefix_space": True}


def vocabulary():
    """Markers, letters and words; few different scores, so that many ways through a word are equally good."""
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    letters = sorted(
        {char for word in WORDS for char in word} | set("abcdefghijklmnoqrstuvwxyz0123456789.,'-\u0301\u30ab")
    )
    pieces = [META, *letters, *WORDS, *(META + word for word in WORDS), META + "a", META * 2]
    pieces = list(dict.fromkeys(pieces))
    scored = [[piece, -1.5 * (place % 4) - 2] for place, piece in enumerate(pieces)]
    return [*([name, 0.0] for name in names), *scored, ["<mask>", 0.0]]


def tokenizer():
    """A small tokenizer of the kind of XLM-R's."""
    vocab = vocabulary()
    place = {piece: number for number, (piece, _) in enumerate(vocab)}
    marker = [{"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>")]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": place[name], "content": name, **FLAGS} for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
        ],
        "normalizer": {"type": "Sequence", "normalizers": [PRECOMPILED, SPACES]},
        "pre_tokenizer": METASPACE,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [marker[0], {"Sequence": {"id": "A", "type_id": 0}}, marker[1]],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {name: {"id": name, "ids": [place[name]], "tokens": [name]} for name in ("<s>", "</s>")},
        },
        "decoder": METASPACE,
        "model": {"type": "Unigram", "unk_id": 3, "vocab": vocab},
    }


def saved(folder, value):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def library(path):
    """What the plain library gives."""
    opened = Tokenizer.from_file(str(path))
    opened.no_padding()
    opened.no_truncation()
    return lambda text: opened.encode(text).ids


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small tokenizer: its file, its compact file."""
    folder = tmp_path_factory.mktemp("compact")
    path = saved(folder, tokenizer())
    build(path, folder / "small.tok")
    return path, folder / "small.tok"


@pytest.fixture(scope="session")
def e5(tmp_path_factory):
    """The tokenizer of multilingual-e5-small and its compact file, made once for all workers of a run."""
    shared = Path(os.environ.get("HOLOMEM_SHARED", Path(__file__).parents[2] / "shared"))
    path = shared / "models" / "multilingual-e5-small" / "tokenizer.json"
    if not path.is_file():
        pytest.skip("the shared material is not here")
    common = tmp_path_factory.getbasetemp()
    common = common.parent if "PYTEST_XDIST_WORKER" in os.environ else common
    destination = common / "e5.tok"
    with FileLock(f"{destination}.lock"):
        if not destination.exists():
            build_apart(path, destination)
    return path, destination


@cache
def both(path, compact):
    return library(path), CompactTokenizer.open(compact)


def unequal(path, compact, sample):
    """The texts whose ids differ, and how many have none."""
    expected, opened = both(path, compact)
    differ, without = [], 0
    for text in sample:
        ids = opened.encode(text)
        if ids is None:
            without += 1
        elif ids != expected(text):
            differ.append(text)
    return differ, without


# ---------------------------------------------------------------- the same ids


def test_the_ids_of_a_small_vocabulary_are_those_of_the_library(small):
    words = [piece.replace(META, " ") for piece, _ in vocabulary()]
    differ, without = unequal(*small, texts(words, 2000, seed=11))
    assert not differ
    assert without < 10


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text(st.sampled_from("ab cé\u0301\u0306и\u0344\xb2\ufb01\u2581\u200d\r\n\u0600\u0e33\u093f<s>")))
def test_any_text_has_the_library_s_ids_or_none(small, text, odd):
    differ, _ = unequal(*small, [text, odd, text + odd])
    assert not differ


def changed(**parts):
    return {**tokenizer(), **parts}


SPLIT = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, METASPACE]}
STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}


@pytest.mark.parametrize(
    "value",
    [
        changed(normalizer=PRECOMPILED, pre_tokenizer=SPLIT, truncation=None),
        changed(normalizer={"type": "Sequence", "normalizers": [PRECOMPILED, STRIP, {**SPACES, "content": META}]}),
        changed(normalizer=None, post_processor=None),
        changed(pre_tokenizer={"type": "Metaspace", "replacement": META, "prepend_scheme": "always", "split": True}),
    ],
    ids=["whitespace", "strip", "bare", "newer"],
)
def test_other_settings_of_such_tokenizers_give_the_library_s_ids_too(tmp_path, value):
    path = saved(tmp_path, value)
    build(path, tmp_path / "compact.tok")
    words = [piece.replace(META, " ") for piece, _ in vocabulary()]
    differ, _ = unequal(path, tmp_path / "compact.tok", texts(words, 500, seed=12))
    assert not differ


def test_texts_of_an_added_token_that_takes_spaces_along_have_no_ids(tmp_path):
    value = tokenizer()
    value["added_tokens"][4]["lstrip"] = True
    build(saved(tmp_path, value), tmp_path / "compact.tok")
    opened = CompactTokenizer.open(tmp_path / "compact.tok")
    assert opened.encode("hello <mask>") is None
    assert opened.encode("hello <s>") is not None


def test_texts_that_the_library_may_read_otherwise_have_no_ids(small):
    opened = CompactTokenizer.open(small[1])
    assert opened.encode("\ud800") is None  # the library takes no lone surrogate
    assert opened.encode("\u200d\xb2\u0301") is None  # is it an emoji's joiner?
    assert opened.encode("\u094d\u0958\u0301") is None  # is it a letter of a conjunct?
    assert opened.encode("\u094d\ufb01\u0301") is not None


def test_a_text_without_words_has_its_markers_only(small):
    opened = CompactTokenizer.open(small[1])
    assert opened.encode("") == [0, 2] == opened.encode("\ufeff\xad")
    assert (opened.before, opened.after) == (1, 1)


def test_threads_share_one_tokenizer(small):
    path, compact = small
    opened, expected = CompactTokenizer.open(compact), library(path)
    sample = list(texts(WORDS, 600, seed=13))
    ids = {}

    def work(part):
        for number in range(part, len(sample), 2):
            ids[number] = opened.encode(sample[number])

    threads = [threading.Thread(target=work, args=(part % 2,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == len(sample)
    assert all(found is None or found == expected(sample[number]) for number, found in ids.items())


# ---------------------------------------------------------------- the vocabulary of XLM-R


@pytest.mark.model
def test_e5_has_the_golden_ids(e5):
    golden = json.loads((e5[0].parent / "golden_ids.json").read_text(encoding="utf-8"))
    opened = CompactTokenizer.open(e5[1])
    assert golden["texts"]
    assert [opened.encode(f"query: {text}") for text in golden["texts"]] == golden["query_ids"]
    assert opened.source_sha256 == file_hash(e5[0])


@pytest.mark.model
def test_e5_has_the_library_s_ids_for_texts_of_life_and_odd_ones(e5, shared):
    files = sorted(shared.glob("eval/*/*/*.jsonl"))
    lines = [line for path in files for line in path.read_text(encoding="utf-8").strip().split("\n")[::20]]
    life = [value for line in lines for value in json.loads(line).values() if isinstance(value, str)]
    assert len(life) > 3000
    assert unequal(*e5, life) == ([], 0)
    words = [piece.replace(META, " ") for piece in sorted(Tokenizer.from_file(str(e5[0])).get_vocab())]
    differ, without = unequal(*e5, texts(words, 2000, seed=14))
    assert not differ
    assert without < 10


@pytest.mark.model
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_e5_stays_in_twelve_megabytes_of_file_pages(e5):
    code = """
import json, sys
from pathlib import Path
from holomem.embedding.compact import CompactTokenizer
from holomem.embedding.compact_texts import texts
def kilobytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "RssAnon"))}
sample = list(texts(["hello ", "привет ", "中国"], 100))
before = kilobytes()
opened = CompactTokenizer.open(Path(sys.argv[1]))
for text in sample:
    opened.encode(text)
after = kilobytes()
print(json.dumps([(after[name] - before[name]) / 1024 for name in ("VmRSS", "RssAnon")] + ["tokenizers" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code, e5[1]], capture_output=True, text=True, check=True)
    whole, anonymous, loaded = json.loads(done.stdout)
    assert whole < 12
    assert anonymous < 2
    assert not loaded


# ---------------------------------------------------------------- what is refused


def test_a_damaged_file_is_refused_wherever_the_damage_is(small, tmp_path):
    content = small[1].read_bytes()
    path = tmp_path / "damaged.tok"
    for place in [*range(32), *range(32, len(content), 977), len(content) - 1]:
        if PAGE > place > 32 and content[place : place + 1] == b"\0":
            continue  # the gap between header and arrays is not read
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :])
        with pytest.raises(ModelError, match=r"remove it"):
            CompactTokenizer.open(path)


def test_a_file_with_two_words_or_pages_exchanged_is_refused(small, tmp_path):
    content = bytearray(small[1].read_bytes())
    path = tmp_path / "exchanged.tok"
    for width, first, second in ((8, PAGE, PAGE + 64), (PAGE, PAGE, 3 * PAGE)):
        other = bytearray(content)
        other[first : first + width], other[second : second + width] = (
            content[second : second + width],
            content[first : first + width],
        )
        assert other != content
        path.write_bytes(other)
        with pytest.raises(ModelError, match="checksum"):
            CompactTokenizer.open(path)


def test_a_file_of_another_length_is_refused(small, tmp_path):
    content = small[1].read_bytes()
    path = tmp_path / "cut.tok"
    for size in (0, 5, 31, 32, 100, PAGE, PAGE + 1, len(content) // 2, len(content) - PAGE, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(ModelError, match="remove it"):
            CompactTokenizer.open(path)
    path.write_bytes(content + bytes(PAGE))
    with pytest.raises(ModelError, match="bytes, not"):
        CompactTokenizer.open(path)


def test_a_file_of_another_kind_or_format_is_refused(small, tmp_path):
    content = small[1].read_bytes()
    path = tmp_path / "other.tok"
    path.write_bytes(content[:8] + (FORMAT + 1).to_bytes(4, "little") + content[12:])
    with pytest.raises(ModelError, match="another version of holomem"):
        CompactTokenizer.open(path)
    with pytest.raises(ModelError, match="not a compact tokenizer"):
        CompactTokenizer.open(small[0])
    with pytest.raises(ModelError, match="cannot be read"):
        CompactTokenizer.open(tmp_path / "absent.tok")
    with pytest.raises(ModelError, match="cannot be read"):
        CompactTokenizer.open(tmp_path)


def model(**parts):
    value = tokenizer()
    value["model"] = {**value["model"], **parts}
    return value


def token(**parts):
    value = tokenizer()
    value["added_tokens"][4].update(parts)
    return value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (model(type="WordPiece"), "WordPiece"),
        (model(byte_fallback=True), "byte_fallback"),
        (model(unk_id=None), "unknown token"),
        (model(vocab=[*vocabulary(), ["a<unk>", -3.0]]), "name of the unknown token"),
        (model(vocab=[*vocabulary(), ["a\0", -3.0]]), "zero byte"),
        (changed(normalizer={"type": "NFKC"}), "NFKC"),
        (changed(normalizer={"type": "Sequence", "normalizers": [SPACES, PRECOMPILED]}), "Precompiled at place 1"),
        (changed(normalizer={**PRECOMPILED, "precompiled_charsmap": "AAAA"}), "not of a known form"),
        (changed(pre_tokenizer=None), "not of a known form"),
        (changed(pre_tokenizer={"type": "ByteLevel"}), "ByteLevel"),
        (changed(pre_tokenizer={**METASPACE, "prepend_scheme": "first"}), "another mark"),
        (changed(pre_tokenizer={**METASPACE, "replacement": "_"}), "another mark"),
        (changed(post_processor={"type": "ByteLevel"}), "ByteLevel"),
        (changed(novelty=1), "novelty"),
        (token(content="<m\xe4sk>"), "plain ASCII"),
        ([1], "not of a known form"),
    ],
)
def test_what_is_not_known_is_named_and_nothing_is_written(tmp_path, value, named):
    destination = tmp_path / "compact.tok"
    destination.write_text("kept")
    with pytest.raises(Unsupported, match=named):
        build(saved(tmp_path, value), destination)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["compact.tok", "tokenizer.json"]
    assert destination.read_text() == "kept"


def test_a_tokenizer_that_the_library_reads_otherwise_is_refused(small, tmp_path):
    value = copy.deepcopy(tokenizer())
    c, d = (next(entry for entry in value["model"]["vocab"] if entry[0] == letter) for letter in "cd")
    c[0], d[0] = d[0], c[0]
    with pytest.raises(Unsupported, match=r"reads .* otherwise"):
        _compare(saved(tmp_path, value), CompactTokenizer.open(small[1]))


def test_a_child_builds_the_same_file_and_passes_on_what_goes_wrong(small, tmp_path):
    build_apart(small[0], tmp_path / "new" / "compact.tok")
    assert (tmp_path / "new" / "compact.tok").read_bytes() == small[1].read_bytes()
    with pytest.raises(Unsupported, match="the tokenizer is BPE, not Unigram"):
        build_apart(saved(tmp_path, model(type="BPE")), tmp_path / "other.tok")
    with pytest.raises(ModelError, match=r"absent\.json.*No such file"):
        build_apart(tmp_path / "absent.json", tmp_path / "other.tok")
    assert not (tmp_path / "other.tok").exists()


# ---------------------------------------------------------------- the trie


@given(
    st.dictionaries(st.binary(min_size=1, max_size=6).filter(lambda key: not {0, 0xFF} & set(key)), st.integers(0, 999))
)
def test_a_trie_finds_the_shortest_key_and_nothing_else(values):
    keys = sorted(values)
    cells = memoryview(trie(keys, [values[key] for key in keys])).cast("I") if keys else None
    for key in keys:
        shortest = next(key[:end] for end in range(1, len(key) + 1) if key[:end] in values)
        assert found(cells, key + b"x") == values[shortest]
        for other in (key[:-1], b"\0" + key, key[:-1] + b"\0"):
            expected = next((other[:end] for end in range(1, len(other) + 1) if other[:end] in values), None)
            assert found(cells, other) == values.get(expected)
