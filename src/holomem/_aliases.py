"""By what other names a text says that somebody goes: "X aka Y", "everyone calls her Y". Serves `entities` alone."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from holomem._extraction import MAX_NAMES, MAX_TEXT_CHARS, Span, candidates
from holomem._namekeys import key
from holomem.text import WORD

__all__ = ["aliases"]

_ALIAS = re.compile(
    r"""[\s,;(（]{0,4} (?<!\w) (?: aka | a\.k\.a\.? | also\s+known\s+as | better\s+known\s+as | alias | он\s+же | она\s+же
      | (?:также\s+)?известн\w{1,3}\s+(?:также\s+)?как | auch\s+bekannt\s+als | également\s+connue?\s+sous\s+le\s+nom\s+de
      | también\s+conocid[oa]\s+como | também\s+conhecid[oa]\s+como | noto\s+anche\s+come | 又名 | 又称 | 亦称 | 也叫 | 别名 | 別名 )
      [\s:]*""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE_NAME = re.compile(rf"""["'«“„「『]?({WORD}+(?:[-.]{WORD}+)*)""")


_NICKNAME = re.compile(
    r"""(?<!\w) (?: nick(?:named?|name\s+is)? | goes\s+by
      | (?:every(?:one|body)|people|friends|colleagues|they|we|all)\s+calls?\s+(?:him|her|them)
      | по\s+прозвищу | прозвище | ник(?:нейм)? | (?:зовут|называют)\s+(?:его|её|ее) | (?:его|её|ее)\s+(?:\w+\s+)?(?:зовут|называют)
      | называют | прозвали | genannt | Spitzname(?:\s+ist)? | alle\s+nennen\s+(?:ihn|sie) | nennen\s+(?:ihn|sie)\s+alle
      | l[aoe]s?\s+llaman | apodad[oa] | apodo(?:\s+es)? | surnommée? | l['’]appellent | surnom(?:\s+est)? ) (?!\w)
      | (?:昵称|外号|绰号|英文名|花名)(?:叫|是|为)? | [叫称][他她]为? | (?:あだ名|愛称|通称)は""",
    re.VERBOSE | re.IGNORECASE,
)
_END = re.compile(r"[.!?;]\s|[。！？；\n]")


def aliases(text: str, known: Sequence[tuple[str, int, int]] = ()) -> list[tuple[str, str]]:
    """(name, alias) wherever the text says "X aka Y", "X, также известный как Y" or that X is called Y by others.

    `known` are names that stand at text[start:end], whatever form they have there. A nickname is that of the first name of its
    sentence; of "aka" it is the name just before it.
    """
    text = text[:MAX_TEXT_CHARS]
    said = [
        *itertools.islice(_ALIAS.finditer(text), MAX_NAMES),
        *itertools.islice(_NICKNAME.finditer(text), MAX_NAMES),
    ]
    if not said:
        return []
    spans = [*(Span(name, start, end, 4) for name, start, end in known), *candidates(text, None)]
    ends = [0, *(match.end() for match in _END.finditer(text))]
    found: list[tuple[str, str]] = []
    for match in said:
        if match.re is _ALIAS:
            before = [span for span in spans if match.start() - 2 <= span.end <= match.start() + 1]
        else:
            begin = max(end for end in ends if end <= match.start())
            inside = [span for span in spans if begin <= span.start and span.end <= match.start()]
            before = [span for span in inside if span.start == min(each.start for each in inside)]
        after = [span for span in spans if match.end() <= span.start <= match.end() + 2]
        bare = _BARE_NAME.match(text, match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip(" :")))
        name = max(before, key=lambda span: (span.rank, span.end - span.start)).name if before else ""
        alias = max(after, key=lambda span: span.end - span.start).name if after else ""
        if not alias and bare and (match.re is _ALIAS or not bare[1].islower() or any(c.isdigit() for c in bare[1])):
            alias = bare[1]  # a nickname in lower case is a word, unless there is a digit in it
        if key(name) and key(alias) and key(name) != key(alias):
            found.append((name, alias))
    return found
