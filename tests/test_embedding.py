import gc
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_model import DIM, WORDS, make_model, onnx_bytes

from holomem.embedding import Embedder, MissingEmbedder, OnnxEmbedder, default_embedder, files, tokens
from holomem.embedding.graph import read_graph
from holomem.errors import ModelError

MODELS = Path(os.environ.get("HOLOMEM_TEST_MODELS", Path(__file__).parents[2] / "shared" / "models"))
E5, MINILM = MODELS / "multilingual-e5-small", MODELS / "all-MiniLM-L6-v2"


@pytest.fixture
def folder(tmp_path):
    return make_model(tmp_path / "tiny")


@pytest.fixture(scope="module")
def e5():
    if not E5.is_dir():
        pytest.skip(f"no test model: {E5} does not exist; set HOLOMEM_TEST_MODELS")
    embedder = OnnxEmbedder(E5)
    yield embedder
    embedder.unload()


@pytest.fixture(scope="module")
def minilm():
    if not MINILM.is_dir():
        pytest.skip(f"no test model: {MINILM} does not exist; set HOLOMEM_TEST_MODELS")
    embedder = OnnxEmbedder(MINILM)
    yield embedder
    embedder.unload()


def run_python(code, *arguments, **environment):
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---------------------------------------------------------------- a small model that is made here


def test_a_vector_is_the_unit_mean_of_its_token_vectors(folder):
    embedder = OnnxEmbedder(folder)
    table = np.random.default_rng(7).standard_normal((len(WORDS), DIM)).astype(np.float32)
    mean = table[[1, WORDS.index("the"), WORDS.index("cat"), 2]].mean(axis=0)
    np.testing.assert_allclose(embedder.embed(["the cat"])[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_rows_are_float32_of_unit_length_and_a_text_without_tokens_is_zeros(folder):
    rows = OnnxEmbedder(folder).embed(["the cat", "", "  \n ", "猫 Bär"])
    assert rows.shape == (4, DIM)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 0, 1], atol=1e-6)


def test_no_texts_give_no_rows_and_load_nothing(folder):
    embedder = OnnxEmbedder(folder)
    assert embedder.embed([]).shape == (0, DIM)
    assert embedder.embed([" "]).shape == (1, DIM)
    assert not embedder.loaded


def test_one_string_is_not_a_sequence_of_texts(folder):
    with pytest.raises(TypeError, match="sequence of strings"):
        OnnxEmbedder(folder).embed("the cat")


def test_surrounding_space_and_lone_surrogates_do_not_matter(folder):
    rows = OnnxEmbedder(folder).embed(["the cat", " the cat\n", "the \ud800 cat", "the ? cat"])
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[2], rows[3])


def test_what_lies_beyond_the_window_is_not_read(folder):
    embedder = OnnxEmbedder(folder, max_tokens=4)
    rows = embedder.embed(["the cat", "the cat sleeps", "the cat " + "server " * 200_000], query=True)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(rows[0], rows[2])


def test_of_a_long_fact_up_to_four_windows_are_averaged(folder):
    table = np.random.default_rng(7).standard_normal((len(WORDS), DIM)).astype(np.float32)
    embedder = OnnxEmbedder(folder, max_tokens=4)  # two markers and two words
    (row,) = embedder.embed(["the cat sleeps server Bär"])
    windows = [[1, 6, 7, 2], [1, 8, 9, 2], [1, 10, 2]]
    mean = np.concatenate([table[ids] for ids in windows]).mean(axis=0)
    np.testing.assert_allclose(row, mean / np.linalg.norm(mean), rtol=1e-5)
    eight = "the cat sleeps server Bär 猫 the cat"
    np.testing.assert_array_equal(embedder.embed([eight]), embedder.embed([f"{eight} sleeps server"]))


def test_the_identity_says_all_that_decides_a_vector_and_does_not_load(folder):
    embedder = OnnxEmbedder(folder, query_prefix="query: ")
    model = embedder.model
    assert model.name == "tiny"
    assert model.file_hash == hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
    assert (model.dim, model.pooling, model.normalised, model.max_tokens) == (DIM, "mean", True, 64)
    assert (model.query_prefix, model.passage_prefix) == ("query: ", "")
    assert not embedder.loaded


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({}, 64),
        ({"sentence_bert_config": {"max_seq_length": 16}}, 16),
        ({"tokenizer_config": {"model_max_length": 32}}, 32),
        ({"tokenizer_config": {"model_max_length": 10**30}, "config": {"max_position_embeddings": 8192}}, 512),
        ({"config": {"model_type": "xlm-roberta", "max_position_embeddings": 130}}, 128),
    ],
)
def test_the_window_is_the_smallest_that_the_configuration_allows(tmp_path, configs, expected):
    assert OnnxEmbedder(make_model(tmp_path / "m", **configs)).model.max_tokens == expected


@pytest.mark.parametrize(
    ("name", "configs", "expected"),
    [
        ("tiny", {}, ("", "")),
        ("multilingual-e5-base", {}, ("query: ", "passage: ")),
        ("some5", {}, ("", "")),
        ("tiny", {"config_sentence_transformers": {"prompts": {"query": "Q: ", "document": "D: "}}}, ("Q: ", "D: ")),
        ("e5", {"config_sentence_transformers": {"prompts": {}}}, ("query: ", "passage: ")),
    ],
)
def test_prefixes_come_from_the_configuration_or_the_name(tmp_path, name, configs, expected):
    model = OnnxEmbedder(make_model(tmp_path / name, **configs)).model
    assert (model.query_prefix, model.passage_prefix) == expected


def test_a_prefix_goes_before_queries_or_passages_only(folder):
    plain, prefixed = OnnxEmbedder(folder), OnnxEmbedder(folder, query_prefix="query: ", passage_prefix="passage: ")
    np.testing.assert_array_equal(prefixed.embed(["cat"], query=True), plain.embed(["query: cat"]))
    np.testing.assert_array_equal(prefixed.embed(["cat"]), plain.embed(["passage: cat"]))
    assert not prefixed.embed([" "], query=True).any()


def test_embedders_of_the_same_files_share_one_session_until_the_last_lets_go(folder):
    first, second, other = OnnxEmbedder(folder), OnnxEmbedder(folder, query_prefix="x"), OnnxEmbedder(folder, threads=2)
    for embedder in (first, second, other):
        embedder.embed(["cat"])
    assert first._engine is second._engine
    assert first._engine is not other._engine
    first.unload()
    assert not first.loaded
    assert second.loaded
    second.embed(["cat"])
    first.embed(["cat"])
    assert first._engine is second._engine


def test_unload_before_loading_and_twice_is_harmless(folder):
    embedder = OnnxEmbedder(folder)
    embedder.unload()
    before = embedder.embed(["the cat"])
    embedder.unload()
    embedder.unload()
    assert not embedder.loaded
    np.testing.assert_array_equal(embedder.embed(["the cat"]), before)


def test_many_threads_load_once_and_get_equal_vectors_while_one_unloads(folder):
    embedder = OnnxEmbedder(folder)
    expected = OnnxEmbedder(folder).embed(["the cat sleeps"])
    results, start = [], threading.Barrier(9)

    def work():
        start.wait()
        results.extend(embedder.embed(["the cat sleeps"]) for _ in range(30))

    def unload():
        start.wait()
        for _ in range(10):
            embedder.unload()

    threads = [threading.Thread(target=work) for _ in range(8)] + [threading.Thread(target=unload)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 240
    assert all(np.array_equal(row, expected) for row in results)


def test_a_quantised_graph_that_suits_the_processor_is_preferred(tmp_path):
    folder = make_model(tmp_path / "m")
    (folder / "onnx").mkdir()
    own = files._graph_names()[0]
    for name in ("model_O3.onnx", "model_quantized.onnx", own):
        shutil.copy(folder / "model.onnx", folder / "onnx" / name)
    assert files.find_files(folder).graph_path.name == own
    (folder / "onnx" / own).unlink()
    assert files.find_files(folder).graph_path == folder / "model.onnx"
    (folder / "model.onnx").unlink()
    assert files.find_files(folder).graph_path.name == "model_quantized.onnx"
    (folder / "onnx" / "model_quantized.onnx").unlink()
    assert files.find_files(folder).graph_path.name == "model_O3.onnx"


# ---------------------------------------------------------------- what is missing, cut short or not for us


def fails(embedder, what):
    """The embedder is unavailable for the stated reason, in one line, and `embed` and `model` raise the same."""
    problem = embedder.problem()
    assert problem is not None
    assert what in problem
    assert "\n" not in problem
    assert not embedder.is_available()
    for call in (lambda: embedder.embed(["cat"]), lambda: embedder.model):
        with pytest.raises(ModelError) as caught:
            call()
        assert str(caught.value) == problem
    return problem


@pytest.mark.parametrize("missing", ["folder", "model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named_with_the_remedy(folder, missing):
    if missing == "folder":
        shutil.rmtree(folder)
    else:
        (folder / missing).unlink()
    what = {"folder": "does not exist", "model.onnx": "no ONNX file", "tokenizer.json": "tokenizer.json is missing"}
    assert fails(OnnxEmbedder(folder), what[missing]).endswith(files.REMEDY)


def test_files_that_arrive_later_are_seen(tmp_path):
    embedder = OnnxEmbedder(tmp_path / "m")
    assert not embedder.is_available()
    make_model(tmp_path / "m")
    assert embedder.is_available()
    assert embedder.embed(["cat"]).any()


def test_files_that_go_or_change_are_seen_unless_they_are_loaded(folder):
    embedder = OnnxEmbedder(folder)
    old, row = embedder.model, embedder.embed(["cat"])
    (folder / "model.onnx").write_bytes(onnx_bytes(table=np.eye(len(WORDS), DIM) + 1))
    os.utime(folder / "model.onnx", ns=(1, 1))
    assert embedder.model == old
    np.testing.assert_array_equal(embedder.embed(["cat"]), row)
    embedder.unload()
    assert embedder.model.file_hash != old.file_hash
    assert not np.allclose(embedder.embed(["cat"]), row)
    embedder.unload()
    (folder / "tokenizer.json").unlink()
    fails(embedder, "tokenizer.json is missing")


@pytest.mark.parametrize("keep", [0, 1, 5, 40, 200, -1])
def test_a_half_downloaded_graph_is_found_out_without_loading(folder, keep):
    whole = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(whole[:keep])
    fails(OnnxEmbedder(folder), "cannot be read")


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b"<html></html>", b"\xff" * 99])
def test_a_file_that_is_no_graph_is_found_out_without_loading(folder, content):
    (folder / "model.onnx").write_bytes(content)
    fails(OnnxEmbedder(folder), "cannot be read")


@pytest.mark.parametrize(
    ("onnx", "what"),
    [
        (onnx_bytes(output_dims=("batch", DIM), output="sentence_embedding"), "no vector for each token"),
        (onnx_bytes(inputs=("pixels",)), "not input_ids"),
    ],
)
def test_a_graph_that_is_no_text_model_is_refused(tmp_path, onnx, what):
    fails(OnnxEmbedder(make_model(tmp_path / "m", onnx)), what)


def test_a_free_width_is_taken_from_the_configuration_or_asked_for(tmp_path):
    onnx = onnx_bytes(output_dims=("batch", "seq", "hidden"))
    assert OnnxEmbedder(make_model(tmp_path / "m", onnx)).embed(["cat"]).shape == (1, DIM)
    fails(OnnxEmbedder(make_model(tmp_path / "n", onnx, config={})), "add config.json with hidden_size")


@pytest.mark.parametrize(
    ("configs", "what"),
    [
        ({"1_Pooling/config": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}}, "cls_token"),
        ({"1_Pooling/config": {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}}, "max_tokens"),
        ({"1_Pooling/config": {"pooling_mode": "lasttoken"}}, "lasttoken"),
        ({"1_Pooling/config": {"pooling_mode_mean_tokens": True, "include_prompt": False}}, "prefix out of the mean"),
        ({"modules": [{"type": "sentence_transformers.models.Dense"}]}, "Dense layer"),
    ],
)
def test_pooling_that_cannot_be_done_is_refused(tmp_path, configs, what):
    assert fails(OnnxEmbedder(make_model(tmp_path / "m", **configs)), what).endswith("use another model")


@pytest.mark.parametrize("pooling", [{"pooling_mode_mean_tokens": True}, {"pooling_mode": "mean"}])
def test_mean_pooling_is_accepted(tmp_path, pooling):
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling", "Normalize")]
    folder = make_model(tmp_path / "m", **{"1_Pooling/config": pooling, "modules": modules})
    assert OnnxEmbedder(folder).is_available()


def test_a_broken_configuration_is_named(folder):
    (folder / "config.json").write_text("{", encoding="utf-8")
    fails(OnnxEmbedder(folder), "config.json cannot be read")


@pytest.mark.parametrize("broken", ["tokenizer.json", "model.onnx"])
def test_a_file_that_does_not_load_is_a_problem_from_then_on_until_it_is_replaced(folder, broken):
    intact = (folder / broken).read_bytes()
    bad = b"{}" if broken == "tokenizer.json" else intact.replace(b"Gather", b"Gothic")
    (folder / broken).write_bytes(bad)
    embedder = OnnxEmbedder(folder)
    assert embedder.is_available()
    with pytest.raises(ModelError, match="replace it"):
        embedder.embed(["cat"])
    assert not embedder.is_available()
    with pytest.raises(ModelError, match="replace it"):
        embedder.embed(["cat"])
    (folder / broken).write_bytes(intact)
    os.utime(folder / broken, ns=(1, 1))
    assert embedder.is_available()
    assert embedder.embed(["cat"]).any()


def test_a_graph_that_wants_more_than_a_text_is_refused_when_loaded(tmp_path):
    embedder = OnnxEmbedder(make_model(tmp_path / "m", onnx_bytes(inputs=("input_ids", "pixels"))))
    with pytest.raises(ModelError, match=r"wants \['pixels'\].*use another model$"):
        embedder.embed(["cat"])
    assert not embedder.is_available()


@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_vector_without_a_direction_is_an_error(tmp_path, value):
    embedder = OnnxEmbedder(make_model(tmp_path / "m", onnx_bytes(table=np.full((len(WORDS), DIM), value))))
    with pytest.raises(ModelError, match=r"use another model file$"):
        embedder.embed(["cat"])


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_library_that_is_not_installed_is_named_with_the_command(folder, library):
    printed = run_python(
        f"import sys; sys.modules['{library}'] = None\n"
        "from holomem.embedding import OnnxEmbedder\n"
        "print(OnnxEmbedder(sys.argv[1]).problem())",
        folder,
    )
    assert printed.strip() == f"{library} is not installed; run `pip install {library}`"


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"max_tokens": 2}])
def test_senseless_arguments_are_refused(folder, wrong):
    with pytest.raises(ValueError, match="must be at least"):
        OnnxEmbedder(folder, **wrong)


def test_the_outputs_of_a_graph_are_read_without_onnx(folder):
    graph = read_graph(folder / "model.onnx")
    assert [tensor.name for tensor in graph.inputs] == ["input_ids"]
    assert graph.outputs[0].name == "last_hidden_state"
    assert graph.outputs[0].shape == (None, None, DIM)


# ---------------------------------------------------------------- "auto"


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty Hugging Face cache."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "hub"


@pytest.fixture
def cached(hub, folder, monkeypatch):
    """A small model pinned as the default one and laid into the cache as huggingface_hub does."""

    def published(path, source):
        data = source.read_bytes()
        return files.PinnedFile(path, len(data), hashlib.sha256(data).hexdigest())

    graph = published(f"onnx/{files._graph_names()[0]}", folder / "model.onnx")
    tokenizer = published("tokenizer.json", folder / "tokenizer.json")
    pinned = files.PinnedModel("someone/tiny", "c0ffee", 16, (graph, replace(graph, path="onnx/model.onnx")), tokenizer)
    snapshot = hub / "models--someone--tiny" / "snapshots" / "c0ffee"
    (snapshot / "onnx").mkdir(parents=True)
    shutil.copy(folder / "model.onnx", snapshot / graph.path)
    shutil.copy(folder / "tokenizer.json", snapshot / "tokenizer.json")
    monkeypatch.setattr(files, "DEFAULT_MODEL", pinned)
    return snapshot


@pytest.mark.usefixtures("hub", "no_network")
def test_without_any_model_auto_says_what_it_looked_for_and_how_to_get_it():
    embedder = default_embedder()
    assert isinstance(embedder, MissingEmbedder)
    problem = fails(embedder, files.DEFAULT_MODEL.name)
    assert "run `holomem model fetch`" in problem
    assert problem.endswith(files.REMEDY)
    embedder.unload()


@pytest.mark.usefixtures("hub")
def test_a_bad_folder_in_the_environment_is_a_problem_and_not_an_exception(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLOMEM_MODEL_DIR", str(tmp_path / "nowhere"))
    fails(default_embedder(), "nowhere does not exist")


@pytest.mark.usefixtures("cached", "no_network")
def test_the_folder_in_the_environment_comes_before_the_cache(monkeypatch, tmp_path):
    other = make_model(tmp_path / "other", onnx_bytes(table=np.eye(len(WORDS), DIM)))
    monkeypatch.setenv("HOLOMEM_MODEL_DIR", str(other))
    assert default_embedder().model.name == "other"


@pytest.mark.usefixtures("no_network")
def test_the_pinned_model_is_taken_from_the_cache(cached):
    embedder = default_embedder()
    assert embedder.problem() is None
    assert (embedder.model.name, embedder.model.revision, embedder.model.max_tokens) == ("someone/tiny", "c0ffee", 16)
    assert embedder.embed(["the cat"]).any()
    assert embedder.folder == cached


def test_the_default_model_in_a_folder_of_ones_own_is_the_same_model(cached, folder):
    assert OnnxEmbedder(folder).model == OnnxEmbedder(cached, pinned=files.DEFAULT_MODEL).model


def test_the_cache_is_where_huggingface_hub_looks(cached, tmp_path):
    code = (
        "from huggingface_hub import try_to_load_from_cache as look\n"
        "print(look('someone/tiny', 'tokenizer.json', revision='c0ffee'))"
    )
    for environment in ({"HF_HOME": str(tmp_path / "hf")}, {"HF_HUB_CACHE": str(tmp_path / "hf" / "hub")}):
        assert run_python(code, **environment).strip() == str(cached / "tokenizer.json")


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("HF_HUB_CACHE", "{}/a", "{}/a"),
        ("HF_HOME", "{}/b", "{}/b/hub"),
        ("XDG_CACHE_HOME", "{}/c", "{}/c/huggingface/hub"),
        ("HOME", "{}/d", "{}/d/.cache/huggingface/hub"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="HOME is not the home folder on Windows")
def test_the_variables_of_the_cache_are_honoured(monkeypatch, tmp_path, variable, value, expected):
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value.format(tmp_path))
    assert files._hub_cache() == Path(expected.format(tmp_path))


def test_a_cached_file_that_is_cut_short_or_changed_is_a_problem(cached):
    graph = cached / files.DEFAULT_MODEL.graphs[0].path
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-3])
    fails(default_embedder(), f"has {len(whole) - 3} bytes, not {len(whole)}")
    graph.write_bytes(whole[:-1] + b"x")
    os.utime(graph, ns=(1, 1))
    fails(default_embedder(), "is not the published file")


def test_the_default_model_is_pinned_by_size_and_hash():
    pinned = files.DEFAULT_MODEL
    assert len(pinned.revision) == 40
    assert [Path(graph.path).name for graph in pinned.graphs] == [files._graph_names()[0], "model.onnx"]
    assert all(len(file.sha256) == 64 and file.size_bytes > 0 for file in (*pinned.graphs, pinned.tokenizer))


def test_construction_and_availability_import_no_library_and_load_nothing(folder):
    printed = run_python(
        "import sys\n"
        "from holomem.embedding import OnnxEmbedder, default_embedder, known\n"
        "embedder = OnnxEmbedder(sys.argv[1])\n"
        "print(embedder.is_available(), known(embedder.model), default_embedder().is_available(), embedder.loaded)\n"
        "print([n for n in ('onnxruntime', 'tokenizers', 'huggingface_hub', 'http.client') if n in sys.modules])",
        folder,
        HOLOMEM_MODEL_DIR=str(folder),
    )
    assert printed.splitlines() == ["True None True False", "[]"]


# ---------------------------------------------------------------- real models


def unit(rows):
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.model
@pytest.mark.parametrize("query", [True, False])
def test_vectors_agree_with_the_golden_ones(e5, query):
    with np.load(E5 / "golden.npz") as golden:
        texts = [str(text) for text in golden["texts"]]
        expected = unit(golden["int8"][0 if query else 1])
        exact = unit(golden["fp32"][0 if query else 1])
    rows = e5.embed(texts, query=query)
    assert np.einsum("ij,ij->i", rows, expected).min() >= 0.999
    assert np.einsum("ij,ij->i", rows, exact).min() >= 0.99


@pytest.mark.model
def test_token_ids_agree_with_the_golden_ones(e5):
    golden = json.loads((E5 / "golden_ids.json").read_text(encoding="utf-8"))
    tokenizer = tokens.load(e5.folder / "tokenizer.json")
    assert [tokenizer.windows("query: " + text, 512, 1) for text in golden["texts"]] == [
        [i] for i in golden["query_ids"]
    ]


@pytest.mark.model
def test_e5_is_recognised(e5):
    model = e5.model
    assert (model.query_prefix, model.passage_prefix) == ("query: ", "passage: ")
    assert (model.dim, model.max_tokens, model.pooling) == (384, 512, "mean")


@pytest.mark.model
@pytest.mark.parametrize("name", ["e5", "minilm"])
def test_a_vector_does_not_depend_on_the_others_in_its_batch(name, request):
    embedder = request.getfixturevalue(name)
    text = "The backup of the second server runs at night"
    short = [text, "x", "ja", "猫", "a b c", "да", "1", "ok"]
    long = [text, "word " * 120, "The backup of the second server runs at noon"]
    alone = embedder.embed([text])[0]
    for batch in (short, long, [text] * 3):
        for row, member in zip(embedder.embed(batch), batch, strict=True):
            assert abs(float(row @ embedder.embed([member])[0]) - 1) < 1e-6
            if member == text:
                np.testing.assert_array_equal(row, alone)


@pytest.mark.model
def test_meaning_crosses_languages(e5):
    rows = e5.embed(["Der Hund schläft", "Биржа закрылась падением"])
    query = e5.embed(["the dog is asleep"], query=True)[0]
    assert rows[0] @ query > rows[1] @ query + 0.05


@pytest.mark.model
def test_the_padding_of_a_published_tokenizer_is_switched_off(minilm):
    rows = minilm.embed(["a cat", "a kitten", "the stock market"])
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.3
    assert tokens.load(minilm.folder / "tokenizer.json").windows("a cat", 256, 4) == [[101, 1037, 4937, 102]]


@pytest.mark.model
def test_a_text_of_control_characters_has_no_token_and_no_meaning(minilm):
    assert not minilm.embed(["\x00\x01"]).any()


@pytest.mark.model
def test_a_megabyte_is_cut_before_it_is_tokenised(minilm):
    class Counting(tokens.Tokenizer):
        def windows(self, text, *rest):
            seen.append(len(text))
            return super().windows(text, *rest)

    minilm.embed(["x"])
    tokenizer, seen = minilm._engine._tokenizer, []
    minilm._engine._tokenizer = Counting(tokenizer._encoder)
    try:
        rows = minilm.embed(["word " * 200_000, "я" * 1_000_000, " " * 1_000_000 + "end"])
    finally:
        minilm._engine._tokenizer = tokenizer
    assert max(seen) <= 4 * 32 * minilm.model.max_tokens
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[2], minilm.embed(["end"])[0])


@pytest.mark.model
def test_threads_get_the_same_vectors(minilm):
    texts = [f"fact number {i} about the house" for i in range(16)]
    expected = minilm.embed(texts)
    results = [None] * 8

    def work(slot):
        results[slot] = minilm.embed(texts)

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rows in results:
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.model
@pytest.mark.usefixtures("no_network")
def test_a_loaded_model_uses_no_network(minilm):
    gc.collect()
    assert OnnxEmbedder(MINILM).embed(["offline"]).any()
    assert minilm.is_available()


@pytest.mark.model
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm and needs malloc_trim")
def test_unloading_gives_the_memory_back_each_time(e5):
    printed = run_python(
        "import os, sys\n"
        "from holomem.embedding import OnnxEmbedder\n"
        "def rss():\n"
        "    with open('/proc/self/statm') as file:\n"
        "        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') / 1e6\n"
        "embedder, empty = OnnxEmbedder(sys.argv[1]), rss()\n"
        "for _ in range(2):\n"
        "    embedder.embed(['the server is down'])\n"
        "    loaded = rss()\n"
        "    embedder.unload()\n"
        "    print(loaded - empty, rss() - empty)\n",
        e5.folder,
    )
    loaded, left = np.array([line.split() for line in printed.splitlines()], float).T
    assert left.max() < 30, printed  # 37 with the pages of onnxruntime's code
    assert loaded.min() - left.max() > 20, printed
    assert left[1] - left[0] < 10, printed


def test_every_embedder_has_what_the_protocol_asks_for():
    asked = [name for name in vars(Embedder) if not name.startswith("_")]
    assert sorted(asked) == ["embed", "is_available", "model", "problem", "unload"]
    for kind in (OnnxEmbedder, MissingEmbedder):
        assert all(hasattr(kind, name) for name in asked)
