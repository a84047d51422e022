"""A small model that is made here: an ONNX file written field by field, and its tokenizer."""

import json

import numpy as np

DIM = 8
WORDS = ["[UNK]", "[CLS]", "[SEP]", "query", ":", "passage", "the", "cat", "sleeps", "server", "Bär", "猫"]


def field(number, value):
    """One field of a protobuf message: an int as a varint, bytes or str with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def value_info(name, element, dims):
    shape = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


def onnx_bytes(
    output_dims=("batch", "seq", DIM), output="last_hidden_state", inputs=("input_ids",), table=None, more=()
):
    """An ONNX model whose token vectors are twice the rows of a table: Gather(table, input_ids), Add."""
    if table is None:
        table = np.random.default_rng(7).standard_normal((len(WORDS), DIM))
    table = np.asarray(table, "<f4")
    node = field(1, "table") + field(1, "input_ids") + field(2, "rows") + field(4, "Gather")
    double = field(1, "rows") + field(1, "rows") + field(2, output) + field(4, "Add")
    tensor = b"".join(field(1, n) for n in table.shape) + field(2, 1) + field(8, "table") + field(9, table.tobytes())
    graph = (
        field(1, node) + field(1, double) + b"".join(field(1, n) for n in more) + field(2, "tiny") + field(5, tensor)
    )
    graph += b"".join(field(11, value_info(name, 7, ("batch", "seq"))) for name in inputs)
    graph += field(12, value_info(output, 1, output_dims))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def make_model(folder, onnx=None, **configs):
    """A complete small model: word-level tokenizer with [CLS] and [SEP] that pads to 32 like published ones do."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(onnx_bytes() if onnx is None else onnx)
    specials = {"[CLS]": 1, "[SEP]": 2}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": {
            "strategy": {"Fixed": 32},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[UNK]",
        },
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "BertProcessing",
            "sep": ["[SEP]", specials["[SEP]"]],
            "cls": ["[CLS]", specials["[CLS]"]],
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    for name, config in {"config": {"hidden_size": DIM, "max_position_embeddings": 64}, **configs}.items():
        path = folder / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(config), encoding="utf-8")
    return folder
