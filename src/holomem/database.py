"""The file itself: opening it safely, transactions, checkpoints, copies. Knows SQLite, and nothing about facts.

One connection and one re-entrant lock; any thread may use it. Several processes may share the file.

SQLite 3.7.0 to 3.51.2 (except 3.44.6 and 3.50.7) can lose committed pages of a WAL file when a checkpoint races the
commit of another connection ("WAL-reset bug"). On those versions every commit, checkpoint and close of ours happens
under one lock between processes, and no connection of ours checkpoints by itself; other programs on the same file are
outside of this, which `doctor` says.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from filelock import BaseFileLock, FileLock, Timeout

from holomem import schema
from holomem.errors import StoreError

__all__ = ["Database", "batches", "has_wal_reset_bug", "placeholders"]

MEMORY: Final = ":memory:"
BUSY_SECONDS: Final = 30.0
WAL_BYTES: Final = 4_096_000  # checkpoint above it: SQLite's own default of 1000 pages
_HEADER: Final = b"SQLite format 3\0"
_BATCH: Final = 500  # ids in one IN (...): well below SQLite's limit of 999 variables in old builds


def has_wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Whether this SQLite can corrupt a WAL file when a checkpoint races a commit."""
    return (3, 7, 0) <= version <= (3, 51, 2) and version not in {(3, 44, 6), (3, 50, 7)}


class Database:
    """An open file. `read()` and `write()` give the connection inside a transaction."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        """Open `path`, make its tables or adopt those of the Hermes plugin; ":memory:" stays in memory.

        Raises StoreError when the file is another program's, newer, damaged or cannot be opened; it stays as it is.
        """
        self.path = MEMORY if os.fspath(path) == MEMORY else str(Path(path).expanduser().absolute())
        self.adopted_copy: str | None = None
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._between_processes: BaseFileLock | None = None
        self._writing = False
        with self._errors(), _system_errors(self.path):
            self.read_only = self._prepare_file(read_only)
            self._connection: sqlite3.Connection | None = self._connect()
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        """Close the file; the last one to close it leaves a single complete file. Closing twice is harmless."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None and os.getpid() == self._pid:
                with self._errors(), self._exclusive():  # closing checkpoints
                    connection.close()

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._connection is None

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """The connection, on one snapshot of the file. Never waits for a writer in WAL mode."""
        with self._lock, self._errors():
            connection = self._opened()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")

    @contextmanager
    def write(self, *, durable: bool = True, wait: bool = True) -> Iterator[sqlite3.Connection]:
        """The connection inside a write transaction: all of it is stored at the end, or nothing.

        `durable` survives a power loss; without it only a crash of the process. With `wait` False a file that is
        locked raises at once. Raises StoreError when the file is locked for `BUSY_SECONDS` or cannot be written.
        """
        with self._lock, self._errors():
            connection = self._opened()
            if self._writing:
                yield connection
                return
            if connection.in_transaction:  # it would end without the lock between processes
                raise RuntimeError("a write inside a read; begin with `write()`")
            if self.read_only:
                raise StoreError(f"{self.path} is open for reading only")
            with self._exclusive(wait=wait), self._configured(connection, durable=durable, wait=wait):
                connection.execute("BEGIN IMMEDIATE")
                self._writing = True
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                finally:
                    self._writing = False
                self._checkpoint_if_due(connection)

    def create_function(self, name: str, function: Callable[..., str | int | float | None]) -> None:
        """Give this connection's queries a function; nothing in the file may depend on it."""
        with self._lock:
            self._opened().create_function(name, -1, function, deterministic=True)

    def number(self, statement: str, *values: object) -> int:
        """The whole number that a query gives."""
        with self.read() as connection:
            return int(connection.execute(statement, values).fetchone()[0])

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        with self._lock, self._errors():
            return int(self._opened().execute("PRAGMA data_version").fetchone()[0])

    def journal_mode(self) -> str:
        """SQLite's journal mode of the file: wal, delete, memory, ..."""
        with self._lock, self._errors():
            return str(self._opened().execute("PRAGMA journal_mode").fetchone()[0])

    def file_bytes(self) -> int:
        """The size of the file with its write-ahead log; 0 in memory."""
        paths = [Path(self.path), Path(self.path + "-wal")]
        return 0 if self.path == MEMORY else sum(p.stat().st_size for p in paths if p.exists())

    def faults(self) -> list[str]:
        """What SQLite's and FTS5's own integrity checks find; empty when all is well. Reads the whole file."""
        with self._lock, self._errors():
            connection = self._opened()
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            if not self.read_only:  # FTS5 takes its check as an insert
                try:
                    with self.write(durable=False):
                        connection.execute("INSERT INTO facts_fts(facts_fts, rank) VALUES ('integrity-check', 1)")
                except StoreError as error:
                    if not isinstance(error.__cause__, sqlite3.DatabaseError) or isinstance(
                        error.__cause__, sqlite3.OperationalError
                    ):
                        raise  # locked or read-only: not a fault of the file
                    found.append(f"the full-text index is out of step ({error.__cause__})")
            return found

    def rebuild_fts(self) -> None:
        """Write the full-text index anew."""
        with self.write() as connection:
            schema.rebuild_fts(connection)

    def backup(self, destination: str | os.PathLike[str]) -> Path:
        """Write one complete, consistent copy with owner-only rights; other processes may go on writing.

        Raises StoreError when `destination` exists or cannot be written.
        """
        target = Path(destination).expanduser().absolute()
        if target.exists():
            raise StoreError(f"{target} exists already; name a new file")
        partial = target.with_name(target.name + ".partial")
        with self._lock, self._errors(), _system_errors(target):
            connection = self._opened()
            try:
                partial.unlink(missing_ok=True)
                os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
                with closing(sqlite3.connect(partial)) as copy:
                    connection.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
                partial.rename(target)
            finally:
                partial.unlink(missing_ok=True)
        return target

    def _opened(self) -> sqlite3.Connection:
        if os.getpid() != self._pid:
            raise StoreError("this memory was opened before a fork; open it anew in the child process")
        if self._connection is None:
            raise StoreError(f"{self.path} is closed; open it anew")
        return self._connection

    def _prepare_file(self, read_only: bool) -> bool:
        """Whether the file is to be opened for reading only; makes a new one owner-only, refuses what is damaged."""
        if self.path == MEMORY:
            return False
        path = Path(self.path)
        if path.is_dir():
            raise StoreError("it is a folder; name a file in it")
        if not path.exists():
            if read_only:
                raise StoreError("there is no such file to read")
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was first
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with path.open("rb") as file:
            head = file.read(100)
        if head and not head.startswith(_HEADER):
            raise StoreError(
                "it is not an SQLite file, or its start is damaged; it is left as it is:"
                " restore a backup, or name another file"
            )
        log = Path(self.path + "-wal")
        if len(head) == 100 and not (log.exists() and log.stat().st_size):
            page = int.from_bytes(head[16:18], "big")
            size = int.from_bytes(head[28:32], "big") * (65536 if page == 1 else page)
            if head[24:28] == head[92:96] and path.stat().st_size < size:  # else the size in the header is not valid
                raise StoreError(
                    f"it is cut off: {path.stat().st_size} of {size} bytes are there;"
                    " it is left as it is: restore a backup"
                )
        return read_only or not os.access(path, os.W_OK)

    def _connect(self) -> sqlite3.Connection:
        options = "?mode=ro" if self.read_only else ""
        if self.read_only and not Path(self.path + "-wal").exists() and not os.access(Path(self.path).parent, os.W_OK):
            options += "&immutable=1"  # a WAL file in a folder where its -shm cannot be made
        uri = MEMORY if self.path == MEMORY else Path(self.path).as_uri() + options
        connection = sqlite3.connect(
            uri, uri=self.path != MEMORY, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # one bad row stays one bad row
        if has_wal_reset_bug() and self.path != MEMORY and not self.read_only:
            self._between_processes = FileLock(self.path + "-lock", mode=0o600)
            connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA journal_size_limit = 0")  # a restarted log shrinks, so that its size tells its fill
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _open(self) -> None:
        """Make, adopt or upgrade the tables where that is needed; takes no write lock where it is not."""
        connection = self._opened()
        kind = schema.classify(connection)
        if kind == "ours":
            return
        if self.read_only:
            raise StoreError("it must be prepared first: open it once for writing")
        with self._exclusive():
            if schema.classify(connection) == "empty" and self.path != MEMORY:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                kind = schema.classify(connection)  # another process may have been first
                if kind == "empty":
                    schema.create(connection)
                elif kind == "foreign":
                    self.adopted_copy = self._copy_aside()
                    schema.adopt(connection)
                elif kind == "older":
                    self.adopted_copy = self._copy_aside()
                    schema.upgrade(connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    def _copy_aside(self) -> str | None:
        """Copy a foreign file before its first change, over a connection of its own: ours holds the write lock."""
        if self.path == MEMORY:
            return None
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        names = (f"{self.path}.before-holomem-{stamp}{suffix}" for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
        target = next(path for path in map(Path, names) if not path.exists())
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(sqlite3.connect(self.path)) as source, closing(sqlite3.connect(target)) as copy:
            source.execute("PRAGMA wal_autocheckpoint = 0")
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
        return str(target)

    @contextmanager
    def _exclusive(self, *, wait: bool = True) -> Iterator[None]:
        """Alone among the processes of holomem, on SQLite versions that need it."""
        lock = self._between_processes
        if lock is None:
            with nullcontext():
                yield
            return
        try:
            lock.acquire(timeout=BUSY_SECONDS if wait else 0, poll_interval=0.002)
        except Timeout as error:
            raise StoreError(f"{self.path} is locked by another process; try again") from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def _configured(self, connection: sqlite3.Connection, *, durable: bool, wait: bool) -> Iterator[None]:
        """The connection set for one transaction; it is durable and waits unless something else is asked for."""
        if durable and wait:
            yield
            return
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000) if wait else 0}")
        try:
            yield
        finally:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _checkpoint_if_due(self, connection: sqlite3.Connection) -> None:
        if self._between_processes is None:
            return
        try:
            size = os.stat(self.path + "-wal").st_size  # noqa: PTH116  at each commit: a Path costs 10 us
        except FileNotFoundError:
            return
        if size > WAL_BYTES:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn SQLite's errors into StoreError that names the file and says what to do."""
        try:
            yield
        except StoreError as error:
            if self.path in str(error):
                raise
            raise StoreError(f"{self.path}: {error}") from error.__cause__
        except sqlite3.IntegrityError:
            raise  # about a row: the store knows what it means
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: {error}; {_remedy(str(error))}") from error


def batches(ids: Sequence[int]) -> Iterator[tuple[list[int], str]]:
    """The ids in lists that fit into one `IN (...)`, each with its marks."""
    for start in range(0, len(ids), _BATCH):
        batch = [int(i) for i in ids[start : start + _BATCH]]
        yield batch, placeholders(batch)


def placeholders(values: Iterable[object]) -> str:
    """One "?" for each value."""
    return ", ".join("?" for _ in values)


@contextmanager
def _system_errors(path: object) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; check the path and its rights") from error


def _remedy(message: str) -> str:
    if "locked" in message:
        return "another program is writing to it; try again"
    if "malformed" in message or "not a database" in message:
        return "it is damaged and left as it is: run `holomem doctor`, or restore a backup"
    if "readonly" in message or "unable to open" in message:
        return "check the rights of the file and its folder"
    if "full" in message:
        return "free some space; nothing was changed"
    return "nothing was changed"
