"""The plugin folder for Hermes versions that know no entry points, and taking over the file of the bundled plugin."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from holomem import __version__
from holomem.errors import StoreError
from holomem.memory import Memory

__all__ = ["Adoption", "adopt", "install", "uninstall"]

MARKER: Final = ".holomem-managed"  # only a folder with it is ours to change
SHIM: Final = '''"""Holomem as a memory provider of Hermes Agent (register_memory_provider). Written by `holomem hermes install`.

The package itself is imported, so that upgrading it is all there is to do.
"""

from holomem.hermes import HolomemProvider, register

__all__ = ["HolomemProvider", "register"]
'''


@dataclass(frozen=True, slots=True)
class Adoption:
    """What is in an adopted file. `copy` is the file as it was, None in a dry run and when nothing had to be done."""

    path: str
    dry_run: bool
    adopted: bool
    facts: int
    entities: int
    links: int
    retrievals: int
    helpful: int
    missing_vectors: int
    copy: str | None


def install(home: Path) -> Path:
    """Write the plugin folder below `home` and return it; done again, it changes nothing.

    Raises StoreError when a folder of that name is not ours.
    """
    folder = home / "plugins" / "holomem"
    if folder.exists() and not (folder / MARKER).is_file():
        raise StoreError(f"{folder} is there already and was not written by holomem; move it away first")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = resources.files("holomem.hermes").joinpath("plugin.yaml").read_text(encoding="utf-8")
    for name, content in ((MARKER, f"{__version__}\n"), ("plugin.yaml", manifest), ("__init__.py", SHIM)):
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def uninstall(home: Path) -> bool:
    """Remove what `install` wrote; whether there was anything. Raises StoreError when the folder is not ours."""
    folder = home / "plugins" / "holomem"
    if not folder.exists():
        return False
    if not (folder / MARKER).is_file():
        raise StoreError(f"{folder} was not written by holomem; it is left alone")
    for file in [*folder.glob("__pycache__/*"), *(folder / name for name in ("plugin.yaml", "__init__.py", MARKER))]:
        file.unlink(missing_ok=True)
    for empty in (folder / "__pycache__", folder):
        if empty.is_dir() and not any(empty.iterdir()):
            empty.rmdir()
    return True


def adopt(path: Path, *, dry_run: bool = False) -> Adoption:
    """Take over a file of the bundled plugin, where it lies, and say what is in it; the untouched copy stays beside it.

    A dry run does so to a copy that is thrown away. Raises StoreError.
    """
    if not path.is_file():
        raise StoreError(f"there is no file {path}; give the path of a memory_store.db")
    if not dry_run:
        return _adopted(path, path, dry_run=False)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        try:
            original = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            with closing(original) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        except sqlite3.Error as error:
            raise StoreError(f"{path} cannot be read: {error}") from error
        return _adopted(copy, path, dry_run=True)


def _adopted(path: Path, named: Path, *, dry_run: bool) -> Adoption:
    with Memory(path, embedder=None) as memory:
        facts = memory.facts(limit=None)
        copy = memory.adopted_copy
        return Adoption(
            path=str(named),
            dry_run=dry_run,
            adopted=copy is not None,
            facts=len(facts),
            entities=len(memory.entities()),
            links=sum(len(fact.entities) for fact in facts),
            retrievals=sum(fact.retrieval_count for fact in facts),
            helpful=sum(fact.helpful_count for fact in facts),
            missing_vectors=len(facts) - memory.status().vectors,
            copy=None if dry_run else copy,
        )
