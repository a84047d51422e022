"""holomem, the floor and its peers, each behind the same five methods. Imports of a system happen inside it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any, Protocol

import _facts

TOP = 10
CHUNK = 2000  # facts in one bulk add


class System(Protocol):
    """One memory over the facts of one size, in a folder of its own."""

    def build(self, cache: Path, size: int) -> None:
        """Store the facts of this size."""

    def open(self, questions: _facts.Questions) -> None:
        """Make ready for the first question."""

    def search(self, text: str, vector: bytes) -> list[Any]:
        """The best ten."""

    def probe(self, name: str) -> list[Any]:
        """The facts of a name. NotImplementedError where there is no such thing."""

    def add(self, text: str, vector: bytes) -> None:
        """Store one fact, durably. NotImplementedError where that cannot be."""

    def close(self) -> None:
        """Give everything back."""


class GivenVectors:
    """An embedder that knows its texts' vectors, so that no time of a model is measured."""

    def __init__(self, vectors: dict[str, Any]) -> None:
        from holomem import ModelId

        self.model = ModelId("given", "1", "0" * 64, _facts.DIM)
        self._vectors = vectors

    def is_available(self) -> bool:
        return True

    def problem(self) -> None:
        return None

    def unload(self) -> None:
        return None

    def embed(self, texts: Any, *, query: bool = False) -> Any:  # noqa: ARG002
        import numpy as np

        known = self._vectors
        if len(texts) == 1 and texts[0] in known:
            return known[texts[0]].reshape(1, -1)
        # What is not among them are the sentences of the calibration: any vector does.
        random = np.random.default_rng(0)
        rows = np.stack([known[t] if t in known else random.standard_normal(_facts.DIM, np.float32) for t in texts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Holomem:
    """This project, through its public API. Adding has no embedder; searching is given the vector of the question."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "memory.db"
        self._memory: Any = None
        self._adding: Any = None

    def build(self, cache: Path, size: int) -> None:
        from holomem import Memory, NewFact

        facts, vectors = _facts.stored(cache, size)
        given: dict[str, Any] = {}
        with Memory(self._path, embedder=GivenVectors(given)) as memory:
            for start in range(0, size, CHUNK):
                given.update(zip(facts[start : start + CHUNK], vectors[start : start + CHUNK], strict=True))
                memory.add_many([NewFact(fact) for fact in facts[start : start + CHUNK]])
                given.clear()
            memory.search("calibrate")  # measured once and kept in the file

    def open(self, questions: _facts.Questions) -> None:
        import numpy as np

        from holomem import Memory

        vectors = {t: np.frombuffer(v, np.float32) for t, v in zip(questions.texts, questions.vectors, strict=True)}
        self._memory = Memory(self._path, embedder=GivenVectors(vectors))

    def search(self, text: str, vector: bytes) -> list[Any]:  # noqa: ARG002
        return self._memory.search(text, limit=TOP)

    def probe(self, name: str) -> list[Any]:
        return self._memory.probe(name, limit=TOP)

    def reason(self, names: list[str]) -> list[Any]:
        return self._memory.reason(names, limit=TOP)

    def related(self, name: str) -> list[Any]:
        return self._memory.related(name, limit=TOP)

    def contradictions(self) -> list[Any]:
        self._memory.feedback(1, helpful=True)  # or they would be told from memory
        return self._memory.contradictions(limit=TOP)

    def add(self, text: str, vector: bytes) -> None:  # noqa: ARG002
        if self._adding is None:
            from holomem import Memory

            self._memory.close()
            self._memory = self._adding = Memory(self._path, embedder=None)
        self._adding.add(text)

    def close(self) -> None:
        self._memory.close()


class Floor:
    """What no exact search can go below: one matrix times the vector, and the ten largest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "vectors.npy"

    def build(self, cache: Path, size: int) -> None:
        shutil.copyfile(_facts.folder_of(cache, size) / "vectors.npy", self._path)

    def open(self, questions: _facts.Questions) -> None:  # noqa: ARG002
        import numpy as np

        self._numpy = np
        self._vectors = np.load(self._path)

    def search(self, text: str, vector: bytes) -> list[Any]:  # noqa: ARG002
        np = self._numpy
        scores = self._vectors @ np.frombuffer(vector, np.float32)
        top = np.argpartition(scores, -TOP)[-TOP:]
        return top[np.argsort(-scores[top])].tolist()

    def probe(self, name: str) -> list[Any]:
        raise NotImplementedError

    def add(self, text: str, vector: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._vectors = None


class SqliteVec:
    """sqlite-vec and FTS5 in one file, their lists merged by reciprocal ranks."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "vec.db"

    def build(self, cache: Path, size: int) -> None:
        facts, vectors = _facts.stored(cache, size)
        self._connect()
        self._file.executescript(
            f"CREATE VIRTUAL TABLE vectors USING vec0(v float[{_facts.DIM}] distance_metric=cosine);"
            "CREATE TABLE facts (id INTEGER PRIMARY KEY, content TEXT);"
            "CREATE VIRTUAL TABLE words USING fts5(content, content=facts, content_rowid=id);"
        )
        for start in range(0, size, CHUNK):
            self._insert(start, facts[start : start + CHUNK], [v.tobytes() for v in vectors[start : start + CHUNK]])
        self.close()

    def open(self, questions: _facts.Questions) -> None:  # noqa: ARG002
        self._connect()

    def search(self, text: str, vector: bytes) -> list[Any]:
        match = " OR ".join(f'"{word}"' for word in text.split())
        lists = (
            self._file.execute("SELECT rowid FROM vectors WHERE v MATCH ? AND k = 50", (vector,)),
            self._file.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 50", (match,)),
        )
        scores: dict[int, float] = {}
        for ids in lists:
            for rank, (fact_id,) in enumerate(ids):
                scores[fact_id] = scores.get(fact_id, 0.0) + 1 / (60 + rank)
        best = sorted(scores, key=lambda i: -scores[i])[:TOP]
        marks = ",".join("?" * len(best))
        return self._file.execute(f"SELECT id, content FROM facts WHERE id IN ({marks})", best).fetchall()

    def probe(self, name: str) -> list[Any]:
        raise NotImplementedError

    def add(self, text: str, vector: bytes) -> None:
        (last,) = self._file.execute("SELECT max(id) FROM facts").fetchone()
        self._insert(last + 1, [text], [vector])

    def close(self) -> None:
        self._file.close()

    def _connect(self) -> None:
        import sqlite_vec

        self._file = sqlite3.connect(self._path, isolation_level=None)
        if not hasattr(self._file, "enable_load_extension"):
            raise RuntimeError("this Python's sqlite3 cannot load extensions; try --peers-python /usr/bin/python3")
        self._file.enable_load_extension(True)
        sqlite_vec.load(self._file)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")

    def _insert(self, first: int, facts: list[str], vectors: list[bytes]) -> None:
        rows = range(first, first + len(facts))
        self._file.execute("BEGIN IMMEDIATE")
        self._file.executemany("INSERT INTO vectors (rowid, v) VALUES (?, ?)", zip(rows, vectors, strict=True))
        self._file.executemany("INSERT INTO facts VALUES (?, ?)", zip(rows, facts, strict=True))
        self._file.executemany("INSERT INTO words (rowid, content) VALUES (?, ?)", zip(rows, facts, strict=True))
        self._file.execute("COMMIT")


class Chroma:
    """chromadb, its persistent client with its default HNSW index; vectors only, as its search has no keywords."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "chroma"

    def build(self, cache: Path, size: int) -> None:
        facts, vectors = _facts.stored(cache, size)
        self._connect()
        for start in range(0, size, CHUNK):
            stop = min(start + CHUNK, size)
            ids = [str(i) for i in range(start, stop)]
            self._facts.add(ids=ids, embeddings=vectors[start:stop], documents=facts[start:stop])

    def open(self, questions: _facts.Questions) -> None:  # noqa: ARG002
        self._connect()

    def search(self, text: str, vector: bytes) -> list[Any]:  # noqa: ARG002
        import numpy as np

        return self._facts.query(query_embeddings=[np.frombuffer(vector, np.float32)], n_results=TOP)["documents"][0]

    def probe(self, name: str) -> list[Any]:
        raise NotImplementedError

    def add(self, text: str, vector: bytes) -> None:
        import numpy as np

        self._facts.add(ids=[text], embeddings=[np.frombuffer(vector, np.float32)], documents=[text])

    def close(self) -> None:
        return None

    def _connect(self) -> None:
        import chromadb

        settings = chromadb.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(self._path), settings=settings)
        self._facts = client.get_or_create_collection(
            "facts", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )


class Hermes:
    """The bundled holographic plugin of hermes-agent; it has no embeddings."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "hermes.db"

    def build(self, cache: Path, size: int) -> None:
        facts, _ = _facts.stored(cache, size)
        self._connect()
        rebuild = self._store._rebuild_bank
        self._store._rebuild_bank = lambda _category: None  # the sum over all facts at each add would be O(n^2)
        for fact in facts:
            self._store.add_fact(fact)
        rebuild("general")
        self.close()

    def open(self, questions: _facts.Questions) -> None:  # noqa: ARG002
        self._connect()

    def search(self, text: str, vector: bytes) -> list[Any]:  # noqa: ARG002
        return self._retriever.search(text, limit=TOP)

    def probe(self, name: str) -> list[Any]:
        return self._retriever.probe(name, limit=TOP)

    def reason(self, names: list[str]) -> list[Any]:
        return self._retriever.reason(names, limit=TOP)

    def related(self, name: str) -> list[Any]:
        return self._retriever.related(name, limit=TOP)

    def contradictions(self) -> list[Any]:
        return self._retriever.contradict(limit=TOP)

    def add(self, text: str, vector: bytes) -> None:  # noqa: ARG002
        self._store.add_fact(text)

    def close(self) -> None:
        self._store.close()

    def _connect(self) -> None:
        from plugins.memory.holographic.retrieval import FactRetriever
        from plugins.memory.holographic.store import MemoryStore

        self._store = MemoryStore(self._path)
        self._retriever = FactRetriever(self._store)


SYSTEMS = {"holomem": Holomem, "floor": Floor, "sqlite-vec": SqliteVec, "chromadb": Chroma, "hermes-agent": Hermes}
PACKAGES = {"sqlite-vec": "sqlite_vec", "chromadb": "chromadb", "hermes-agent": "plugins.memory.holographic"}
