"""Long-term memory for AI agents in one SQLite file."""

from typing import TYPE_CHECKING, Any

from holomem.errors import (
    ChangeNotFound,
    DegradedWarning,
    DuplicateFact,
    EntityNotFound,
    FactNotFound,
    HolomemError,
    ModelError,
    StoreError,
    UndoConflict,
)
from holomem.memory import Memory
from holomem.types import (
    Change,
    Contradiction,
    Entity,
    Fact,
    Hit,
    ImportReport,
    ModelId,
    NewFact,
    Scope,
    Scores,
    Status,
    StructuralHit,
)

if TYPE_CHECKING:
    from holomem.aio import AsyncMemory

__all__ = [
    "AsyncMemory",
    "Change",
    "ChangeNotFound",
    "Contradiction",
    "DegradedWarning",
    "DuplicateFact",
    "Entity",
    "EntityNotFound",
    "Fact",
    "FactNotFound",
    "Hit",
    "HolomemError",
    "ImportReport",
    "Memory",
    "ModelError",
    "ModelId",
    "NewFact",
    "Scope",
    "Scores",
    "Status",
    "StoreError",
    "StructuralHit",
    "UndoConflict",
    "__version__",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`AsyncMemory`, imported when it is asked for: asyncio takes as long as all the rest."""
    if name == "AsyncMemory":
        from holomem.aio import AsyncMemory

        return AsyncMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
