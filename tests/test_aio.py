"""`AsyncMemory`: the same methods awaited, and what cancelling leaves behind."""

import asyncio
import inspect
import io
import threading

import pytest

import holomem
from holomem import AsyncMemory, FactNotFound, Memory, NewFact, StoreError


def test_it_has_every_method_of_memory_with_its_signature():
    methods = {name: m for name, m in vars(Memory).items() if name[0] != "_" and inspect.isfunction(m)}
    for name, method in methods.items():
        awaited = getattr(AsyncMemory, name)
        assert inspect.iscoroutinefunction(awaited), name
        if name != "close":
            assert inspect.signature(awaited) == inspect.signature(method)
            assert awaited.__doc__ == method.__doc__
    assert {name for name in vars(AsyncMemory) if name[0] != "_"} == {*methods, "count"}
    assert holomem.AsyncMemory is AsyncMemory


def test_its_methods_do_what_those_of_memory_do(path, tmp_path, embedder):
    async def main():
        async with AsyncMemory(path, embedder=embedder) as memory:
            first = await memory.add("Ann Lee deploys nginx", tags="x")
            await memory.add_many([NewFact("Bob Ray owns the Kite project"), NewFact("the sky is blue")])
            assert await memory.count() == 3
            assert (await memory.search("who deploys nginx?"))[0].fact.fact_id == first
            assert [h.fact.fact_id for h in await memory.probe("Ann Lee")] == [first]
            assert (await memory.update(first, tags="y")).tags == "y"
            await memory.undo((await memory.history(first))[0].change_id)
            assert (await memory.get(first)).tags == "x"
            await memory.remove(first)
            with pytest.raises(FactNotFound):
                await memory.get(first)
            lines = io.StringIO()
            assert await memory.export(lines) == 2
            assert (await memory.load(lines.getvalue().splitlines())).unchanged == 2
            assert (await memory.backup(tmp_path / "copy.db")).exists()
            assert (await memory.status()).facts == 2

    asyncio.run(main())


def test_calls_at_once_are_all_done(path):
    async def main():
        async with AsyncMemory(path, embedder=None) as memory:
            ids = await asyncio.gather(*(memory.add(f"note number {i}") for i in range(40)))
            assert sorted(ids) == list(range(1, 41))
            found = await asyncio.gather(*(memory.search(f"number {i}", limit=1) for i in range(40)))
            assert [hits[0].fact.content for hits in found] == [f"note number {i}" for i in range(40)]

    asyncio.run(main())


class Gate:
    """An embedder that waits until it is let through, as a slow model does."""

    def __init__(self, embedder):
        self.embedder, self.model = embedder, embedder.model
        self.begun, self.open = threading.Event(), threading.Event()

    def embed(self, texts, *, query=False):
        self.begun.set()
        assert self.open.wait(30)
        return self.embedder.embed(texts, query=query)

    def is_available(self):
        return True

    def problem(self):
        return None

    def unload(self):
        pass


def test_a_cancelled_call_holds_no_lock_and_leaves_a_whole_fact(path, embedder):
    gate = Gate(embedder)

    async def main():
        async with AsyncMemory(path, embedder=gate) as memory:
            adding = asyncio.create_task(memory.add("Ann Lee lives in Oslo", tags="x"))
            await asyncio.to_thread(gate.begun.wait, 30)
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
            assert await asyncio.wait_for(memory.facts(), 10) == []  # the call stands in the model and blocks nobody
            gate.open.set()

    asyncio.run(main())
    with Memory(path, embedder=embedder) as memory:
        (fact,) = memory.facts()
        assert (fact.content, fact.tags, fact.entities) == ("Ann Lee lives in Oslo", "x", ("Ann Lee", "Oslo"))
        assert memory.doctor().problems == ()


def test_a_call_that_is_cancelled_in_the_queue_never_runs(path, embedder):
    gate = Gate(embedder)

    async def main():
        async with AsyncMemory(path, embedder=gate) as memory:
            busy = [asyncio.create_task(memory.add(f"note {i}")) for i in range(4)]
            await asyncio.to_thread(gate.begun.wait, 30)
            waiting = asyncio.create_task(memory.add("never said"))
            await asyncio.sleep(0.05)
            waiting.cancel()
            gate.open.set()
            await asyncio.gather(*busy)
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())
    with Memory(path, embedder=None) as memory:
        assert "never said" not in {fact.content for fact in memory.facts()}
        assert len(memory) == 4


def test_cancelling_at_any_moment_leaves_a_sound_file(path):
    async def main():
        async with AsyncMemory(path, embedder=None) as memory:
            for i in range(60):
                task = asyncio.create_task(memory.add(f"Person {i} keeps note {i}", entities=[f"Person {i}"]))
                await asyncio.sleep(0.0002 * (i % 12))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.wait_for(memory.add("the last one"), 30)

    asyncio.run(main())
    with Memory(path, embedder=None) as memory:
        assert memory.doctor().problems == ()
        assert all(len(f.entities) == 1 for f in memory.facts(limit=None) if f.content.startswith("Person"))


def test_closing_waits_for_what_has_begun_and_refuses_what_comes_later(path, embedder):
    gate = Gate(embedder)

    async def main():
        memory = AsyncMemory(path, embedder=gate)
        adding = asyncio.create_task(memory.add("one"))
        await asyncio.to_thread(gate.begun.wait, 30)
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        with pytest.raises(StoreError, match="closed"):
            await memory.add("two")
        gate.open.set()
        assert await adding == 1
        await closing
        await memory.close()

    asyncio.run(main())
    assert not path.with_name(path.name + "-wal").exists()


def test_a_file_that_cannot_be_opened_raises_and_leaves_no_thread(path):
    path.write_text("no database" * 100)
    before = threading.active_count()

    async def main():
        with pytest.raises(StoreError):
            async with AsyncMemory(path, embedder=None):
                pass

    asyncio.run(main())
    assert threading.active_count() == before


def test_closing_without_a_call_makes_no_file(path):
    asyncio.run(AsyncMemory(path).close())
    assert not path.exists()
