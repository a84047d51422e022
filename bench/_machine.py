"""What a bench ran on, in two lines, so that its figures can be compared."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib import metadata
from pathlib import Path

import holomem
from holomem import kernels


def describe(*packages: str) -> str:
    """Machine, Python and SQLite; then holomem with its kernel, and the versions of these packages."""
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    reason = kernels.why_reference()
    kernel = kernels.isa() + (f" ({reason})" if reason else "")
    versions = [f"{package} {version(package) or 'absent'}" for package in ("numpy", *packages)]
    return (
        f"{_processor()}, {os.cpu_count()} cores, {load}, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}\n"
        f"holomem {holomem.__version__} with kernel {kernel}; {', '.join(versions)}"
    )


def version(package: str) -> str | None:
    """The version of an installed package; None when it is absent."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"
