import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tiny_model import make_model, onnx_bytes

from holomem import Memory
from holomem.embedding import OnnxEmbedder
from holomem.errors import ModelError

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")


@pytest.fixture
def folder(tmp_path):
    return make_model(tmp_path / "tiny")


@pytest.fixture
def embedder(folder):
    opened = OnnxEmbedder(folder, isolated=True, idle_seconds=60)
    yield opened
    opened.unload()


def alive(pid):
    """Whether the process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid, seconds=10.0):
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not alive(pid)


def test_vectors_come_from_the_worker_and_are_those_of_the_model_in_this_process(folder, embedder):
    texts = ["the cat", "", "server", "猫", "the cat sleeps " * 40, "\ud800 x"] * 30
    np.testing.assert_array_equal(embedder.embed(texts), OnnxEmbedder(folder).embed(texts))
    assert alive(embedder._engine.pid)
    assert embedder.embed([]).shape == (0, 8)


def test_unload_ends_the_worker_and_the_next_call_starts_one(embedder):
    first = embedder.embed(["the cat"])
    pid = embedder._engine.pid
    embedder.unload()
    assert gone(pid)
    np.testing.assert_array_equal(embedder.embed(["the cat"]), first)


def test_an_idle_worker_ends_and_comes_back(folder):
    embedder = OnnxEmbedder(folder, isolated=True, idle_seconds=0.3)
    first = embedder.embed(["the cat"])
    pid = embedder._engine.pid
    assert gone(pid)
    assert not Path(f"/proc/{pid}").exists() or gone(pid)
    np.testing.assert_array_equal(embedder.embed(["the cat"]), first)
    assert embedder._engine.pid != pid
    embedder.unload()


def test_a_worker_that_is_killed_is_replaced(embedder):
    first = embedder.embed(["the cat"])
    os.kill(embedder._engine.pid, signal.SIGKILL)
    np.testing.assert_array_equal(embedder.embed(["the cat"]), first)


def test_a_worker_dies_with_a_killed_parent_even_while_a_child_holds_its_pipe(folder):
    code = """
import os, sys, time
from holomem.embedding import OnnxEmbedder
embedder = OnnxEmbedder(sys.argv[1], isolated=True)
embedder.embed(["the cat"])
pid = embedder._engine.pid
sleeper = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
print(pid, sleeper, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE, text=True) as parent:
        worker, sleeper = map(int, parent.stdout.readline().split())
        assert alive(worker)
        parent.kill()
    try:
        assert gone(worker)
    finally:
        os.kill(sleeper, signal.SIGKILL)


def test_a_fork_neither_deadlocks_nor_takes_the_worker(folder):
    code = """
import os, sys, threading, time
from holomem.embedding import OnnxEmbedder
embedder = OnnxEmbedder(sys.argv[1], isolated=True)
first = embedder.embed(["the cat"])
pid = embedder._engine.pid
busy = threading.Thread(target=lambda: [embedder.embed(["server " * 60] * 64) for _ in range(40)], daemon=True)
busy.start()
time.sleep(0.05)
child = os.fork()
if child == 0:
    same = (embedder.embed(["the cat"]) == first).all() and embedder._engine.pid != pid
    embedder.unload()
    os._exit(0 if same else 3)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
busy.join()
assert (embedder.embed(["the cat"]) == first).all() and embedder._engine.pid == pid
sys.exit(code)
"""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, folder],
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr


def test_threads_share_the_worker(embedder):
    words = ["the cat", "server", "sleeps", "Bär"]
    expected = embedder.embed(words)
    found = [None] * 16

    def ask(slot):
        found[slot] = embedder.embed([words[slot % 4]])

    threads = [threading.Thread(target=ask, args=(slot,)) for slot in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for slot, row in enumerate(found):
        np.testing.assert_array_equal(row[0], expected[slot % 4])


def test_a_model_that_does_not_load_is_the_same_error_as_in_this_process(tmp_path):
    folder = make_model(tmp_path / "m", onnx_bytes(inputs=("input_ids", "pixels")))
    with pytest.raises(ModelError, match="pixels"):
        OnnxEmbedder(folder, isolated=True).embed(["cat"])


def test_closing_a_memory_ends_the_worker(folder, path):
    embedder = OnnxEmbedder(folder, isolated=True)
    with Memory(path, embedder=embedder) as memory:
        memory.add("the cat sleeps")
        pid = embedder._engine.pid
        assert alive(pid)
    assert gone(pid)


@pytest.mark.model
def test_this_process_loads_no_library_of_the_model(shared):
    code = """
import sys
from holomem.embedding import OnnxEmbedder
embedder = OnnxEmbedder(sys.argv[1], isolated=True)
assert embedder.embed(["the cat"]).any()
assert not {"onnxruntime", "tokenizers"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code, shared / "models" / "all-MiniLM-L6-v2"], check=True, timeout=60)


def test_in_this_process_an_idle_model_is_unloaded_and_comes_back(folder):
    embedder = OnnxEmbedder(folder, idle_seconds=0.2)
    first = embedder.embed(["the cat"])
    end = time.monotonic() + 10
    while embedder.loaded and time.monotonic() < end:
        time.sleep(0.02)
    assert not embedder.loaded
    np.testing.assert_array_equal(embedder.embed(["the cat"]), first)
    embedder.unload()


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_senseless_time_is_refused(folder, seconds):
    with pytest.raises(ValueError, match="idle_seconds"):
        OnnxEmbedder(folder, idle_seconds=seconds)
