"""The model lifecycle cases: memory that comes back, vectors that do not drift, nothing that goes missing silently."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_model import make_model, onnx_bytes

from holomem import Memory
from holomem.embedding import OnnxEmbedder

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
RSS = """
import os, sys, time
from holomem.embedding import OnnxEmbedder
def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
"""


def python(code, *arguments, prefix=(), **environment):
    done = subprocess.run(
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([os.environ["PYTHONPATH"], *sys.path]), **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@linux
@pytest.mark.model
def test_mod_01_memory_is_flat_over_twenty_loads(shared):
    code = RSS + (
        "embedder = OnnxEmbedder(sys.argv[1])\n"
        "for _ in range(20):\n"
        "    embedder.embed(['the server is down'])\n"
        "    embedder.unload()\n"
        "    print(rss())\n"
    )
    figures = [float(line) for line in python(code, shared / "models" / "all-MiniLM-L6-v2").stdout.split()]
    assert max(figures[2:]) - figures[1] < 10


@linux
@pytest.mark.model
def test_mod_01_memory_is_flat_over_many_different_texts(shared):
    code = RSS + (
        "embedder = OnnxEmbedder(sys.argv[1])\n"
        "for batch in range(8):\n"
        "    embedder.embed([f'{n} text {n * 7919} of its own ' + 'word ' * (n % 90) for n in range(batch * 50, batch * 50 + 50)])\n"
        "    print(rss())\n"
    )
    figures = [float(line) for line in python(code, shared / "models" / "multilingual-e5-small").stdout.split()]
    assert max(figures[2:]) - figures[1] < 10


@linux
def test_mod_01_the_library_of_an_unknown_tokenizer_does_not_grow_either(tmp_path):
    code = RSS + (
        "embedder = OnnxEmbedder(sys.argv[1])\n"
        "for batch in range(10):\n"
        "    embedder.embed([f'{n} the cat {n * 7919} server' for n in range(batch * 1000, batch * 1000 + 1000)])\n"
        "    print(rss())\n"
    )
    figures = [float(line) for line in python(code, make_model(tmp_path / "m")).stdout.split()]
    assert max(figures[2:]) - figures[1] < 10


@pytest.mark.model
def test_mod_03_ranks_do_not_depend_on_how_a_fact_was_added(shared, tmp_path):
    embedder = OnnxEmbedder(shared / "models" / "all-MiniLM-L6-v2")
    facts = ["The backup runs at night", "ok", "a b c", "word " * 120 + "end", "The backups of the server run at noon"]
    with Memory(tmp_path / "one.db", embedder=embedder) as one, Memory(tmp_path / "all.db", embedder=embedder) as every:
        for fact in facts:
            one.add(fact)
        every.load(json.dumps({"content": fact}) for fact in facts)
        found = [
            [(hit.fact.content, hit.relevance) for hit in memory.search("when are copies made?", min_trust=0)]
            for memory in (one, every)
        ]
    assert found[0] == found[1]


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers", "model", "half a model"])
def test_mod_04_what_is_missing_is_named_and_made_up_for_later(tmp_path, path, missing):
    folder = make_model(tmp_path / "model", onnx_bytes(table=np.eye(12, 8) + 0.1))
    whole = (folder / "model.onnx").read_bytes()
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    if missing in ("onnxruntime", "tokenizers"):
        (hidden / "sitecustomize.py").write_text(f"import sys; sys.modules[{missing!r}] = None\n")
    elif missing == "model":
        (folder / "model.onnx").unlink()
    else:
        (folder / "model.onnx").write_bytes(whole[: len(whole) // 2])

    def run(*command, broken=True):
        paths = [str(hidden)] if broken else []
        env = {**os.environ, "HOLOMEM_MODEL_DIR": str(folder)}
        env["PYTHONPATH"] = os.pathsep.join([*paths, os.environ["PYTHONPATH"], *sys.path])
        done = subprocess.run(
            [sys.executable, "-m", "holomem", "--db", str(path), *command], env=env, capture_output=True, text=True
        )
        assert "Traceback" not in done.stderr
        return done

    added = run("add", "the cat sleeps")
    assert added.returncode == 0
    assert added.stderr.count("semantic search is off") == 1
    found = run("search", "cat", "--json")
    assert json.loads(found.stdout)[0]["channels"]["semantic"] is None
    assert found.stderr.count("semantic search is off") == 1
    assert run("probe", "cat").returncode in (0, 1)
    assert run("contradictions").returncode in (0, 1)
    state = json.loads(run("status", "--json").stdout)
    assert state["channels"]["semantic"]
    assert state["missing_vectors"] == 1
    assert any("semantic search is off" in problem for problem in state["problems"])
    (folder / "model.onnx").write_bytes(whole)
    found = run("search", "cat", "--json", broken=False)
    assert json.loads(found.stdout)[0]["channels"]["semantic"] > 0
    assert json.loads(run("status", "--json", broken=False).stdout)["missing_vectors"] == 0


@linux
@pytest.mark.model
def test_mod_05_an_idle_model_takes_no_processor_and_says_nothing_under_a_processor_set(shared):
    code = (
        "import sys, time\n"
        "from holomem.embedding import OnnxEmbedder\n"
        "embedder = OnnxEmbedder(sys.argv[1], threads=2)\n"
        "embedder.embed(['x'])\n"
        "start = time.process_time()\n"
        "time.sleep(1.5)\n"
        "print(time.process_time() - start)\n"
    )
    prefix = ["taskset", "-c", "0"] if Path("/usr/bin/taskset").exists() else []
    done = python(code, shared / "models" / "all-MiniLM-L6-v2", prefix=prefix)
    assert float(done.stdout) < 0.1
    assert done.stderr == ""


@pytest.mark.model
def test_mod_06_a_pasted_prompt_is_read_up_to_one_window(shared):
    embedder = OnnxEmbedder(shared / "models" / "multilingual-e5-small")
    embedder.embed(["x"])
    run, seen = embedder._engine._run, []
    embedder._engine._run = lambda ids: (seen.append(len(ids)), run(ids))[1]
    try:
        embedder.embed(["a line of a log, number 17\n" * 4000], query=True)
        assert seen == [512]
    finally:
        embedder._engine._run = run
        embedder.unload()


def test_show_says_how_much_of_a_long_fact_the_model_reads(tmp_path, path):
    from click.testing import CliRunner

    from holomem.cli import main

    folder = make_model(tmp_path / "model", config={"hidden_size": 8, "max_position_embeddings": 34})
    env = {"HOLOMEM_MODEL_DIR": str(folder)}

    def run(*command):
        return CliRunner().invoke(main, ["--db", str(path), *command], env=env).stdout

    run("add", "the cat sleeps " * 30)
    run("add", "the cat sleeps " * 100)
    run("add", "the cat sleeps")
    assert "the mean over 3 windows, all of 90 tokens" in run("show", "1")
    assert "the mean over 4 windows, the first 128 of 300 tokens" in run("show", "2")
    assert "windows" not in run("show", "3")
