"""Is the compact tokenizer equal to the library's, and what does it save? Texts compared, then a fresh process a row.

python bench/tokenizer.py                             # multilingual-e5-small of shared/models, all texts of shared/eval
python bench/tokenizer.py --tokenizer some/tokenizer.json --texts 20000
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _machine

from holomem.embedding.compact import META, CompactTokenizer
from holomem.embedding.compact_build import build_apart
from holomem.embedding.compact_texts import texts

SHARED = Path(os.environ.get("HOLOMEM_SHARED", Path(__file__).parents[2] / "shared"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = SHARED / "models" / "multilingual-e5-small" / "tokenizer.json"
    parser.add_argument("--tokenizer", type=Path, default=default)
    parser.add_argument("--eval", type=Path, default=SHARED / "eval")
    parser.add_argument("--texts", type=int, default=100_000, help="how many random texts are compared")
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        row(*options.row)
        return
    print(_machine.describe("tokenizers"))
    with tempfile.TemporaryDirectory() as folder:
        compact, sample = Path(folder) / "compact.tok", Path(folder) / "sample.json"
        started = time.perf_counter()
        build_apart(options.tokenizer, compact)
        print(f"built in {time.perf_counter() - started:.1f} s, {compact.stat().st_size / 2**20:.1f} MB")
        life = eval_texts(options.eval)
        sample.write_text(json.dumps(measured(life)), encoding="utf-8")
        compare(options.tokenizer, compact, life, options.texts)
        for name, path in (("compact", compact), ("tokenizers", options.tokenizer)):
            subprocess.run([sys.executable, __file__, "--row", name, path, sample], check=True)


def eval_texts(folder):
    """All different strings of the files below a folder."""
    found = set()
    for path in folder.glob("**/*.jsonl"):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                collect(json.loads(line), found)
    return sorted(found)


def collect(value, found):
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            collect(part, found)


def measured(life):
    """Texts to time: queries of a sentence, longer texts made of several, and varied ones."""
    chance = random.Random(3)
    sentences = [text for text in life if 60 <= len(text) <= 90]
    longer = [" ".join(chance.sample(sentences, 9)) for _ in range(100)]
    return {"short": chance.sample(sentences, 200), "long": longer, "varied": chance.sample(life, 100)}


def compare(tokenizer, compact, life, count):
    library, opened = load("tokenizers", tokenizer), CompactTokenizer.open(compact)
    words = [piece.replace(META, " ") for piece in pieces(tokenizer)]
    for name, sample in (
        (str(len(life)) + " texts of eval", life),
        (f"{count} random texts", texts(words, count, seed=5)),
    ):
        differ = without = tokens = 0
        for text in sample:
            ids = opened.encode(text)
            if ids is None:
                without += 1
            else:
                tokens += len(ids)
                differ += ids != library(text)
        print(f"{name}: {tokens} tokens, {differ} texts differ, {without} are left to the library")


def pieces(tokenizer):
    from tokenizers import Tokenizer

    return sorted(Tokenizer.from_file(str(tokenizer)).get_vocab())


def load(name, path):
    if name == "compact":
        return CompactTokenizer.open(Path(path)).encode
    from tokenizers import Tokenizer

    opened = Tokenizer.from_file(str(path))
    opened.no_padding()
    opened.no_truncation()
    return lambda text: opened.encode(text).ids


def row(name, path, sample):
    """One tokenizer in this process: time to open, milliseconds a text, resident megabytes that it added."""
    sample = json.loads(Path(sample).read_text(encoding="utf-8"))
    if name == "tokenizers":
        import tokenizers  # noqa: F401 - its own memory is not counted
    before = resident()
    started = time.perf_counter()
    encode = load(name, path)
    opened = time.perf_counter() - started
    for text in sample["varied"]:
        encode(text)
    after = resident()
    times = [[timed(encode, text) for text in sample[kind]] for kind in ("short", "long")]
    figures = [f"open {1000 * opened:.1f} ms"]
    for calls in times:
        tokens, milliseconds = zip(*calls, strict=True)
        figures.append(f"{statistics.mean(tokens):.0f} tokens {statistics.median(milliseconds):.2f} ms")
    figures += [f"{kind} +{after[kind] - before[kind]:.1f} MB" for kind in after]
    print(f"{name:<11}", ", ".join(figures))


def timed(encode, text):
    started = time.perf_counter()
    ids = encode(text)
    return len(ids), 1000 * (time.perf_counter() - started)


def resident():
    names = {"VmRSS": "RSS", "RssAnon": "anonymous", "RssFile": "file"}
    lines = [line.split() for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()]
    return {names[line[0][:-1]]: int(line[1]) / 1024 for line in lines if line[0][:-1] in names}


if __name__ == "__main__":
    main()
