"""The MCP server in bad company: arguments of every kind, a second writer, a kill in the middle, very long and very many facts."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("mcp")

from test_mcp import HELLO, call, command, lines, over_stdio

from holomem import Memory, NewFact

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

ODD = (
    None, True, -1, 0, 1.5, -(2**63) - 1, 10**40, 1e308, "", " ", "1", "1.0", "-7", "\u0661", "NaN", "' OR 1=1 --", '"*', "NEAR(",
    "данные", "数据库", "\u202e\u200b", "👩‍👩‍👧", "a\x00b", "x" * 20_000, [], [[]], ["Алиса", None], {}, {"a": {"b": []}}, {"": ""},
)  # fmt: skip


def start(path):
    """A server to speak to by hand; it has said hello."""
    process = subprocess.Popen(command(path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdin.write(lines(HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"}))
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    return process


def adding(number, content):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": "add_fact", "arguments": {"content": content}}}  # fmt: skip


def test_every_argument_of_every_tool_may_be_anything(path):
    with Memory(path, embedder=None) as memory:
        memory.add("Bob Smith owns nginx")

    async def talk():
        async with over_stdio(path) as session:
            tools = (await session.list_tools()).tools
            for tool in tools:
                schema = tool.model_dump(by_alias=True)["inputSchema"]
                sound = {name: {"string": "nginx", "integer": 1, "boolean": True, "array": ["nginx"],
                                "object": {"owner": "Bob"}}[schema["properties"][name]["type"]]
                         for name in schema.get("required", ())}  # fmt: skip
                for name in schema["properties"]:
                    for value in ODD:
                        result = await session.call_tool(tool.name, {**sound, name: value})
                        text = result.content[0].text
                        assert text.strip(), (tool.name, name, value)
                        assert "Traceback" not in text, (tool.name, name, value)
                        assert "the memory failed" not in text, (tool.name, name, value)
                        assert len(text) < 300_000, (tool.name, name, value)
            await call(session, "search", query="nginx")

    asyncio.run(talk())
    with Memory(path, embedder=None) as memory:
        assert memory.doctor().problems == ()


def test_a_server_and_the_command_line_write_one_file_at_once(path):
    async def talk():
        async with over_stdio(path) as session:
            add = [sys.executable, "-m", "holomem", "--db", str(path), "--no-model", "-q", "add"]
            others = [subprocess.Popen([*add, *(f"Line {n} of writer {w}" for n in range(20))], stdout=subprocess.DEVNULL)
                      for w in range(2)]  # fmt: skip
            ids = [(await call(session, "add_fact", content=f"Note {n} of the server"))["fact_id"] for n in range(40)]
            for other in others:
                assert await asyncio.to_thread(other.wait, 60) == 0
            assert len(set(ids)) == 40
            assert (await call(session, "search", query="Line 19 of writer 1"))["results"][0]["content"] == (
                "Line 19 of writer 1"
            )  # the server sees what the others wrote

    asyncio.run(talk())
    with Memory(path, embedder=None) as memory:
        assert len(memory) == 80
        assert memory.doctor().problems == ()


def test_a_server_killed_while_it_adds_loses_nothing_that_it_confirmed(path):
    process = start(path)
    process.stdin.write(lines(*(adding(number, f"Note {number} of Alice") for number in range(2, 42))))
    process.stdin.flush()
    confirmed = [json.loads(process.stdout.readline()) for _ in range(10)]  # it is at the others
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    confirmed += [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith(b"\n")]
    told = {answer["id"] for answer in confirmed}
    with Memory(path, embedder=None) as memory:
        kept = {int(fact.content.split()[1]) for fact in memory.facts(limit=None)}
        assert told <= kept
        assert memory.doctor().problems == ()
    process = start(path)
    process.stdin.write(lines(adding(2, "The next server goes on")))
    process.stdin.close()  # the client leaves before the answer
    assert process.wait(20) == 0
    process.stdout.close()


def test_very_long_facts_and_very_many_come_in_bounds(path):
    long = "Anna keeps bees. " * 62_000  # 1 MB

    async def talk():
        async with over_stdio(path) as session:
            fact_id = (await call(session, "add_fact", content=long))["fact_id"]
            assert (await call(session, "list_facts", limit=10**6))["count"] == 100
            assert (await call(session, "search", query="note about Alice", limit=10**6))["count"] <= 100
            assert (await call(session, "entities", limit=10**6))["count"] <= 100
            found = (await call(session, "search", query="who keeps bees?"))["results"][0]
            assert found["fact_id"] == fact_id
            assert len(found["content"]) < 4100
            assert "`fetch` gives all" in found["content"]
            assert (await call(session, "fetch", fact_id=fact_id))["content"].strip() == long.strip()

    with Memory(path, embedder=None) as memory:
        memory.add_many([NewFact(f"Note {n} about Alice Stone") for n in range(1000)])
    asyncio.run(talk())
