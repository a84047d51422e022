"""The recipes of docs/doors.md, pasted: what a client's settings start is a server that answers."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs" / "doors.md").read_text("utf-8")
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
         "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.S | re.M)


def servers():
    """The command lines that the recipes make clients start."""
    for block in blocks("json"):
        settings = json.loads(block)
        server = settings.get("mcpServers", settings.get("servers"))["holomem"]
        yield [server["command"], *server["args"]]
    server = tomllib.loads(blocks("toml")[0])["mcp_servers"]["holomem"]
    yield [server["command"], *server["args"]]
    yield shlex.split(re.search(r"^claude mcp add holomem -- (.*)$", PAGE, re.M)[1])


def test_the_blocks_of_python_run(tmp_path):
    assert blocks("python")
    for code in blocks("python"):
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")
def test_every_client_is_told_a_command_that_serves(tmp_path):
    commands = list(servers())
    assert len(commands) == 5
    for program, *arguments in {tuple(command) for command in commands}:
        assert program == "holomem"
        done = subprocess.run(
            [sys.executable, "-m", "holomem", *arguments], input=json.dumps(HELLO) + "\n", capture_output=True, text=True,
            cwd=tmp_path, env={**os.environ, "HOLOMEM_DB": str(tmp_path / "m.db")}, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "holomem"


def test_the_settings_of_hermes_are_those_that_are_read(tmp_path):
    from holomem.hermes import settings

    (tmp_path / "config.yaml").write_text(
        blocks("yaml")[0].replace("scope: profile", "scope: chat").replace("half_life: 0", "half_life: 30"), "utf-8"
    )
    read = settings.read(tmp_path)
    assert read.scope == "chat"
    assert read.half_life_days == 30
    assert not read.auto_extract
    told = set(re.findall(r"^    (\w+):", blocks("yaml")[0], re.M))
    assert told >= {field["key"] for field in settings.FIELDS}
