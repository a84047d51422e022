"""A tokenizer.json in compact form: what is in it is checked, translated, and tried against the library `tokenizers`.

What the library does that no file says is asked of it: which characters its normaliser takes as one with the character
before (its grapheme clusters follow a Unicode version of their own). So the result is equal to the library that is
installed when it is made, and names it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import struct
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import numpy as np

from holomem.embedding import child
from holomem.embedding.charsmap import charsmap
from holomem.embedding.compact import META, CompactTokenizer
from holomem.embedding.compact_file import CONTROL, JOINS, PREPENDS, RULE, Unsupported, trie, write
from holomem.embedding.compact_texts import texts
from holomem.errors import ModelError

__all__ = ["build", "build_apart"]

CLUSTER_BYTES: Final = 5  # the library looks a cluster of characters up as a whole only up to here
UNKNOWN_PENALTY: Final = 10.0  # the library's: below the lowest score
TRIALS: Final = 2000
# What reading JSON of another shape than we know raises, and bytes of another form.
_OTHER_FORM: Final = (ValueError, TypeError, KeyError, AttributeError, IndexError, struct.error)
_LAST: Final = 0x10FFFF
_BLOCK: Final = 256
# Planes 4 to 13 are empty and 15 and 16 for private use: no character of theirs joins another.
_PLACES: Final = (*range(0, 0x40000, 1 << 14), *range(0xE0000, 0xF0000, 1 << 14))
_OFFSETS: Final = np.arange(1, 256, dtype=np.uint32)  # bytes of a rule; none has a zero byte


def build_apart(tokenizer_json: Path, destination: Path) -> None:
    """`build` in a child process, which takes its 400 MB along when it ends. Raises what `build` raises."""
    arguments = (str(tokenizer_json), str(destination))
    try:
        child.run("making the compact tokenizer", "holomem.embedding.compact_build.main", *arguments)
    except child.ChildError as error:
        raise Unsupported(str(error)) if error.code == _UNSUPPORTED else error from None


_UNSUPPORTED: Final = 3


def main() -> None:
    """Make the file; what goes wrong is one line on stderr and exit code 3 (no compact form) or 1."""
    try:
        build(Path(sys.argv[1]), Path(sys.argv[2]))
    except ModelError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_UNSUPPORTED if isinstance(error, Unsupported) else 1)


def build(tokenizer_json: Path, destination: Path) -> None:
    """Write the compact form of a tokenizer.json, or leave `destination` as it was.

    Raises Unsupported, naming what in the file is not known, and ModelError when a file cannot be read or written.
    """
    try:
        content = tokenizer_json.read_bytes()
        source = {"sha256": hashlib.sha256(content).hexdigest(), "library": f"tokenizers {version('tokenizers')}"}
        settings, arrays = _translated(json.loads(content), source)
        del content
        destination.parent.mkdir(parents=True, exist_ok=True)
        trial = destination.with_name(f"{destination.name}.{os.getpid()}.trial")
        try:
            write(trial, settings, arrays)
            del arrays
            _compare(tokenizer_json, CompactTokenizer.open(trial))
            trial.replace(destination)
        finally:
            trial.unlink(missing_ok=True)
    except OSError as error:
        where = error.filename or destination
        raise ModelError(f"{where}: {error.strerror or error}; mend that or use the library tokenizers") from error
    except ImportError as error:
        raise ModelError(f"tokenizers cannot be imported ({error}); reinstall it") from error
    except _OTHER_FORM as error:
        raise Unsupported(f"{tokenizer_json} is not of a known form ({type(error).__name__}: {error})") from error


def _compare(tokenizer_json: Path, compact: CompactTokenizer) -> None:
    """Unsupported unless the library gives the same ids for some thousand texts, odd ones among them."""
    from tokenizers import Tokenizer

    try:
        library = Tokenizer.from_file(str(tokenizer_json))
    except Exception as error:  # tokenizers raises plain Exception
        raise Unsupported(f"{tokenizer_json} cannot be read by tokenizers: {error}") from error
    library.no_padding()
    library.no_truncation()
    words = [piece.replace(META, " ") for piece in sorted(library.get_vocab())]
    for text in texts(words, TRIALS):
        ids = compact.encode(text)
        if ids is not None and ids != library.encode(text).ids:
            raise Unsupported(f"the library tokenizers reads {text!r} otherwise")


def _translated(tokenizer: dict[str, Any], source: dict[str, str]) -> tuple[dict[str, object], dict[str, bytes]]:
    _known(tokenizer, "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer")
    precompiled, steps = _normalizer(tokenizer.get("normalizer"))
    before, after = _markers(tokenizer.get("post_processor"))
    pieces, scores, unknown = _vocabulary(tokenizer["model"])
    rules = _rules(precompiled)
    added, refused = _added(tokenizer["added_tokens"])
    settings: dict[str, object] = {
        **source,
        "steps": steps,
        "splits": _splits(tokenizer["pre_tokenizer"]),
        "before": before,
        "after": after,
        "unknown": unknown,
        "unknown_score": min(scores) - UNKNOWN_PENALTY,
        "longest": max(map(len, pieces)),
        "added": added,
        "refused": refused,
    }
    keys = sorted(pieces)
    blocks, classes = _classes(rules)
    replacements = sorted(set(rules.values()))
    places = {text: number for number, text in enumerate(replacements)}
    rule_keys = sorted(rules)
    ends = np.cumsum([0, *map(len, replacements)], dtype=np.uint32)
    arrays = {
        "pieces": trie(keys, [pieces[key] for key in keys]),
        "scores": np.array(scores, "<f8").tobytes(),
        "rules": trie(rule_keys, [places[rules[key]] for key in rule_keys]) if rules else b"",
        "ends": ends.tobytes(),
        "texts": b"".join(replacements),
        "blocks": blocks,
        "classes": classes,
    }
    return settings, arrays


def _known(part: dict[str, Any], *names: str) -> None:
    """Unsupported for an entry that is set and not among `names`, "type" or what other functions read."""
    others = {"type", "model", "post_processor", "decoder", *names}
    if unknown := sorted(name for name in part.keys() - others if part[name]):
        raise Unsupported(f"the tokenizer has {', '.join(unknown)} in {part.get('type', 'its file')}")


def _vocabulary(model: dict[str, Any]) -> tuple[dict[bytes, int], list[float], int]:
    if model.get("type") != "Unigram":
        raise Unsupported(f"the tokenizer is {model.get('type')}, not Unigram")
    _known(model, "unk_id", "vocab")
    vocabulary = model["vocab"]
    if type(model["unk_id"]) is not int or not 0 <= model["unk_id"] < len(vocabulary):
        raise Unsupported(f"the vocabulary of {len(vocabulary)} has no unknown token {model['unk_id']}")
    scores = [float(score) for _, score in vocabulary]
    pieces = {piece.encode("utf-8"): number for number, (piece, _) in enumerate(vocabulary) if piece}
    if any(0 in piece for piece in pieces) or not all(map(math.isfinite, scores)) or min(scores) >= 0:
        raise Unsupported("the vocabulary has a piece with a zero byte or a score that is not a logarithm")
    name = vocabulary[model["unk_id"]][0].encode("utf-8")
    if any(name in piece and name != piece for piece in pieces):  # neighbours that are unknown are looked up as one
        raise Unsupported("the vocabulary has a piece that holds the name of the unknown token")
    return pieces, scores, model["unk_id"]


def _normalizer(normalizer: dict[str, Any] | None) -> tuple[bytes, list[list[str]]]:
    """The precompiled map, empty without one, and the steps after it: what is replaced and by what."""
    parts = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    precompiled = b""
    steps: list[list[str]] = []
    for place, part in enumerate(parts):
        if part["type"] == "Precompiled" and place == 0:
            _known(part, "precompiled_charsmap")
            precompiled = base64.b64decode(part["precompiled_charsmap"], validate=True)
        elif part["type"] == "Replace" and part["pattern"] == {"Regex": " {2,}"} and part["content"] in (" ", META):
            _known(part, "pattern", "content")
            steps.append(["spaces", part["content"]])
        elif part["type"] == "Strip":
            _known(part, "strip_left", "strip_right")
            steps += [[side, ""] for side in ("strip_left", "strip_right") if part[side]]
        else:
            raise Unsupported(f"the normaliser has {part['type']} at place {place}")
    return precompiled, steps


def _splits(pre_tokenizer: dict[str, Any]) -> bool:
    """Whether words are parted at white space and the space is dropped, before the mark of a word is set."""
    parts = list(pre_tokenizer.get("pretokenizers", [pre_tokenizer]))
    kinds = [part["type"] for part in parts]
    if kinds not in (["Metaspace"], ["WhitespaceSplit", "Metaspace"]):
        raise Unsupported(f"the pre-tokenizer is {' and '.join(kinds)}")
    mark = parts[-1]
    _known(mark, "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep")
    always = mark.get("prepend_scheme", "always") == "always" and mark.get("add_prefix_space", True)
    if mark["replacement"] != META or not always or not mark.get("split", True):
        raise Unsupported("the pre-tokenizer sets another mark than \u2581 before every word")
    return len(parts) == 2


def _markers(processor: dict[str, Any] | None) -> tuple[list[int], list[int]]:
    """The ids that are put before and after a text."""
    if processor is None:
        return [], []
    if processor["type"] != "TemplateProcessing":
        raise Unsupported(f"the post-processor is {processor['type']}")
    sides: tuple[list[int], list[int]] = ([], [])
    count = 0
    for part in processor["single"]:
        if "Sequence" in part:
            count += 1
        else:
            sides[min(count, 1)].extend(processor["special_tokens"][part["SpecialToken"]["id"]]["ids"])
    if count != 1:
        raise Unsupported("the post-processor does not put one text between its markers")
    return sides


def _added(tokens: list[dict[str, Any]]) -> tuple[dict[str, int], list[str]]:
    """Tokens that are cut out of a text wherever they stand, with their ids; and those that a text must not have."""
    added: dict[str, int] = {}
    refused: list[str] = []
    for token in tokens:
        content = token["content"]
        if not content.isascii() or not content.isprintable() or " " in content or not content:
            raise Unsupported(f"the added token {content!r} is not plain ASCII")  # the normaliser could change it
        if any(token[flag] for flag in ("single_word", "lstrip", "rstrip", "normalized")):
            refused.append(content)
        else:
            added[content] = token["id"]
    return added, refused


# ---- the normaliser -------------------------------------------------------------------------------------------------


def _rules(precompiled: bytes) -> dict[bytes, bytes]:
    """The rules of a precompiled map that the library can come to: it takes the shortest that a text begins with."""
    if not precompiled:
        return {}
    (size,) = struct.unpack_from("<I", precompiled)
    cells, texts = np.frombuffer(precompiled, "<u4", size // 4, 4), precompiled[4 + size :]
    rules: dict[bytes, bytes] = {}
    states = [(b"", _offset(int(cells[0])))]
    while states:
        key, base = states.pop()
        places = base ^ _OFFSETS
        inside = places < len(cells)
        matches = inside & ((cells[np.where(inside, places, 0)] & 0x800000FF) == _OFFSETS)
        for byte in _OFFSETS[matches].tolist():
            place = base ^ byte
            unit = int(cells[place])
            longer, base_of_longer = key + bytes([byte]), place ^ _offset(unit)
            if unit & 0x100:
                begin = int(cells[base_of_longer]) & 0x7FFFFFFF
                rules[longer] = texts[begin : texts.index(0, begin)]
            elif len(longer) < CLUSTER_BYTES:
                states.append((longer, base_of_longer))
    for key, text in rules.items():  # UnicodeDecodeError is a ValueError
        key.decode("utf-8")
        text.decode("utf-8")
    return rules


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)


def _classes(rules: dict[bytes, bytes]) -> tuple[bytes, bytes]:
    """For each block of 256 characters the number of its row, uint16; the rows, uint8, with what a character is."""
    classes = np.zeros(_LAST + 1, np.uint8)
    for key in rules:
        if len(char := key.decode("utf-8")) == 1:
            classes[ord(char)] |= RULE
    if rules:
        for point, kind in _asked():
            classes[point] |= kind
    rows: dict[bytes, int] = {}
    blocks = [rows.setdefault(row.tobytes(), len(rows)) for row in classes.reshape(-1, _BLOCK)]
    return np.array(blocks, "<u2").tobytes(), b"".join(rows)


@cache
def _asked() -> tuple[tuple[int, int], ...]:
    """The characters that join, part and prepend in the library's clusters, found with a map that shows where they end.

    The map has rules for "a" and U+0344 only, and what follows such a character in a cluster is dropped.
    """
    from tokenizers.normalizers import Precompiled

    probe = Precompiled(charsmap({"a": "b", "\u0344": "c"}))
    part = "\x01"  # a control: a cluster ends before and after it

    def answers(before: str, after: str, chars: Sequence[str]) -> list[str]:
        answer: list[str] = probe.normalize_str(part.join(f"{before}{char}{after}" for char in chars)).split(part)
        return answer

    kinds = [(ord(part), CONTROL)]
    for first in _PLACES:
        points = [p for p in range(first, first + (1 << 14)) if not 0xD800 <= p < 0xE000 and p != ord(part)]
        chars = [chr(point) for point in points]
        joined, parted, prepended = (
            answers(*around, chars) for around in (("a", ""), ("", "\u0344\u0301"), ("", "a\u0301"))
        )
        for point, join, control, prepend in zip(points, joined, parted, prepended, strict=True):
            if join == "b":
                kinds.append((point, JOINS))
            if control.endswith("c"):
                kinds.append((point, CONTROL))
            if prepend.endswith("\u0301"):
                kinds.append((point, PREPENDS))
    return tuple(kinds)
