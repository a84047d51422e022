"""Long-term memory for AI agents in one SQLite file."""

from typing import TYPE_CHECKING, Any

from holomem.errors import (
    DegradedWarning,
    DuplicateEntity,
    DuplicateFact,
    EntityNotFound,
    FactNotFound,
    HolomemError,
    ModelError,
    StoreError,
)
from holomem.types import (
    Answer,
    Companion,
    Conflict,
    Contradiction,
    Entity,
    Fact,
    Hit,
    ImportReport,
    ModelId,
    NewFact,
    Scores,
    Status,
    StructuralHit,
)

if TYPE_CHECKING:
    from holomem.memory import Memory

__all__ = [
    "Answer",
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
    "Memory",
    "ModelError",
    "ModelId",
    "NewFact",
    "Scores",
    "Status",
    "StoreError",
    "StructuralHit",
    "__version__",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Memory`, imported when it is asked for: a process that only runs the model does without."""
    if name == "Memory":
        from holomem.memory import Memory

        return Memory
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
