"""Long-term memory for AI agents in one SQLite file."""

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

__all__ = [
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
