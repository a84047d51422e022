"""What this process keeps of memory that it no longer needs, unless told otherwise: glibc's heap, pages of code."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["give_back", "give_back_code", "map_large_blocks"]

_M_MMAP_THRESHOLD: Final = -3  # malloc.h
_THRESHOLD_BYTES: Final = 128 * 1024  # where glibc begins; by itself it moves up to 32 MB with the first large block
_MADV_DONTNEED: Final = 4  # asm-generic/mman-common.h
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ +(/.*)\n((?:[A-Z]\w+: .*\n)+)", re.MULTILINE)


@cache
def map_large_blocks() -> None:
    """Have blocks of 128 KiB and more mapped on their own, so that freeing one returns it (131 -> 93 MB in a batch)."""
    if (option := _function("mallopt")) is not None:
        option(_M_MMAP_THRESHOLD, _THRESHOLD_BYTES)


def give_back() -> None:
    """Collect garbage and return freed heap to the system (416 -> 65 MB after a full-size model)."""
    gc.collect()
    if (trim := _function("malloc_trim")) is not None:
        trim(0)


def give_back_code(library: str) -> None:
    """Unmap the pages of the shared objects in a folder of this name; they come back from the file when next used.

    Only mappings that nobody can write and that hold no page of this process's own, so what goes is what the file has:
    20 of the 37 MB that a model leaves behind are onnxruntime's code.
    """
    advise = _function("madvise")
    if advise is None:
        return
    try:
        smaps = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for start, end, rights, path, figures in _MAPPING.findall(smaps):
        if (
            f"/{library}/" in path
            and ".so" in path
            and "w" not in rights
            and re.search(r"^Anonymous: +0 kB", figures, re.M)
        ):
            first = int(start, 16)
            advise(ctypes.c_void_p(first), ctypes.c_size_t(int(end, 16) - first), _MADV_DONTNEED)


def _function(name: str) -> Any:
    """A function of the C library; None where it has none, as musl and other systems."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
