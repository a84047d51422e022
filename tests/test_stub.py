import numpy as np
import pytest
from tiny_model import DIM, field, make_model, onnx_bytes

from holomem.embedding import OnnxEmbedder
from holomem.embedding.stub import TableFile, Unsupported, split

ROWS = 600  # 19 kB: a table of words that stays in the file
TABLE = np.random.default_rng(3).standard_normal((ROWS, DIM)).astype(np.float32)


def folder_of(path, onnx):
    return make_model(path, onnx)


def form_of(path, onnx):
    embedder = OnnxEmbedder(folder_of(path, onnx))
    embedder.embed(["the cat"])
    return embedder.form


def test_a_stub_holds_no_large_weight_and_gives_the_same_vectors(tmp_path):
    folder = folder_of(tmp_path / "m", onnx_bytes(table=TABLE))
    stub, table = split(folder / "model.onnx")
    assert len(stub) < 500
    assert (table.feed, table.rows, table.cols, table.dtype) == ("rows", ROWS, DIM, "float32")
    np.testing.assert_array_equal(TableFile(folder / "model.onnx", table).rows([0, 599, 7, 7]), TABLE[[0, 599, 7, 7]])
    embedder = OnnxEmbedder(folder)
    (row,) = embedder.embed(["the cat"])
    mean = TABLE[[1, 6, 7, 2]].mean(axis=0)
    np.testing.assert_allclose(row, mean / np.linalg.norm(mean), rtol=1e-5)
    assert embedder.form is None


def test_a_model_behind_a_link_as_in_the_hubs_cache_runs_in_the_small_form(tmp_path):
    folder = folder_of(tmp_path / "m", onnx_bytes(table=TABLE))
    blob = tmp_path / "blobs" / "0123"
    blob.parent.mkdir()
    (folder / "model.onnx").rename(blob)
    (folder / "model.onnx").symlink_to(blob)
    embedder = OnnxEmbedder(folder)
    assert embedder.embed(["the cat"]).any()
    assert embedder.form is None


@pytest.mark.parametrize(
    ("onnx", "why"),
    [
        (onnx_bytes(), "no table of words"),  # too small to be worth it
        (onnx_bytes(table=TABLE, more=[field(1, "table") + field(2, "x") + field(4, "Identity")]), "one Gather"),
        (onnx_bytes(table=TABLE).replace(b"Gather", b"GathEr"), "one Gather"),
        (onnx_bytes(table=TABLE).replace(b"input_ids", b"input_idz"), "by input_ids"),
    ],
)
def test_a_graph_of_another_form_is_not_split(tmp_path, onnx, why):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx)
    with pytest.raises(Unsupported, match=why):
        split(path)


def test_what_cannot_be_split_runs_whole_and_says_so(tmp_path):
    assert "the whole graph is in memory" in form_of(tmp_path / "m", onnx_bytes())
    reader = field(1, "table") + field(2, "x") + field(4, "Identity")
    assert "one Gather" in form_of(tmp_path / "n", onnx_bytes(table=TABLE, more=[reader]))


def test_a_gather_along_another_axis_is_not_a_table_of_words(tmp_path):
    axis = field(1, "axis") + field(3, 1) + field(20, 2)
    gather = field(1, "table") + field(1, "input_ids") + field(2, "rows") + field(4, "Gather")
    onnx = onnx_bytes(table=TABLE)
    first = field(1, gather)
    assert first in onnx
    path = tmp_path / "model.onnx"
    graph = onnx[onnx.index(first) :]
    rest = graph[: len(graph) - len(field(8, field(1, "") + field(2, 17)))]
    path.write_bytes(
        field(8 - 7, 8)
        + field(7, rest.replace(first, field(1, gather + field(5, axis))))
        + field(8, field(1, "") + field(2, 17))
    )
    with pytest.raises(Unsupported, match="one Gather"):
        split(path)


def test_a_cut_file_is_no_onnx_file(tmp_path):
    path = tmp_path / "model.onnx"
    onnx = onnx_bytes(table=TABLE)
    for size in (0, 1, 40, len(onnx) // 2, len(onnx) - 1):
        path.write_bytes(onnx[:size])
        with pytest.raises(ValueError):
            split(path)


def test_rows_of_a_file_that_was_cut_meanwhile_are_an_error(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx_bytes(table=TABLE))
    table = TableFile(path, split(path)[1])
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(OSError, match="cut short"):
        table.rows([599])


@pytest.mark.model
@pytest.mark.parametrize("name", ["multilingual-e5-small", "all-MiniLM-L6-v2"])
def test_the_named_models_give_exactly_the_vectors_of_the_whole_graph(shared, name, tmp_path):
    import onnxruntime

    folder = shared / "models" / name
    embedder = OnnxEmbedder(folder, query_prefix="", passage_prefix="")
    texts = ["nginx is deployed by CI", "резервные копии ночью", "猫が寝ている", "a" * 900, "!"]
    rows = embedder.embed(texts, query=True)
    assert "whole graph" not in (embedder.form or "")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    whole = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    for row, text in zip(rows, texts, strict=True):
        (ids,) = embedder._engine._tokenizer.windows(text, embedder.model.max_tokens, 1)
        feeds = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
        feeds = {feed.name: np.array([feeds[feed.name]], np.int64) for feed in whole.get_inputs()}
        mean = whole.run(None, feeds)[0][0].astype(np.float64).mean(axis=0)
        np.testing.assert_array_equal(row, (mean / np.linalg.norm(mean)).astype(np.float32))
    embedder.unload()
