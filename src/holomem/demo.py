"""The data of `holomem demo`: an invented memory in six languages, and six questions that show what finds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holomem.types import NewFact

__all__ = ["FACTS", "QUESTIONS", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, what it shows, and the number in `FACTS` of the fact that answers it.

    `entities` makes it one for `reason`. `blind` is what to say where there is no search by meaning, if that differs.
    """

    title: str
    text: str
    answer: int
    shows: str
    blind: str | None = None
    entities: tuple[str, ...] = ()


def _fact(content: str, category: str, tags: str, *entities: str) -> NewFact:
    return NewFact(content, category, tags, entities or None)


FACTS: Final = (
    _fact("To roll out nginx to production, run `make release`", "project", "deploy", "nginx"),
    _fact("nginx deploy order: staging, then pve-01, then pve-02", "project", "deploy", "nginx", "pve-01", "pve-02"),
    _fact("Marta approves each change of the web server settings", "project", "review", "Marta", "nginx"),
    _fact("Marta is allergic to peanuts", "user_pref", "health", "Marta"),
    _fact("pve-01 is the Proxmox host in the Berlin rack", "tool", "hosts", "pve-01", "Berlin"),
    _fact("Ticket PLAT-15800 tracks the cache eviction bug", "project", "bugs", "PLAT-15800"),
    _fact("The user prefers short answers without small talk", "user_pref", "style"),
    _fact("Old log files are deleted after ninety days", "project", "logs"),
    _fact("Резервные копии базы снимаются каждую ночь в 03:00", "project", "backup"),
    _fact("Иван дежурит по выходным и отвечает за мониторинг", "general", "people", "Иван"),
    _fact("Пароль гостевого Wi-Fi меняется в первый понедельник месяца", "general", "office"),
    _fact("Созвоны с заказчиком лучше назначать после обеда", "user_pref", "meetings"),
    _fact("访问日志写在 /var/log/access.log", "tool", "logs"),
    _fact("小林负责支付网关的接口文档", "general", "people", "小林"),
    _fact("供应商的账期是四十五天", "general", "finance"),
    _fact("测试环境每周五晚上重启", "project", "hosts"),
    _fact("Die Buchhaltung verschickt Rechnungen am ersten Werktag des Monats", "general", "finance"),
    _fact("Marta fährt im August nach Lissabon", "general", "people", "Marta", "Lissabon"),
    _fact("Der Drucker im dritten Stock heißt druck-03", "tool", "office", "druck-03"),
    _fact("El equipo de soporte atiende de lunes a viernes, de 9 a 18 h", "general", "office"),
    _fact("Los pagos con tarjeta fallan si el reloj del servidor se atrasa", "project", "bugs"),
    _fact("Lucía escribe la documentación del proyecto Orion", "project", "people", "Lucía", "Orion"),
    _fact("会議室の予約は前日までに総務へ連絡する", "general", "office"),
    _fact("田中さんはコーヒーより緑茶が好き", "user_pref", "people", "田中"),
    _fact("本番データベースのパスワードは四半期ごとに変更する", "project", "security"),
)

QUESTIONS: Final = (
    Question(
        "A question in another language",
        "как выкатить nginx на прод",
        0,
        "The question is Russian, the fact English. They share one word; the meaning does the rest.",
        "The question is Russian, the fact English: only the word nginx can find it here.",
    ),
    Question(
        "A paraphrase",
        "does she get sick from nuts?",
        3,
        "Not one word in common with the fact: found by its meaning alone.",
        "The fact about peanuts has not one word in common with it: it takes the semantic channel to find it.",
    ),
    Question(
        "A short exact query",
        "nginx deploy order",
        1,
        "All three words are there: full text and word overlap put the literal match first.",
    ),
    Question(
        "An identifier, cut off",
        "PLAT-158",
        5,
        "An identifier is one word, its parts are words too, and its beginning is enough to find it.",
    ),
    Question(
        "What two things have in common",
        "",
        2,
        "A join by the algebra of structure: the fact is bound to both names, though nginx is not among its words.",
        entities=("Marta", "nginx"),
    ),
    Question(
        "Any odd string",
        '"NEAR(druck-03* AND -- :/ 🚀',
        18,
        "No character is an operator: what is left are words, and they are looked up.",
    ),
)
