"""Short facts from what a user says of themselves: "I prefer tabs" becomes "User prefers tabs".

Only whole plain sentences of known forms are taken; questions, conditions, quotes, and what the host wrote in the user's
name are not. A fact that is missed can be told again, a wrong one misleads every later session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Extracted", "extract"]

LONGEST_MESSAGE: Final = 2000  # longer ones are documents, logs, mails
LONGEST_SENTENCE: Final = 140

# "it", "this", and other words at the start of an object that mean something only in this conversation
POINTING: Final = (
    r"(?!(?:it|its|this|that|these|those|them|to|you|your|him|her|what|how|when|the (?:first|second|last|former|latter|other)|"
    r"это|эту|этот|эти|его|её|ее|их|то|тот|так|как|когда|das|dies\w*|es|ihn|ça|cela|eso|esto|lo)\b)"
)
OBJECT: Final = rf"{POINTING}(\S.{{0,100}}\S)"
END: Final = r"[.!。]*\s*"
FORMS: Final = tuple(
    (re.compile(rf"{pattern}{END}", re.IGNORECASE), fact, category)
    for pattern, fact, category in (
        (rf"I (?:really |usually |generally )?prefer {OBJECT}", "User prefers {}", "user_pref"),
        (rf"I (?:really |also )?(?:like|love|enjoy) {OBJECT}", "User likes {}", "user_pref"),
        (rf"I (?:really )?(?:hate|dislike|don['’]?t like) {OBJECT}", "User dislikes {}", "user_pref"),
        (rf"I (?:always|usually|mostly) use {OBJECT}", "User uses {}", "user_pref"),
        (r"My (?:favou?rite|preferred|default) (\w[\w ]{0,30}? is .{1,80})", "User's favourite {}", "user_pref"),
        (r"My name is (\S.{0,60}\S)", "User's name is {}", "user_pref"),
        (rf"I live in {OBJECT}", "User lives in {}", "user_pref"),
        (rf"I work (at|for|as) {OBJECT}", "User works {} {}", "user_pref"),
        (rf"I(?:['’]m| am) allergic to {OBJECT}", "User is allergic to {}", "user_pref"),
        (r"We (?:have )?(?:decided|agreed) (to|on) (\S.{0,100}\S)", "Decided {} {}", "project"),
        (rf"(?:Я )?(?:обычно )?предпочитаю {OBJECT}", "Пользователь предпочитает {}", "user_pref"),
        (rf"(?:Я )?(?:очень )?(?:люблю|обожаю) {OBJECT}", "Пользователь любит {}", "user_pref"),
        (rf"(?:Я )?не люблю {OBJECT}", "Пользователь не любит {}", "user_pref"),
        (r"Меня зовут (\S.{0,60}\S)", "Пользователя зовут {}", "user_pref"),
        (rf"Я живу (в|во|на) {OBJECT}", "Пользователь живёт {} {}", "user_pref"),
        (rf"Я работаю (в|во|на) {OBJECT}", "Пользователь работает {} {}", "user_pref"),
        (rf"Ich bevorzuge {OBJECT}", "Der Nutzer bevorzugt {}", "user_pref"),
        (rf"Ich mag {OBJECT}", "Der Nutzer mag {}", "user_pref"),
        (rf"Ich wohne in {OBJECT}", "Der Nutzer wohnt in {}", "user_pref"),
        (rf"Je préfère {OBJECT}", "L'utilisateur préfère {}", "user_pref"),
        (rf"J['’]habite (à|en|au) {OBJECT}", "L'utilisateur habite {} {}", "user_pref"),
        (rf"(?:Yo )?prefiero {OBJECT}", "El usuario prefiere {}", "user_pref"),
        (rf"(?:Yo )?vivo en {OBJECT}", "El usuario vive en {}", "user_pref"),
        (r"(?:我|本人)(?:更)?(?:喜欢|偏好)(?!这|那|它)(\S{1,40})", "用户喜欢{}", "user_pref"),
        (r"(?:私は)(\S{1,40})が好きです", "ユーザーは{}が好き", "user_pref"),
    )
)
CONDITION: Final = re.compile(
    r"\b(?:if|unless|would|could|might|but|because|если|но|бы|wenn|aber|si|mais|pero)\b", re.I
)
# Written by the host or taken over from elsewhere, though in the user's role
FOREIGN: Final = re.compile(
    r"^\s*(?:\[|<|#|\{|```)|^(?:from|subject|to|von|betreff|от|тема|de|objet)\s*:|-{3,}|^.{0,80}\b(?:wrote|schrieb|писал\w*|a écrit)"
    r"\b.{0,60}:\s*$|\b(?:context (?:summary|compaction)|summary of (?:the |our )?(?:conversation|session)|forwarded message)\b",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Extracted:
    """A fact as it is to be stored."""

    content: str
    category: str


def extract(messages: Sequence[Mapping[str, Any]]) -> list[Extracted]:
    """The facts in the user's messages, each once, in order."""
    found = (fact for message in messages for sentence in _sentences(message) if (fact := _fact(sentence)))
    return list(dict.fromkeys(found))


def _sentences(message: Mapping[str, Any]) -> Iterator[str]:
    """The plain sentences of a message that the user wrote."""
    content = message.get("content") if isinstance(message, Mapping) and message.get("role") == "user" else None
    if not isinstance(content, str) or len(content) > LONGEST_MESSAGE or FOREIGN.search(content):
        return
    for line in content.splitlines():
        if line.lstrip().startswith(">"):
            continue
        for sentence in re.split(r"(?<=[.!?。！？])\s+|(?<=[。！？])", line):
            if sentence.strip():
                yield sentence.strip()


def _fact(sentence: str) -> Extracted | None:
    if len(sentence) > LONGEST_SENTENCE or re.search(r"[?？\"“”«»]", sentence) or CONDITION.search(sentence):
        return None
    for form, fact, category in FORMS:
        if match := form.fullmatch(sentence):
            return Extracted(fact.format(*(part.rstrip(" .!。") for part in match.groups())), category)
    return None
