"""Texts to unit vectors, and what a cosine of two of them is worth.

Importing this loads neither onnxruntime, tokenizers nor huggingface_hub, and of holomem only what is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holomem.embedding.calibration import Calibration, known, measure
    from holomem.embedding.onnx import OnnxEmbedder
    from holomem.embedding.protocol import Embedder, MissingEmbedder
    from holomem.embedding.sources import default_embedder

__all__ = [
    "Calibration",
    "Embedder",
    "MissingEmbedder",
    "OnnxEmbedder",
    "default_embedder",
    "known",
    "measure",
]

_MODULES = {
    "calibration": ("Calibration", "known", "measure"),
    "onnx": ("OnnxEmbedder",),
    "protocol": ("Embedder", "MissingEmbedder"),
    "sources": ("default_embedder",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
