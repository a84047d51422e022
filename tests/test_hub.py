import hashlib
import json
import os
import random
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hub_double import serving

from holomem.embedding.files import DEFAULT_MODEL, PinnedFile, PinnedModel

REVISION = "0" * 39 + "1"
FETCH = """
import json, sys
from holomem.embedding.files import PinnedFile, PinnedModel
from holomem.embedding.hub import fetch
from holomem.errors import ModelError
told = json.loads(sys.argv[1])
told["graphs"] = tuple(PinnedFile(**graph) for graph in told["graphs"])
told["tokenizer"] = PinnedFile(**told["tokenizer"])
try:
    print(fetch(PinnedModel(**told)))
except ModelError as error:
    sys.exit(f"ModelError: {error}")
"""
FILES = {"onnx/model.onnx": random.Random(1).randbytes(300_000), "tokenizer.json": b"{}" * 500}


def pinned_file(path, data):
    return PinnedFile(path, len(data), hashlib.sha256(data).hexdigest())


PINNED = PinnedModel(
    name="someone/some-model",
    revision=REVISION,
    max_tokens=128,
    graphs=(pinned_file("onnx/model.onnx", FILES["onnx/model.onnx"]),),
    tokenizer=pinned_file("tokenizer.json", FILES["tokenizer.json"]),
)


def run(arguments, hub, home, **environment):
    """A fresh process: the client reads its variables when it is imported."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE", "TRANSF"))}
    env.update(
        HF_HOME=str(home),
        HF_HUB_DISABLE_TELEMETRY="1",
        PYTHONPATH=os.pathsep.join([os.environ["PYTHONPATH"], *sys.path]),
    )
    env["HF_ENDPOINT"] = hub if isinstance(hub, str) else hub.endpoint
    return subprocess.run(
        [sys.executable, *arguments], env={**env, **environment}, capture_output=True, text=True, timeout=120
    )


def fetch(hub, home, pinned=PINNED, **environment):
    return run(["-c", FETCH, json.dumps(asdict(pinned))], hub, home, **environment)


def left(home):
    """The files in the cache that hold something of the model."""
    return [
        path for path in Path(home).rglob("*") if path.is_file() and not path.is_symlink() and path.stat().st_size > 300
    ]


@pytest.fixture
def hub():
    with serving(dict(FILES)) as opened:
        yield opened


@pytest.fixture
def home(tmp_path):
    return tmp_path / "hf"


def test_a_model_is_fetched_once_and_found_in_the_cache_of_the_client(hub, home):
    done = fetch(hub, home)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert {path: (folder / path).read_bytes() for path in FILES} == FILES
    count = len(hub.requests)
    assert fetch(hub, home).stdout.strip() == str(folder)
    assert len(hub.requests) == count


def test_a_transfer_that_breaks_off_goes_on_where_it_ended(hub, home):
    large = random.Random(3).randbytes(1000) * 25_000  # the client keeps what came in pieces of 10 MB
    hub.files["onnx/model.onnx"] = large
    hub.breaks = 1
    pinned = replace(PINNED, graphs=(pinned_file("onnx/model.onnx", large),))
    done = fetch(hub, home, pinned)
    assert done.returncode == 0, done.stderr
    (wanted,) = hub.ranges()
    assert int(wanted.removeprefix("bytes=").removesuffix("-")) >= 10_000_000
    assert (Path(done.stdout.strip()) / "onnx/model.onnx").read_bytes() == large


def test_another_file_than_the_published_one_is_refused_and_nothing_is_left(hub, home):
    hub.files["onnx/model.onnx"] = random.Random(2).randbytes(300_000)
    done = fetch(hub, home)
    assert done.returncode == 1
    assert "came otherwise than it was published" in done.stderr
    assert [path.read_bytes() for path in left(home)] == [FILES["tokenizer.json"]]
    hub.files["onnx/model.onnx"] = FILES["onnx/model.onnx"]  # the mirror is mended
    assert fetch(hub, home).returncode == 0


def test_a_file_that_is_damaged_in_the_cache_is_named_by_the_embedder_and_fetched_anew(hub, home):
    folder = Path(fetch(hub, home).stdout.strip())
    blob = (folder / "onnx/model.onnx").resolve()
    blob.write_bytes(b"damaged" * 1000)
    blob_count = len(left(home))
    done = fetch(hub, home)
    assert done.returncode == 0, done.stderr
    assert (folder / "onnx/model.onnx").read_bytes() == FILES["onnx/model.onnx"]
    assert len(left(home)) == blob_count


def test_offline_asks_nobody(hub, home):
    done = fetch(hub, home, HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set" in done.stderr
    assert hub.requests == []


def test_a_hub_that_is_not_there_is_one_line_with_the_remedy(home):
    done = fetch("http://127.0.0.1:9", home)
    assert done.returncode == 1
    assert "cannot be fetched" in done.stderr
    assert done.stderr.strip().splitlines()[-1].endswith("tokenizer.json")


def test_a_file_that_the_hub_has_not_is_one_line(hub, home):
    del hub.files["onnx/model.onnx"]
    done = fetch(hub, home)
    assert done.returncode == 1
    assert "onnx/model.onnx of someone/some-model cannot be fetched" in done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or not Path("/proc/self").exists(), reason="needs /proc")
def test_a_cache_that_cannot_be_written_is_named(hub):
    done = fetch(hub, "/proc/self/no")  # not even root can make a folder there
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert "HF_HOME" in done.stderr


def test_the_command_fetches_the_default_model_from_a_mirror_and_checks_it(home):
    paths = [DEFAULT_MODEL.tokenizer.path, *(graph.path for graph in DEFAULT_MODEL.graphs)]
    with serving(dict.fromkeys(paths, b"not the model" * 1000)) as hub:
        done = run(["-m", "holomem", "model", "fetch"], hub, home)
        assert done.returncode == 1
        assert "came otherwise than it was published" in done.stderr.replace("\n", " ")
        assert left(home) == []
        wanted = {path for _, path, _ in hub.requests}
        assert wanted == {f"/{DEFAULT_MODEL.name}/resolve/{DEFAULT_MODEL.revision}/tokenizer.json"}


def test_a_memory_that_is_told_to_fetch_works_on_without(home, path):
    code = (
        "import sys, warnings; from holomem import Memory\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    memory = Memory(sys.argv[1], fetch=True)\n"
        "    memory.add('a fact')\n"
        "    print(len(memory.search('fact')), *(str(w.message) for w in said), sep='|')\n"
    )
    done = run(["-c", code, str(path)], "http://127.0.0.1:9", home)
    assert done.returncode == 0, done.stderr
    found, *said = done.stdout.strip().split("|")
    assert found == "1"
    assert "was not fetched" in said[0]


def test_an_ordinary_add_and_search_ask_nobody(hub, home, path):
    for command in (["add", "a fact"], ["search", "fact"], ["status"], ["model", "status"]):
        run(["-m", "holomem", "--db", str(path), *command], hub, home)
    assert hub.requests == []


def test_the_graph_that_suits_the_processor_is_the_one_that_is_fetched(hub, home):
    hub.files["onnx/other.onnx"] = b"x" * 1000
    other = replace(PINNED, graphs=(*PINNED.graphs, pinned_file("onnx/other.onnx", b"x" * 1000)))
    assert fetch(hub, home, other).returncode == 0
    assert not any("other" in path for _, path, _ in hub.requests)
