"""The errors that holomem raises.

    HolomemError
     |- FactNotFound     also a LookupError; .fact_id
     |- EntityNotFound   also a LookupError; .name
     |- DuplicateFact    another fact already says it; .fact_id
     |- ChangeNotFound   also a LookupError; .change_id
     |- UndoConflict     what a change did was changed again since; .change_id
     |- DuplicateEntity  another entity already has the name; .name, .holder
     |- StoreError       the file: not ours, newer, damaged, locked, read-only
     |- ModelError       the embedding model: missing, wrong, not loadable; the message ends in the remedy
    DegradedWarning      a channel is off, or some rows could not be used; once per Memory

A bad argument is a plain ValueError (TypeError for a wrong type).
"""

__all__ = [
    "ChangeNotFound",
    "DegradedWarning",
    "DuplicateEntity",
    "DuplicateFact",
    "EntityNotFound",
    "FactNotFound",
    "HolomemError",
    "ModelError",
    "StoreError",
    "UndoConflict",
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


class ChangeNotFound(HolomemError, LookupError):
    """The history holds no change of this id."""

    def __init__(self, change_id: int) -> None:
        super().__init__(f"no change {change_id} in the history; only the newest ones are kept")
        self.change_id = change_id


class UndoConflict(HolomemError):
    """A change cannot be undone, since what it did was changed again; nothing was done."""

    def __init__(self, change_id: int, reason: str) -> None:
        super().__init__(f"change {change_id} cannot be undone: {reason}")
        self.change_id = change_id


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
