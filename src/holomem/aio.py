"""`AsyncMemory`: the methods of `Memory`, awaited.

Each call runs in a worker thread, so the event loop never waits for the disk or the model. A call that is cancelled before
a thread took it never runs; one that has begun runs to its end in its thread, all of it or nothing as ever, and just
nobody waits for what it returns: no lock stays held, no fact is half written.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from holomem.errors import StoreError
from holomem.memory import Memory

__all__ = ["AsyncMemory"]

THREADS: Final = 4  # a search need not wait for another call's embedding; the file is one connection's anyway

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[Memory, P], R],
) -> Callable[Concatenate[AsyncMemory, P], Coroutine[Any, Any, R]]:
    @functools.wraps(method)
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await self._run(lambda memory: method(memory, *args, **kwargs))

    return call


class AsyncMemory:
    """A `Memory` whose methods are awaited. It takes what `Memory` takes, and opens the file at its first call.

    >>> async def main() -> None:
    ...     async with AsyncMemory("memory.db") as memory:
    ...         await memory.add("Alice deploys nginx through CI")
    ...         hits = await memory.search("who deploys nginx?")

    Callbacks (`progress`) and what `export` writes to are called in a worker thread.
    """

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self._options = options
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="holomem")
        self._opening = threading.Lock()
        self._memory: Memory | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        try:
            await self.count()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for the calls that have begun, and close the file; those that come later raise StoreError.

        Closing twice is harmless; when this is cancelled the file is closed nevertheless.
        """
        self._closed = True
        await asyncio.shield(asyncio.to_thread(self._finish))

    async def _run(self, call: Callable[[Memory], R]) -> R:
        """What `call` returns for the memory, in a worker thread."""
        if self._closed:
            raise StoreError(f"{os.fspath(self._path)} is closed; open it anew")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._call, call)

    def _call(self, call: Callable[[Memory], R]) -> R:
        with self._opening:
            if self._memory is None:
                self._memory = Memory(self._path, **self._options)
        return call(self._memory)

    def _finish(self) -> None:
        self._pool.shutdown(wait=True)
        with self._opening:
            if self._memory is not None:
                self._memory.close()

    count = _awaited(Memory.__len__)

    add = _awaited(Memory.add)
    add_many = _awaited(Memory.add_many)
    get = _awaited(Memory.get)
    facts = _awaited(Memory.facts)
    update = _awaited(Memory.update)
    remove = _awaited(Memory.remove)
    purge = _awaited(Memory.purge)
    history = _awaited(Memory.history)
    undo = _awaited(Memory.undo)
    feedback = _awaited(Memory.feedback)
    categories = _awaited(Memory.categories)
    entities = _awaited(Memory.entities)
    rename_entity = _awaited(Memory.rename_entity)
    merge_entities = _awaited(Memory.merge_entities)
    split_entity = _awaited(Memory.split_entity)
    add_alias = _awaited(Memory.add_alias)
    remove_alias = _awaited(Memory.remove_alias)
    link = _awaited(Memory.link)
    unlink = _awaited(Memory.unlink)
    extract_entities = _awaited(Memory.extract_entities)

    search = _awaited(Memory.search)
    probe = _awaited(Memory.probe)
    reason = _awaited(Memory.reason)
    related = _awaited(Memory.related)
    companions = _awaited(Memory.companions)
    ask = _awaited(Memory.ask)
    contradictions = _awaited(Memory.contradictions)
    contradicted_by = _awaited(Memory.contradicted_by)
    keep_both = _awaited(Memory.keep_both)

    map = _awaited(Memory.map)
    status = _awaited(Memory.status)
    doctor = _awaited(Memory.doctor)
    backfill = _awaited(Memory.backfill)
    reembed = _awaited(Memory.reembed)
    use_model = _awaited(Memory.use_model)
    backup = _awaited(Memory.backup)
    export = _awaited(Memory.export)
    load = _awaited(Memory.load)
    reading = _awaited(Memory.reading)
    unload = _awaited(Memory.unload)
