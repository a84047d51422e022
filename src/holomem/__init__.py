"""Long-term memory for AI agents in one SQLite file."""

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
from holomem.memory import Memory
from holomem.types import (
    Answer,
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

__all__ = [
    "Answer",
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
