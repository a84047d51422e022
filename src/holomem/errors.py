"""The errors that holomem raises.

    HolomemError
     |- FactNotFound     also a LookupError; .fact_id
     |- EntityNotFound   also a LookupError; .name
     |- DuplicateFact    another fact already says it; .fact_id
     |- DuplicateEntity  another entity already has the name; .name, .holder
     |- StoreError       the file: not ours, newer, damaged, locked, read-only
     |- ModelError       the embedding model: missing, wrong, not loadable; the message ends in the remedy
    DegradedWarning      a channel is off, or some rows could not be used; once per Memory

A bad argument is a plain ValueError (TypeError for a wrong type).
"""

__all__ = [
    "DegradedWarning",
    "DuplicateEntity",
    "DuplicateFact",
    "EntityNotFound",
    "FactNotFound",
    "HolomemError",
    "ModelError",
    "StoreError",
]


class HolomemError(Exception):
    """Base class of every error that holomem raises on its own account."""


class FactNotFound(HolomemError, LookupError):
    """No fact has this id."""

    def __init__(self, fact_id: int) -> None:
        super().__init__(f"no fact {fact_id}; it may have been removed")
        self.fact_id = fact_id


class EntityNotFound(HolomemError, LookupError):
    """No entity has this name or alias."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no entity {name!r}; `holomem entities` lists the known ones")
        self.name = name


class DuplicateFact(HolomemError):
    """An update would make two facts say the same; `fact_id` is the one that already says it."""

    def __init__(self, fact_id: int) -> None:
        super().__init__(f"fact {fact_id} already says exactly this; remove one of the two instead")
        self.fact_id = fact_id


class DuplicateEntity(HolomemError):
    """A name would stand for two entities; `holder` is the canonical name of the one that has it."""

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{name!r} is already a name of the entity {holder!r}; merge the two, or take the name away")
        self.name = name
        self.holder = holder


class StoreError(HolomemError):
    """The file cannot be used: not a holomem file, newer, damaged, locked or read-only."""


class ModelError(HolomemError):
    """The embedding model cannot be used. The message ends in what to do about it."""


class DegradedWarning(UserWarning):
    """A channel of the search is off, or some rows could not be used."""
