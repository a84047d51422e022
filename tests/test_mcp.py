"""The MCP server, asked by the SDK's own client over stdio and over HTTP, and by hand with what is no message."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from importlib.metadata import version

import pytest

pytest.importorskip("mcp")

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from holomem import Memory

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
NEWER = int(version("mcp").split(".")[0]) >= 2
READ = {"search", "fetch", "probe", "related", "reason", "ask", "why", "contradictions", "list_facts", "entities"}
WRITE = {"add_fact", "update_fact", "remove_fact", "rate_fact"}


def command(path, *options):
    return [sys.executable, "-m", "holomem", "--db", str(path), "--no-model", "mcp", *options]


@asynccontextmanager
async def over_stdio(path, *options):
    program, *arguments = command(path, *options)
    server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def over_http(path, *options):
    if NEWER:
        from mcp.client.streamable_http import streamable_http_client as client
    else:
        from mcp.client.streamable_http import streamablehttp_client as client
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        command(path, "--http", "--port", str(port), *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        await listening(process, port)
        async with client(f"http://127.0.0.1:{port}/mcp") as streams, ClientSession(*streams[:2]) as session:
            await session.initialize()
            yield session
    finally:
        process.terminate()
        process.communicate()


async def listening(process, port):
    for _ in range(300):
        assert process.poll() is None, process.stderr.read()
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise AssertionError("the server does not listen")


def field(value, name):
    """A field by its name in the protocol; the newer SDK has another in Python."""
    return getattr(value, name if hasattr(value, name) else re.sub("([A-Z])", lambda m: "_" + m[1].lower(), name))


async def call(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    assert not field(result, "isError"), result.content[0].text
    structured = field(result, "structuredContent")
    assert json.loads(result.content[0].text) == structured
    return structured


async def error(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    assert field(result, "isError"), result
    return result.content[0].text


@pytest.fixture(params=[over_stdio, over_http], ids=["stdio", "http"])
def connect(request):
    return request.param


def test_a_client_lists_and_calls_every_tool(path, connect):
    async def talk():
        async with connect(path) as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert set(tools) == READ | WRITE
            for name, tool in tools.items():
                assert field(tool.annotations, "readOnlyHint") is (name in READ)
                assert field(tool.annotations, "destructiveHint") is (name == "remove_fact")
                assert field(tool.annotations, "openWorldHint") is False
                assert tool.description
                assert field(tool, "outputSchema")["properties"]
            said = "Алиса Чен работает в Порту 🦆"
            added = await call(session, "add_fact", content=said, category="project", tags="a,b")
            assert added == {"fact_id": 1, "status": "added"}
            await call(
                session, "add_fact", content="Bob Smith owns nginx", roles={"owner": "Bob Smith", "service": "nginx"}
            )
            await call(session, "add_fact", content="Bob Smith deploys nginx to Kubernetes every Tuesday")
            await call(session, "add_fact", content="Bob Smith deploys nginx to Kubernetes every Friday")
            found = await call(session, "search", query="Алиса Чен")
            assert found["results"][0]["content"] == said
            assert (await call(session, "fetch", fact_id=2))["roles"] == {"owner": "Bob Smith", "service": "nginx"}
            assert (await call(session, "probe", entity="Bob Smith"))["count"] == 3
            assert "results" in await call(session, "related", entity="Bob Smith")
            assert (await call(session, "reason", entities=["Bob Smith", "nginx"]))["count"] >= 1
            answers = await call(session, "ask", role="owner", roles={"service": "nginx"})
            assert answers["results"][0]["filler"] == "Bob Smith"
            why = (await call(session, "why", query="who owns nginx?"))["results"][0]["why"]
            assert why["channels"]["semantic"] is None
            assert (await call(session, "contradictions"))["count"] >= 1
            assert (await call(session, "list_facts", limit=2))["count"] == 2
            assert (await call(session, "entities"))["total"] >= 2
            assert await call(session, "rate_fact", fact_id=1, helpful=True) == {
                "fact_id": 1, "old_trust": 0.5, "new_trust": 0.55, "helpful_count": 1}  # fmt: skip
            assert await call(session, "update_fact", fact_id=1, tags="c") == {"updated": True}
            assert await call(session, "remove_fact", fact_id=4) == {"removed": True}
            assert await call(session, "remove_fact", fact_id=4) == {"removed": False}
            status = json.loads((await session.read_resource("memory://status")).contents[0].text)
            assert status["facts"] == 3
            fact = (await session.read_resource("memory://facts/1")).contents[0].text
            assert said in fact  # as UTF-8, not as escapes
            uris = {str(resource.uri) for resource in (await session.list_resources()).resources}
            assert uris == {"memory://status"}
            assert len(field(await session.list_resource_templates(), "resourceTemplates")) == 1

    asyncio.run(talk())


def test_bad_arguments_get_errors_that_can_be_acted_on(path, connect):
    with Memory(path, embedder=None) as memory:
        memory.add("Bob Smith owns nginx")

    async def talk():
        async with connect(path) as session:
            assert "limit is 0; use a whole number" in await error(session, "search", query="x", limit=0)
            assert "content must not be empty" in await error(session, "add_fact", content="  ")
            assert "no fact 99" in await error(session, "fetch", fact_id=99)
            assert "no fact 99" in await error(session, "rate_fact", fact_id=99, helpful=False)
            assert "min_trust" in await error(session, "search", query="x", min_trust=7)
            assert "trust_delta" in await error(session, "update_fact", fact_id=1, trust_delta=2)
            names = [tool.name for tool in (await session.list_tools()).tools]
            for name in names:
                for arguments in ({}, {"limit": "many"}, {"fact_id": [1]}, {"query": None}, {"nonsense": {}},
                                  {"fact_id": 10**30}, {"entity": {"a": []}}, {"content": "a\x00b" * 3}):  # fmt: skip
                    result = await session.call_tool(name, arguments)
                    text = result.content[0].text
                    assert text
                    assert "Traceback" not in text
                    assert "the memory failed" not in text
            assert (await call(session, "list_facts", limit=10**6))["count"] <= 2

    asyncio.run(talk())
    with Memory(path, embedder=None) as memory:
        assert memory.get(1).content == "Bob Smith owns nginx"


def test_a_server_of_one_scope_neither_shows_nor_changes_what_belongs_to_others(path):
    async def talk():
        async with over_stdio(path, "--scope", "user=ann") as ann, over_stdio(path, "--scope", "user=bob") as bob:
            secret = (await call(ann, "add_fact", content="The code of Ann's safe is 4711", entities=["safe"]))[
                "fact_id"
            ]
            assert (await call(ann, "search", query="code of the safe"))["count"] == 1
            for tool, asked in (
                ("search", {"query": "code of the safe 4711"}), ("probe", {"entity": "safe"}), ("list_facts", {}),
                ("related", {"entity": "safe"}), ("reason", {"entities": ["safe"]}), ("contradictions", {}),
                ("why", {"query": "code of the safe"}),
            ):  # fmt: skip
                assert (await call(bob, tool, **asked))["results" if tool != "list_facts" else "facts"] == []
            assert (await call(bob, "entities"))["total"] == 0
            assert "4711" not in await error(bob, "fetch", fact_id=secret)
            assert await call(bob, "update_fact", fact_id=secret, content="0000") == {"updated": False}
            await error(bob, "rate_fact", fact_id=secret, helpful=False)
            assert await call(bob, "remove_fact", fact_id=secret) == {"removed": False}
            status = json.loads((await bob.read_resource("memory://status")).contents[0].text)
            assert status["facts"] == 0
            assert (await call(ann, "fetch", fact_id=secret))["content"] == "The code of Ann's safe is 4711"

    asyncio.run(talk())


def test_a_read_only_server_offers_no_tool_that_writes(path):
    with Memory(path, embedder=None) as memory:
        memory.add("Bob Smith owns nginx")

    async def talk():
        async with over_stdio(path, "--read-only") as session:
            assert {tool.name for tool in (await session.list_tools()).tools} == READ
            assert (await call(session, "search", query="nginx"))["count"] == 1

    asyncio.run(talk())


HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
         "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip


def lines(*messages):
    return b"".join((m if isinstance(m, bytes) else json.dumps(m).encode()) + b"\n" for m in messages)


def test_stdout_holds_messages_only_and_the_server_ends_with_its_input_mcp_01(path, tmp_path):
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    # warnings on, and a library that prints to stdout, in Python and below it
    (noisy / "sitecustomize.py").write_text(
        "import sqlite3, os\nreal = sqlite3.connect\n"
        "def connect(*a, **k):\n    print('a banner'); os.write(1, b'below python\\n'); return real(*a, **k)\n"
        "sqlite3.connect = connect\n"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "always"}
    environment["PYTHONPATH"] = os.pathsep.join([str(noisy), environment.get("PYTHONPATH", "")])
    calls = [
        {"jsonrpc": "2.0", "id": 100 + n, "method": "tools/call",
         "params": {"name": "add_fact", "arguments": {"content": f"факт {n} über 晚上"}}}
        for n in range(50)
    ]  # fmt: skip
    asked = [HELLO, {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, *calls, b"this is no message", b"{\"jsonrpc\": ",
             {"jsonrpc": "2.0", "id": 999, "method": "tools/list"}]  # fmt: skip
    process = subprocess.Popen(
        [argument for argument in command(path) if argument != "--no-model"],  # with the model, which is missing
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
    )  # fmt: skip
    process.stdin.write(lines(*asked))
    process.stdin.flush()
    answers = {}
    begin = time.monotonic()
    while not {1, 2, 999, *(100 + n for n in range(50))} <= set(answers) and time.monotonic() - begin < 60:
        line = process.stdout.readline()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        answers[message.get("id")] = line
    rest, noise = process.communicate(timeout=20)
    for line in rest.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert process.returncode == 0
    assert b"a banner" in noise
    assert b"below python" in noise
    assert b"tools" in answers[999]
    with Memory(path, embedder=None) as memory:
        assert len(memory) == 50


def test_a_damaged_file_is_one_line_on_stderr(path):
    path.write_text("this is no database " * 50)
    run = subprocess.run(command(path), input=lines(HELLO), capture_output=True, timeout=60)
    assert run.returncode == 1
    assert run.stdout == b""
    assert run.stderr.startswith(b"error: ")
    assert len(run.stderr.splitlines()) == 1


def test_without_the_sdk_the_remedy_is_told(path, tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('no SDK')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    run = subprocess.run(command(path), input=b"", capture_output=True, env=environment, timeout=60)
    assert run.returncode == 1
    assert b"pip install 'holomem[mcp]'" in run.stderr
