"""The provider as hosts newer than the installed Hermes call it, and the command line of the installed one."""

import inspect
import json
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from holomem.hermes import HolomemProvider
from holomem.hermes.install import install

needs_hermes = pytest.mark.skipif(find_spec("hermes_cli") is None, reason="hermes-agent is not installed")


@pytest.fixture
def home(tmp_path):
    (tmp_path / "config.yaml").write_text("memory:\n  provider: holomem\n")
    return tmp_path


class Collector:
    """What a host hands to `register`."""

    def register_memory_provider(self, provider):
        self.provider = provider


def by_entry_point(synthetic):
    """The provider as newer hosts get it: the folder of the entry point, loaded under a name of the host's own."""
    (point,) = entry_points(group="hermes_agent.memory_providers", name="holomem")
    folder = Path(find_spec(point.module).origin).parent
    spec = spec_from_file_location(synthetic, folder / "__init__.py", submodule_search_locations=[str(folder)])
    module = module_from_spec(spec)
    sys.modules[synthetic] = module
    try:
        spec.loader.exec_module(module)
        collector = Collector()
        module.register(collector)
    finally:
        del sys.modules[synthetic]
    return collector.provider


def live(provider, home):
    """A session of a host of about 0.21: everything it passes beyond 0.19, and hooks only where they are found."""
    provider.initialize(
        "s1", hermes_home=str(home), platform="cli", agent_context="primary", user_id="u1", user_id_alt="u2", chat_id=7,
        chat_type="group", thread_id=None, session_title="t", session_title_source="auto", cwd="/", agent_identity="default",
        agent_workspace="hermes", gateway_session_key="k", warning_callback=print, status_callback=print, yet_unknown=object(),
    )  # fmt: skip
    assert provider.unavailable_reason() == ""
    call = {"action": "add", "content": "Alice Johnson deploys nginx", "yet_unknown": 1}
    added = json.loads(
        provider.handle_tool_call("fact_store", call, session_id="s1", turn_author={"id": "u1"}, task_id="x")
    )
    assert added == {"fact_id": 1, "status": "added"}
    provider.on_turn_start(
        1, "hello", author_id="u1", author_name="Ann", author_is_bot=False, remaining_tokens=9, model="m"
    )
    recalled = provider.prefetch("who deploys nginx?", session_id="s1")
    assert "- fact 1 " in recalled
    provider.recall_status()
    provider.queue_prefetch("next", session_id="s1")
    provider.sync_turn("u", "a", session_id="s1", messages=[], turn_author={"id": "u1", "name": "Ann", "is_bot": False})
    provider.on_memory_write("add", "user", "User likes dark mode", metadata={"write_origin": "tool", "task_id": "x"})
    provider.on_memory_write(
        "replace", "user", "User likes light mode",
        metadata={"old_text": "dark", "previous_content": "User likes dark mode", "session_id": "s1"},
    )  # fmt: skip
    provider.on_memory_write("yet_unknown", "elsewhere", "text", metadata=None)
    assert provider.on_pre_compress([{"role": "user", "content": "x"}], require_checkpoint=False) == ""
    provider.on_delegation("t", "r", child_session_id="c", child_role="leaf", status="done")
    provider.on_session_switch("s2", parent_session_id="s1", reset=False, rewound=True, reason="branch")
    provider.on_session_end(
        [{"role": "user", "content": [{"type": "text", "text": "parts"}]}, {"role": "tool", "content": None}]
    )
    listed = json.loads(provider.handle_tool_call("fact_store", {"action": "list"}))["facts"]
    assert {row["content"] for row in listed} == {"Alice Johnson deploys nginx", "User likes light mode"}
    json.dumps(
        [
            provider.get_tool_schemas(),
            provider.get_config_schema(),
            provider.get_status_config({}),
            provider.backup_paths(),
        ]
    )
    provider.shutdown()
    provider.shutdown()


def test_a_newer_host_finds_the_entry_point_and_passes_more(home, monkeypatch):
    monkeypatch.setenv("HERMES_HOME", str(home))
    live(by_entry_point("_hermes_user_memory.holomem__source_0123456789abcdef"), home)


def test_hooks_that_a_host_never_calls_are_not_missed(home):
    provider = HolomemProvider()
    assert provider.prefetch("who deploys nginx?") == ""  # not initialized, as in an inspection
    assert "error" in json.loads(provider.handle_tool_call("fact_store", {"action": "list"}))
    provider.initialize("s1", hermes_home=str(home))
    assert json.loads(provider.handle_tool_call("fact_store", {"action": "list"})) == {"facts": [], "count": 0}
    provider.shutdown()
    assert provider.prefetch("who deploys nginx?") == ""


def test_signatures_take_what_newer_hosts_look_for():
    told = inspect.signature(HolomemProvider.sync_turn).parameters
    assert {"session_id", "messages", "turn_author"} <= set(told)  # sent only where the signature has them
    for hook in (
        "initialize",
        "handle_tool_call",
        "on_turn_start",
        "on_session_switch",
        "on_delegation",
        "on_pre_compress",
    ):
        kinds = {parameter.kind for parameter in inspect.signature(getattr(HolomemProvider, hook)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD in kinds, hook


@pytest.mark.parametrize("context", ["cron", "subagent", "flush"])
def test_a_host_that_only_watches_has_nothing_mirrored(home, context):
    provider = HolomemProvider()
    provider.initialize("s1", hermes_home=str(home), agent_context=context)
    provider.on_memory_write("add", "user", "User likes dark mode", metadata={})
    assert json.loads(provider.handle_tool_call("fact_store", {"action": "list"}))["count"] == 0
    provider.shutdown()


FUZZ = (
    None, True, -1, 0, 1.5, 10**40, float("nan"), float("inf"), "", " ", "1", "1.0", "-7", "\u0661", "' OR 1=1 --", '"*', "数据库",
    "\ud800", "\u202e\u200b", "a\x00b", "x" * 20_000, b"bytes", [], [[]], ["Алиса", None], {}, {"a": {"b": []}}, {1: 2}, object(),
)  # fmt: skip


def test_whatever_a_model_sends_the_provider_answers_with_json(home):
    provider = HolomemProvider()
    provider.initialize("s1", hermes_home=str(home))
    actions = provider.get_tool_schemas()[0]["parameters"]["properties"]["action"]["enum"]
    names = provider.get_tool_schemas()[0]["parameters"]["properties"]
    sound = {"content": "Bob owns nginx", "query": "nginx", "entity": "nginx", "entities": ["nginx"], "fact_id": 1,
             "role": "owner", "roles": {"service": "nginx"}}  # fmt: skip
    for action in actions:
        for name in names:
            for value in FUZZ:
                answer = json.loads(provider.handle_tool_call("fact_store", {"action": action, **sound, name: value}))
                assert "the memory failed" not in str(answer.get("error")), (action, name, value)
    for arguments in (None, [], "text", 7, {"action": None}):
        assert "error" in json.loads(provider.handle_tool_call("fact_store", arguments))
    provider.shutdown()


COMMANDS = """
import sys
from hermes_cli.main import main
for command in ("config set memory.provider holomem", "memory status", "doctor", "plugins --help", "memory off", "memory status"):
    print("COMMAND", command, flush=True)
    sys.argv = ["hermes", *command.split()]
    try:
        main()
    except SystemExit as end:
        print("STATUS", end.code)
"""


def run(home, code, *arguments):
    environment = {"HERMES_HOME": str(home), "HOME": str(home), "PYTHONUTF8": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, encoding="utf-8",
                          env=environment, timeout=120, stdin=subprocess.DEVNULL)  # fmt: skip


@needs_hermes
def test_the_commands_of_hermes_are_happy_with_the_installed_folder(tmp_path):
    folder = install(tmp_path)
    done = run(tmp_path, COMMANDS)
    assert "Traceback" not in done.stdout + done.stderr
    _, _, status, doctor, plugins, _, off = done.stdout.split("COMMAND")
    assert "installed ✓" in status
    assert "available ✓" in status
    assert "holomem provider active" in doctor
    assert "available ✓" not in off
    if "validate" in plugins:  # newer versions
        code = "import sys; from hermes_cli.main import main; sys.argv[0] = 'hermes'; main()"
        checked = run(tmp_path, code, "plugins", "validate", str(folder))
        assert checked.returncode == 0, checked.stdout + checked.stderr
