"""Long-term memory for AI agents in one SQLite file."""

from typing import TYPE_CHECKING, Any

from holomem.errors import (
    ChangeNotFound,
    DegradedWarning,
    DuplicateEntity,
    DuplicateFact,
    EntityNotFound,
    FactNotFound,
    HolomemError,
    ModelError,
    StoreError,
    UndoConflict,
)
from holomem.types import (
    Answer,
    Change,
    Companion,
    Conflict,
    Contradiction,
    Entity,
    Fact,
    Hit,
    ImportReport,
    MapPoint,
    ModelId,
    NewFact,
    Scope,
    Scores,
    Status,
    StructuralHit,
)

if TYPE_CHECKING:
    from holomem.aio import AsyncMemory
    from holomem.memory import Memory

__all__ = [
    "Answer",
    "AsyncMemory",
    "Change",
    "ChangeNotFound",
    "Companion",
    "Conflict",
    "Contradiction",
    "DegradedWarning",
    "DuplicateEntity",
    "DuplicateFact",
    "Entity",
    "EntityNotFound",
    "Fact",
    "FactNotFound",
    "Hit",
    "HolomemError",
    "ImportReport",
    "MapPoint",
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
    """`Memory` and `AsyncMemory`, imported when they are asked for.

    A process that only runs the model does without the one, and asyncio takes as long as all the rest.
    """
    if name == "Memory":
        from holomem.memory import Memory

        return Memory
    if name == "AsyncMemory":
        from holomem.aio import AsyncMemory

        return AsyncMemory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
