"""`HolomemProvider`: the memory as Hermes Agent 0.19 and newer ask for it.

Hooks that an older host does not know are simply never called; those of a newer one take what they do not know.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holomem import tools
from holomem.errors import HolomemError
from holomem.hermes import mirror, recall
from holomem.hermes.extraction import extract
from holomem.hermes.opening import OpenMemory, acquire, release
from holomem.hermes.settings import FIELDS, Settings, hermes_home, memory_path, read, write
from holomem.selection import UNASKED_MIN_SCORE
from holomem.types import NewFact

if TYPE_CHECKING:

    class MemoryProvider:
        """Stands for the class of Hermes, which has no types."""

else:
    try:
        from agent.memory_provider import MemoryProvider
    except ImportError:  # outside of Hermes
        MemoryProvider = object

__all__ = ["HolomemProvider"]

logger = logging.getLogger(__name__)

RECALLED: Final = 5  # facts before a turn
PREFETCH_SECONDS: Final = 3.0  # the host waits 8, and skips us for good when that is not enough
SETTLE_SECONDS: Final = 3.0  # a tool call waits this long for mirrored writes, which it might ask for
SHUTDOWN_SECONDS: Final = 4.0  # the host waits 5
WATCHING: Final = frozenset({"cron", "subagent", "flush"})  # contexts in which nobody tells us anything: read only


class HolomemProvider(MemoryProvider):
    """One session's view of a memory, which other sessions of the process may share."""

    pre_compress_checkpoint_api_version = 1

    def __init__(self) -> None:
        self._home = Path()
        self._settings = Settings()
        self._opened: OpenMemory | None = None
        self._problem = "the memory is not open yet"
        self._session = ""
        self._user = self._chat = ""
        self._authors: set[str] = set()
        self._writes = True
        self._recalled = 0
        self._recall: threading.Thread | None = None

    @property
    def name(self) -> str:
        """The name in `memory.provider`."""
        return "holomem"

    # ---- life ---------------------------------------------------------------------------------------------------

    def is_available(self) -> bool:
        """True: nothing but this package is needed."""
        return True

    def unavailable_reason(self) -> str:
        """Empty, see `is_available`."""
        return ""

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Open the memory of this profile, user or chat; its model is loaded in the background."""
        self._home = Path(kwargs.get("hermes_home") or hermes_home())
        self._settings = read(self._home)
        self._session = session_id
        self._user, self._chat = (str(kwargs.get(name) or "") for name in ("user_id", "chat_id"))
        self._authors = {self._user} if self._user else set()
        self._writes = str(kwargs.get("agent_context") or "primary") not in WATCHING
        self._open()

    def initialize_for_inspection(self, session_id: str, **kwargs: Any) -> None:
        """As `initialize`, storing nothing by itself."""
        self.initialize(session_id, **{**kwargs, "agent_context": "flush"})

    def shutdown(self) -> None:
        """Finish what is pending and close; the last session of a file unloads the model."""
        opened, self._opened = self._opened, None
        self._problem = "the memory is closed"
        if opened is not None:
            release(opened, SHUTDOWN_SECONDS)

    def on_session_switch(
        self, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, rewound: bool = False, **_: Any
    ) -> None:
        """Facts extracted from now on are of the new session."""
        self._session = new_session_id

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        """In a chat of several, where each user has a memory, go over to that of whoever speaks."""
        author = str(kwargs.get("author_id") or "")
        if author and self._opened is not None:
            self._authors.add(author)
            if self._settings.scope == "user" and author != self._user:
                self._user = author
                self._open()

    def _open(self) -> None:
        path = memory_path(self._settings, self._home, user_id=self._user, chat_id=self._chat)
        self.shutdown()
        try:
            self._opened = acquire(path, self._settings.half_life_days)
        except (HolomemError, OSError) as error:
            self._problem = str(error)
            logger.warning("holomem: %s", error)

    # ---- what the model sees ------------------------------------------------------------------------------------

    def system_prompt_block(self) -> str:
        """What the memory is and how it is used; empty when it is not open."""
        if self._opened is None:
            return ""
        count = len(self._opened.memory)
        if not count:
            return (
                "# Holomem memory\nActive, still empty. Store lasting facts about people, projects, preferences and "
                "decisions with fact_store(action='add'), one plain sentence each."
            )
        return (
            f"# Holomem memory\nActive, {count} facts. Search or probe with fact_store before you answer about the user or "
            "their work; add lasting facts, one plain sentence each; rate what you used with fact_feedback."
        )

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """The facts for a turn, within `PREFETCH_SECONDS`; empty for a prompt that asks for nothing, and in doubt."""
        self._recalled = 0
        opened = self._opened
        if opened is None or not isinstance(query, str) or recall.is_trivial(query):
            return ""
        if self._recall is not None and self._recall.is_alive():
            return ""  # the last one still hangs, perhaps on a locked file
        found: list[str] = []
        self._recall = threading.Thread(target=self._recall_into, args=(found, opened, query), daemon=True)
        self._recall.start()
        self._recall.join(PREFETCH_SECONDS)
        return found[0] if found else ""

    def _recall_into(self, found: list[str], opened: OpenMemory, query: str) -> None:
        try:
            with opened.embedder.hurried():
                hits = opened.memory.search(
                    query, limit=RECALLED, min_trust=self._settings.min_trust, min_score=UNASKED_MIN_SCORE
                )
        except Exception as error:  # a turn goes on without a memory
            logger.warning("holomem: nothing recalled: %s", error)
            return
        self._recalled = len(hits)
        found.append(recall.block(hits))

    def recall_status(self) -> Any:
        """How many facts the last `prefetch` gave, as newer hosts show it."""
        try:
            from agent.memory_provider import RecallStatus
        except ImportError:
            return None
        return RecallStatus(provider_label="Holomem", count=self._recalled) if self._recalled else None

    def queue_prefetch(self, query: str, *, session_id: str = "") -> None:
        """Nothing: a recall takes milliseconds, and the next prompt is not known yet."""

    # ---- tools --------------------------------------------------------------------------------------------------

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """`fact_store` and `fact_feedback`."""
        return list(tools.SCHEMAS)

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **_: Any) -> str:
        """The result of a tool as JSON; of a call that cannot be done, what is wrong with it."""
        opened = self._opened
        if opened is None:
            return json.dumps({"error": self._problem}, ensure_ascii=False)
        opened.settle_writes(SETTLE_SECONDS)
        settings = self._settings
        result = tools.call(
            opened.at_once(), tool_name, args, min_trust=settings.min_trust, trust_score=settings.default_trust
        )
        return json.dumps(result, ensure_ascii=False)

    # ---- what the host tells ------------------------------------------------------------------------------------

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
        turn_author: dict[str, Any] | None = None,
    ) -> None:
        """Nothing: facts are stored by tools, by the host's own memory and, if wanted, at the end of a session."""

    def on_memory_write(self, action: str, target: str, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Do to our copy what was done to an entry of the host's own memory, in the background."""
        opened = self._opened
        if opened is not None and self._writes:
            told = dict(metadata or {})
            trust = self._settings.default_trust
            opened.write_later(lambda: mirror.apply(opened.at_once(), action, target, content, told, trust))

    def on_session_end(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Store short facts from what the user said, if that is wanted."""
        self._extract(messages)

    def on_pre_compress(self, messages: Sequence[Mapping[str, Any]], **_: Any) -> str:
        """As at the end of a session, since these messages will not be there then."""
        self._extract(messages)
        return ""

    def _extract(self, messages: Sequence[Mapping[str, Any]]) -> None:
        opened = self._opened
        if opened is None or not self._settings.auto_extract or not self._writes or not messages:
            return
        if len(self._authors) > 1:
            return  # who of them prefers tabs?
        tags = f"extracted,session:{self._session.replace(',', ' ')}"
        trust = self._settings.default_trust
        facts = [NewFact(fact.content, fact.category, tags, None, trust) for fact in extract(messages)]
        if facts:
            opened.write_later(lambda: opened.at_once().add_many(facts))

    def on_delegation(self, task: str, result: str, *, child_session_id: str = "", **_: Any) -> None:
        """Nothing: what a helper found out is for the agent to judge and to store."""

    # ---- settings -----------------------------------------------------------------------------------------------

    def get_config_schema(self) -> list[dict[str, Any]]:
        """The fields of `hermes memory setup`."""
        return [dict(field) for field in FIELDS]

    def save_config(self, values: dict[str, Any], hermes_home: str) -> None:
        """Keep the settings in config.yaml, under plugins.holomem."""
        write(Path(hermes_home), values)

    def get_status_config(self, provider_config: Any) -> dict[str, Any]:
        """What `hermes memory status` shows."""
        home = hermes_home()
        settings = read(home)
        return {
            "file": str(memory_path(settings, home)),
            "scope": settings.scope,
            "auto_extract": settings.auto_extract,
        }

    def backup_paths(self) -> list[str]:
        """The memory's files where they lie outside of the profile, which `hermes backup` saves anyway."""
        home = hermes_home()
        settings = read(home)
        path = memory_path(settings, home)
        others = memory_path(settings, home, user_id="x", chat_id="x").parent
        paths = [path, *([others] if others != path.parent else [])]
        return [str(p) for p in paths if not p.resolve().is_relative_to(home.resolve())]
