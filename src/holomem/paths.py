"""Where a memory lies when nobody says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_path"]


def default_path() -> Path:
    """The file in the platform's data folder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME", ""))
        if not base.is_absolute():  # the XDG specification: a relative path is to be ignored
            base = Path.home() / ".local" / "share"
    return base / "holomem" / "memory.db"
