"""Measure the calibration of models and write it where the package looks for it.

    python bench/make_calibration.py FOLDER...

Run it again for a model when its file, the sentences or the formulas of `holomem.embedding.calibration` change.
"""

import argparse
import platform
import time
from pathlib import Path

import numpy as np

import holomem.embedding.calibration as calibration
from holomem.embedding import OnnxEmbedder, measure

TARGET = Path(calibration.__file__).parent / "calibrations"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", help="a folder with an ONNX graph and tokenizer.json")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write to (default: the package's)")
    arguments = parser.parse_args()
    arguments.target.mkdir(parents=True, exist_ok=True)
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    for folder in arguments.folder:
        embedder = OnnxEmbedder(folder)
        start = time.perf_counter()
        found = measure(embedder)
        seconds = time.perf_counter() - start
        path = arguments.target / calibration.file_name(embedder.model)
        path.write_bytes(found.to_bytes())
        print(
            f"{embedder.model.name}: low {found.low:.2f}, span {found.span:.2f}, {len(found.directions)} directions, "
            f"{seconds:.1f} s -> {path.name} ({path.stat().st_size} bytes)"
        )


if __name__ == "__main__":
    main()
