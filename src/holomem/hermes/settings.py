"""What a user may set in Hermes' config.yaml, and which file a session's memory is."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holomem import fusion

__all__ = ["FIELDS", "SECTION", "SECTION_OF_PLUGIN", "Settings", "hermes_home", "memory_path", "read", "write"]

logger = logging.getLogger(__name__)

SECTION: Final = "holomem"
SECTION_OF_PLUGIN: Final = "hermes-memory-store"  # the bundled plugin's; what only it says holds for us too
DEFAULT_PATH: Final = "$HERMES_HOME/memory_store.db"  # the plugin's file: `hermes backup` knows it
SCOPES: Final = ("profile", "user", "chat")
YES: Final = frozenset({"true", "yes", "on", "1"})
NO: Final = frozenset({"false", "no", "off", "0", ""})

FIELDS: Final[tuple[dict[str, Any], ...]] = (
    {"key": "db_path", "description": "The memory's file", "default": DEFAULT_PATH},
    {
        "key": "scope",
        "description": "Who shares a memory: a whole profile, or each user or chat has its own",
        "default": "profile",
        "choices": list(SCOPES),
    },
    {
        "key": "auto_extract",
        "description": "Store short facts from what the user says of themselves, at the end of a session",
        "default": "false",
        "choices": ["true", "false"],
    },
    {"key": "default_trust", "description": "Trust of a new fact", "default": f"{fusion.TRUST}"},
    {"key": "min_trust_threshold", "description": "Facts of less trust are not recalled", "default": "0.3"},
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one profile."""

    db_path: str = DEFAULT_PATH
    scope: str = "profile"
    auto_extract: bool = False
    default_trust: float = fusion.TRUST
    min_trust: float = fusion.MIN_TRUST
    half_life_days: float = 0.0


def hermes_home() -> Path:
    """The folder of the active profile: what Hermes says, else $HERMES_HOME, else ~/.hermes."""
    try:
        from hermes_constants import get_hermes_home
    except ImportError:
        return Path(os.environ.get("HERMES_HOME") or Path.home() / ".hermes").expanduser()
    return Path(get_hermes_home())


def read(home: Path) -> Settings:
    """The settings in config.yaml; a value that cannot be used is logged and the default taken."""
    plugins = _config(home).get("plugins")
    merged: dict[str, Any] = {}
    for section in (SECTION_OF_PLUGIN, SECTION):
        values = plugins.get(section) if isinstance(plugins, Mapping) else None
        merged.update({k: v for k, v in values.items() if v is not None} if isinstance(values, Mapping) else {})
    scope = str(merged.get("scope", "profile")).strip().lower()
    if scope not in SCOPES:
        logger.warning("scope is %r; use one of %s; each user gets a memory of their own until then", scope, SCOPES)
        scope = "user"  # a wish for isolation that was misspelt must not become a shared memory
    return Settings(
        db_path=str(merged.get("db_path") or DEFAULT_PATH),
        scope=scope,
        auto_extract=_flag("auto_extract", merged.get("auto_extract", False)),
        default_trust=_number("default_trust", merged, fusion.TRUST, fusion.MIN_TRUST, 1.0),
        min_trust=_number("min_trust_threshold", merged, fusion.MIN_TRUST, 0.0, 1.0),
        half_life_days=_number("temporal_decay_half_life", merged, 0.0, 0.0, math.inf),
    )


def write(home: Path, values: Mapping[str, Any]) -> None:
    """Put `values` into config.yaml; a path below `home` is kept relative to it, so that a copied profile has its own.

    The file is replaced as a whole. Raises OSError.
    """
    import yaml

    kept = {k: v for k, v in values.items() if v is not None}
    if isinstance(path := kept.get("db_path"), str) and path.startswith(f"{home}{os.sep}"):
        kept["db_path"] = f"$HERMES_HOME{path[len(str(home)) :]}"
    config = _config(home)
    plugins = config.get("plugins")
    config["plugins"] = {**(plugins if isinstance(plugins, dict) else {}), SECTION: kept}
    home.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".config.", dir=home)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        yaml.safe_dump(config, stream, allow_unicode=True, sort_keys=False)
    Path(name).replace(home / "config.yaml")


def memory_path(settings: Settings, home: Path, *, user_id: str = "", chat_id: str = "") -> Path:
    """The file of this session's memory. Ids only ever become one cleaned name inside the folder beside `db_path`.

    Without the id that the scope asks for, as on the command line, it is the profile's own file.
    """
    plain = settings.db_path.replace("${HERMES_HOME}", str(home)).replace("$HERMES_HOME", str(home))
    path = Path(plain).expanduser()
    if not path.is_absolute():
        path = home / path
    owner = {"user": user_id, "chat": chat_id}.get(settings.scope, "")
    if not owner:
        return path
    return path.with_name(f"{path.name}.{settings.scope}s") / f"{_clean(owner)}.db"


def _clean(identifier: str) -> str:
    """A file name for an id: readable, and another one for every other id."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", identifier).strip("_")[:40]
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digest}" if readable else digest


def _config(home: Path) -> dict[str, Any]:
    try:
        import yaml

        loaded = yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except ImportError:
        logger.warning("PyYAML is not installed; config.yaml is not read")
        return {}
    return loaded if isinstance(loaded, dict) else {}


def _flag(name: str, value: object) -> bool:
    """A switch; "false" is off, and so is what is neither yes nor no."""
    word = str(value).strip().lower()
    if word not in YES | NO:
        logger.warning("%s is %r; use true or false; it is off", name, value)
    return word in YES


def _number(name: str, values: Mapping[str, Any], default: float, lowest: float, highest: float) -> float:
    try:
        number = float(values.get(name, default))
    except (TypeError, ValueError):
        number = math.nan
    if lowest <= number <= highest:
        return number
    logger.warning("%s is %r; %g is used", name, values.get(name), default)
    return default
