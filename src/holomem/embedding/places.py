"""Folders of the platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Where holomem keeps what it can make again: $HOLOMEM_CACHE, else its folder in the platform's cache."""
    if own := os.environ.get("HOLOMEM_CACHE"):
        return Path(own).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "holomem" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "holomem"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # the XDG specification: a relative path is to be ignored
        base = Path.home() / ".cache"
    return base / "holomem"
