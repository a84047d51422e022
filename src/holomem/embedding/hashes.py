"""The SHA-256 of large files, remembered between processes as long as the file stays what it is.

A model's files are named by their hashes, and hashing 130 MB at each start costs .2 s and 4 MB of OpenSSL. What is
remembered belongs to size, inode and both times of a file; every write changes the second (ctime), which nobody can set.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from holomem.embedding.places import cache_folder

__all__ = ["file_hash"]

LARGE_BYTES: Final = 1_000_000  # smaller files are hashed each time
SETTLED_SECONDS: Final = 2.0  # a file that changed just now may change again within one tick of its clock
KEPT: Final = 64

_known: dict[str, str] = {}


def file_hash(path: Path, *, anew: bool = False) -> str:
    """The SHA-256 of a file in hex; `anew` reads it even if it is remembered. OSError when it cannot be read."""
    stat = path.stat()
    key = f"{os.path.realpath(path)} {stat.st_size} {stat.st_ino} {stat.st_mtime_ns} {stat.st_ctime_ns}"
    large = stat.st_size >= LARGE_BYTES
    if not anew and (found := _known.get(key) or (_remembered().get(key) if large else None)):
        _known[key] = found
        return found
    import hashlib

    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time() - max(stat.st_mtime, stat.st_ctime) > SETTLED_SECONDS:
        _known[key] = found
        if large:
            _remember(key, found)
    return found


def _record() -> Path:
    return cache_folder() / "hashes.json"


def _remembered() -> dict[str, str]:
    try:
        found = json.loads(_record().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _remember(key: str, found: str) -> None:
    """Write it down; where nothing can be written the next process hashes again."""
    record = _record()
    entries = {**_remembered(), key: found}
    new = record.with_name(f"{record.name}.{os.getpid()}")
    with suppress(OSError):
        record.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(dict(list(entries.items())[-KEPT:]), indent=1), encoding="utf-8")
        new.replace(record)
