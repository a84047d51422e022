"""The tables of the file, and how files of other programs and older versions become ours.

    facts ----< fact_entities >---- entities ----< entity_keys       facts_fts    full text over facts
      |----< fact_scopes       fact_extras (0 or 1 a fact)           changes      which facts changed, for other readers
      | '--< fact_roles >----'                                       history      what our writes did, to undo it
      |----< fact_vectors >---- models                               tombstones   contents once removed; meta
      '====< both_hold                                               (pairs of facts)

`facts`, `entities`, `fact_entities`, `memory_banks` and `facts_fts` with its triggers are those of the holographic
plugin of Hermes Agent, which must stay able to read and write the file. It neither knows `facts.terms` nor `fact_vectors`:

* `facts_ai`, `facts_ad`, `facts_au` keep the plugin's names, or it would add its own three and break the index.
* `facts_au` names its columns: a counter update must not rewrite the index (29 times slower, measured).
* What else we know of a fact stands beside it, in `fact_extras` and `fact_scopes`: the plugin returns all columns of `facts`.
* A content written without its terms is foreign: `facts_au_foreign` takes the row's terms and vectors away, and the
  partial index `facts_unanalysed` finds such rows at once.

Triggers append to `changes`, so that a reader refreshes just the facts and entities that changed, whoever wrote them.
Counters do not count as a change.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from holomem.errors import StoreError
from holomem.hrr import WIDTH

__all__ = ["VERSION", "adopt", "classify", "create", "rebuild_fts", "upgrade"]

# Columns in the order of a new file: the BLOB last, so that the others are read without its overflow pages.
_FACTS: Final = """
CREATE TABLE facts (
    fact_id         INTEGER PRIMARY KEY AUTOINCREMENT,
    content         TEXT NOT NULL UNIQUE,
    category        TEXT DEFAULT 'general',
    tags            TEXT DEFAULT '',
    trust_score     REAL DEFAULT 0.5,
    retrieval_count INTEGER DEFAULT 0,
    helpful_count   INTEGER DEFAULT 0,
    created_at      TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at      TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    terms           TEXT,
    hrr_vector      BLOB
)"""

_PLUGIN_TABLES: Final = """
CREATE TABLE IF NOT EXISTS entities (
    entity_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT NOT NULL,
    entity_type TEXT DEFAULT 'unknown',
    aliases     TEXT DEFAULT '',
    created_at  TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS fact_entities (
    fact_id   INTEGER REFERENCES facts(fact_id),
    entity_id INTEGER REFERENCES entities(entity_id),
    PRIMARY KEY (fact_id, entity_id)
);
CREATE TABLE IF NOT EXISTS memory_banks (
    bank_id    INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_name  TEXT NOT NULL UNIQUE,
    vector     BLOB NOT NULL,
    dim        INTEGER NOT NULL,
    fact_count INTEGER DEFAULT 0,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX IF NOT EXISTS idx_facts_trust    ON facts(trust_score DESC);
CREATE INDEX IF NOT EXISTS idx_facts_category ON facts(category);
CREATE INDEX IF NOT EXISTS idx_entities_name  ON entities(name);
"""

_OUR_TABLES: Final = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE models (
    model_id    INTEGER PRIMARY KEY,
    identity    TEXT NOT NULL UNIQUE,  -- types.ModelId as JSON
    calibration BLOB
);
CREATE TABLE fact_vectors (
    vector_id       INTEGER PRIMARY KEY,
    fact_id         INTEGER NOT NULL REFERENCES facts(fact_id),
    model_id        INTEGER NOT NULL REFERENCES models(model_id),
    semantic_vector BLOB NOT NULL
);
CREATE UNIQUE INDEX fact_vectors_fact ON fact_vectors(fact_id, model_id);
CREATE TABLE entity_keys (
    key       TEXT NOT NULL,  -- entities.key of a name or alias; case-folding is ours, SQLite folds ASCII only
    entity_id INTEGER NOT NULL REFERENCES entities(entity_id),
    PRIMARY KEY (key, entity_id)
) WITHOUT ROWID;
CREATE INDEX entity_keys_entity ON entity_keys(entity_id);
CREATE INDEX fact_entities_entity ON fact_entities(entity_id);
CREATE TABLE changes (seq INTEGER PRIMARY KEY AUTOINCREMENT, fact_id INTEGER, entity_id INTEGER);
CREATE TABLE tombstones (content_hash BLOB PRIMARY KEY, removed_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP) WITHOUT ROWID;
CREATE INDEX facts_unanalysed ON facts(fact_id) WHERE terms IS NULL;
"""

_FTS: Final = """
CREATE VIRTUAL TABLE facts_fts USING fts5(content, tags, terms, content=facts, content_rowid=fact_id)"""

_FTS_DELETE: Final = """INSERT INTO facts_fts(facts_fts, rowid, content, tags, terms)
        VALUES ('delete', old.fact_id, old.content, old.tags, old.terms);"""
_FTS_INSERT: Final = """INSERT INTO facts_fts(rowid, content, tags, terms)
        VALUES (new.fact_id, new.content, new.tags, new.terms);"""
_FOREIGN: Final = "new.content IS NOT old.content AND new.terms IS old.terms AND new.terms IS NOT NULL"

_TRIGGERS: Final = f"""
CREATE TRIGGER facts_ai AFTER INSERT ON facts BEGIN
    {_FTS_INSERT}
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER facts_ad AFTER DELETE ON facts BEGIN
    {_FTS_DELETE}
    DELETE FROM fact_vectors WHERE fact_id = old.fact_id;
    INSERT INTO changes(fact_id) VALUES (old.fact_id);
END;
CREATE TRIGGER facts_au AFTER UPDATE OF content, tags, terms ON facts WHEN NOT ({_FOREIGN}) BEGIN
    {_FTS_DELETE}
    {_FTS_INSERT}
END;
-- Taking the terms away fires facts_au, which finds in the index just what stands here before it.
CREATE TRIGGER facts_au_foreign AFTER UPDATE OF content ON facts WHEN {_FOREIGN} BEGIN
    {_FTS_DELETE}
    {_FTS_INSERT}
    DELETE FROM fact_vectors WHERE fact_id = new.fact_id;
    UPDATE facts SET terms = NULL WHERE fact_id = new.fact_id;
END;
CREATE TRIGGER facts_changed AFTER UPDATE
OF content, category, tags, trust_score, created_at, updated_at, terms, hrr_vector ON facts BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_vectors_added AFTER INSERT ON fact_vectors BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_vectors_changed AFTER UPDATE ON fact_vectors BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_entities_added AFTER INSERT ON fact_entities BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_entities_removed AFTER DELETE ON fact_entities BEGIN
    INSERT INTO changes(fact_id) VALUES (old.fact_id);
END;
CREATE TRIGGER entities_added AFTER INSERT ON entities BEGIN
    INSERT INTO changes(entity_id) VALUES (new.entity_id);
END;
CREATE TRIGGER entities_changed AFTER UPDATE ON entities BEGIN
    DELETE FROM entity_keys WHERE entity_id = new.entity_id;
    INSERT INTO changes(entity_id) VALUES (new.entity_id);
END;
CREATE TRIGGER entities_removed AFTER DELETE ON entities BEGIN
    DELETE FROM entity_keys WHERE entity_id = old.entity_id;
    INSERT INTO changes(entity_id) VALUES (old.entity_id);
END;
"""

_ROLES: Final = """
CREATE TABLE fact_roles (
    fact_id   INTEGER NOT NULL REFERENCES facts(fact_id),
    role      TEXT NOT NULL,  -- roles.role_name
    entity_id INTEGER NOT NULL REFERENCES entities(entity_id),  -- the filler, an entity of the fact as well
    PRIMARY KEY (fact_id, role)
) WITHOUT ROWID;
CREATE INDEX fact_roles_filler ON fact_roles(role, entity_id);
CREATE TRIGGER fact_roles_added AFTER INSERT ON fact_roles BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_roles_changed AFTER UPDATE ON fact_roles BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_roles_removed AFTER DELETE ON fact_roles BEGIN
    INSERT INTO changes(fact_id) VALUES (old.fact_id);
END;
-- Whoever takes the link away, the plugin too, takes the role away.
CREATE TRIGGER fact_roles_unlinked AFTER DELETE ON fact_entities BEGIN
    DELETE FROM fact_roles WHERE fact_id = old.fact_id AND entity_id = old.entity_id;
END;
CREATE TRIGGER fact_roles_orphaned AFTER DELETE ON facts BEGIN
    DELETE FROM fact_roles WHERE fact_id = old.fact_id;
END;
"""

_UNLINKED: Final = """
CREATE TABLE unlinked (
    fact_id INTEGER NOT NULL REFERENCES facts(fact_id),
    key     TEXT NOT NULL,  -- entities.key of a name that somebody said this fact is not about; '' all but its own
    PRIMARY KEY (fact_id, key)
) WITHOUT ROWID;
CREATE TRIGGER unlinked_orphaned AFTER DELETE ON facts BEGIN
    DELETE FROM unlinked WHERE fact_id = old.fact_id;
END;
"""

_BANKS: Final = """
CREATE TABLE bank_sums (
    bank_name TEXT PRIMARY KEY,  -- of memory_banks
    total     BLOB NOT NULL,     -- complex128: the sum whose angles the bank's vector is
    facts     INTEGER NOT NULL,
    written   BLOB NOT NULL      -- SHA-256 of the vector that we wrote last
);
"""

_EXTRAS: Final = """
CREATE TABLE fact_extras (
    fact_id       INTEGER PRIMARY KEY REFERENCES facts(fact_id),
    source        TEXT,
    metadata      TEXT,    -- JSON
    expires_at    TEXT,    -- UTC, 'YYYY-MM-DD HH:MM:SS.ffffff': texts compare as times do
    superseded_by INTEGER  -- 0: by a fact that is not in this file
);
CREATE INDEX fact_extras_source ON fact_extras(source) WHERE source IS NOT NULL;
CREATE TABLE fact_scopes (  -- a fact without any belongs to all; '' stands for a part that is not named
    fact_id INTEGER NOT NULL REFERENCES facts(fact_id),
    user    TEXT NOT NULL,
    agent   TEXT NOT NULL,
    run     TEXT NOT NULL,
    PRIMARY KEY (fact_id, user, agent, run)
) WITHOUT ROWID;
CREATE TABLE history (
    change_id   INTEGER PRIMARY KEY AUTOINCREMENT,
    fact_id     INTEGER NOT NULL,
    action      TEXT NOT NULL,
    changed_at  TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    before      TEXT,     -- JSON; types.Change says what
    after       TEXT,
    with_change INTEGER
);
CREATE INDEX history_with ON history(with_change) WHERE with_change IS NOT NULL;
CREATE TRIGGER facts_removed AFTER DELETE ON facts BEGIN
    DELETE FROM fact_extras WHERE fact_id = old.fact_id;
    DELETE FROM fact_scopes WHERE fact_id = old.fact_id;
END;
CREATE TRIGGER fact_extras_added AFTER INSERT ON fact_extras BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_extras_changed AFTER UPDATE ON fact_extras BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_extras_removed AFTER DELETE ON fact_extras BEGIN
    INSERT INTO changes(fact_id) VALUES (old.fact_id);
END;
CREATE TRIGGER fact_scopes_added AFTER INSERT ON fact_scopes BEGIN
    INSERT INTO changes(fact_id) VALUES (new.fact_id);
END;
CREATE TRIGGER fact_scopes_removed AFTER DELETE ON fact_scopes BEGIN
    INSERT INTO changes(fact_id) VALUES (old.fact_id);
END;
"""

_BOTH_HOLD: Final = """
CREATE TABLE both_hold (  -- pairs that somebody looked at and said to be no contradiction
    first_id  INTEGER NOT NULL REFERENCES facts(fact_id),
    second_id INTEGER NOT NULL REFERENCES facts(fact_id),  -- the larger one
    PRIMARY KEY (first_id, second_id)
) WITHOUT ROWID;
CREATE INDEX both_hold_second ON both_hold(second_id);
CREATE TRIGGER both_hold_orphaned AFTER DELETE ON facts BEGIN
    DELETE FROM both_hold WHERE first_id = old.fact_id OR second_id = old.fact_id;
END;
CREATE TRIGGER both_hold_outdated AFTER UPDATE OF content ON facts WHEN new.content IS NOT old.content BEGIN
    DELETE FROM both_hold WHERE first_id = old.fact_id OR second_id = old.fact_id;
END;
"""

# What makes a file of each format one of the next; a new file goes through all of them.
_STEPS: Final = (_ROLES, _UNLINKED, _EXTRAS, _BANKS, _BOTH_HOLD)
VERSION: Final = 1 + len(_STEPS)

_PLUGIN_COLUMNS: Final = {  # what an old file of the plugin may lack, with the type to add
    "category": "TEXT DEFAULT 'general'",
    "tags": "TEXT DEFAULT ''",
    "trust_score": "REAL DEFAULT 0.5",
    "retrieval_count": "INTEGER DEFAULT 0",
    "helpful_count": "INTEGER DEFAULT 0",
    "created_at": "TIMESTAMP",
    "updated_at": "TIMESTAMP",
    "terms": "TEXT",
    "hrr_vector": "BLOB",
}


# The width that most vectors of the file have: the plugin's `hrr_dim` is a setting, and a file must stay of one width.
_ADOPTED_WIDTH: Final = """
INSERT INTO meta (key, value) SELECT 'hrr_width', coalesce((
    SELECT CASE WHEN substr(hrr_vector, 1, 4) = X'48525231' THEN (length(hrr_vector) - 4) / 4
                ELSE length(hrr_vector) / 8 END AS width
    FROM facts WHERE length(hrr_vector) > 0 GROUP BY width ORDER BY count(*) DESC LIMIT 1), ?)"""


def classify(connection: sqlite3.Connection) -> str:
    """What the file is: 'empty', 'ours', 'older' (to be upgraded), or 'foreign' (a plugin's file, to be adopted).

    Raises StoreError for a file of another program, and for one that a newer holomem made.
    """
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return "empty"
    if "facts" not in tables:
        raise StoreError("it is an SQLite file of another program (no table `facts`); name another file")
    if "meta" in tables and version > VERSION:
        raise StoreError(f"its format is {version}, this holomem knows {VERSION}; upgrade holomem")
    if "meta" in tables and version >= 1:
        return "ours" if version == VERSION else "older"
    columns = _columns(connection)
    if not {"fact_id", "content"} <= columns:
        raise StoreError("its table `facts` has other columns; it was made by another program, name another file")
    return "foreign"


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a new file, inside the caller's transaction."""
    for statement in (_FACTS, *_statements(_PLUGIN_TABLES), *_statements(_OUR_TABLES), _FTS, *_statements(_TRIGGERS)):
        connection.execute(statement)
    connection.execute("INSERT INTO meta (key, value) VALUES ('hrr_width', ?)", (WIDTH,))
    upgrade(connection, since=1)


def adopt(connection: sqlite3.Connection) -> None:
    """Make a plugin's file ours, inside the caller's transaction; no fact, link or counter is touched.

    The rows keep `terms` NULL, which marks them as not analysed: the store mends them as any foreign row.
    Index first, triggers last: an update while triggers stand over an empty index ends in "malformed".
    """
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'facts'"):
        connection.execute(f'DROP TRIGGER "{name}"')
    connection.execute("DROP TABLE IF EXISTS facts_fts")
    present = _columns(connection)
    for column, kind in _PLUGIN_COLUMNS.items():
        if column not in present:
            connection.execute(f"ALTER TABLE facts ADD COLUMN {column} {kind}")
    for statement in (*_statements(_PLUGIN_TABLES), *_statements(_OUR_TABLES), _FTS):
        connection.execute(statement)
    if "semantic_vector" in present:  # SPEC 1: of an unknown model
        connection.execute("UPDATE facts SET semantic_vector = NULL")
    rebuild_fts(connection)
    for statement in _statements(_TRIGGERS):
        connection.execute(statement)
    connection.execute(_ADOPTED_WIDTH, (WIDTH,))
    upgrade(connection, since=1)


def upgrade(connection: sqlite3.Connection, *, since: int | None = None) -> None:
    """Take a file of ours from format `since`, its own unless given, to `VERSION`, inside the caller's transaction."""
    if since is None:
        since = connection.execute("PRAGMA user_version").fetchone()[0]
    for step in _STEPS[since - 1 :]:
        for statement in _statements(step):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def rebuild_fts(connection: sqlite3.Connection) -> None:
    """Write the full-text index anew from `facts`, inside the caller's transaction."""
    connection.execute("INSERT INTO facts_fts(facts_fts) VALUES ('rebuild')")


def _columns(connection: sqlite3.Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(facts)")}


def _statements(script: str) -> list[str]:
    """The statements of a script one by one: `executescript` would commit the transaction."""
    statements, pending = [], ""
    for line in script.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    return statements
