"""Texts to unit vectors, and what a cosine of two of them is worth.

Importing this loads neither onnxruntime, tokenizers nor huggingface_hub.
"""

from __future__ import annotations

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
