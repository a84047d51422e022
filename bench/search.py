"""How fast is it, and how much room does it take? holomem beside the floor and its peers, in one run.

    python bench/search.py                                   1k, 10k and 100k facts
    python bench/search.py --sizes 1000 --systems holomem floor
    python bench/search.py --peers-python /usr/bin/python3   peers installed in another Python (sqlite-vec needs one
                                                             whose sqlite3 loads extensions)

The question's vector is given and nothing is embedded: a model's time is the model's. Each figure is from a fresh
process on one thread. CPU ms are the process's own, wall ms wait for others and for the disk too; where others use the
memory's bandwidth, read the ratios to the floor. Built stores are kept in `--cache`; `--rebuild` makes them again, which
is needed after a change of the file's format.

    floor         NumPy: matrix of the vectors @ vector, argpartition: no text, no filter, nothing stored
    sqlite-vec    with FTS5, merged by reciprocal ranks, synchronous FULL
    chromadb      HNSW, vectors only, approximate
    hermes-agent  the bundled holographic plugin of 0.19: no vectors; its adds grow with the store
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import _facts
import _machine
from _systems import PACKAGES, SYSTEMS
from _vectors import default_cache

# The largest store that a system is measured at unless --slow: chromadb builds 230 facts/s, the plugin 60 and its
# probe takes 3 ms a fact.
LARGEST: Final = {"chromadb": 10_000, "hermes-agent": 1_000}
LARGEST_SLOW: Final = {"chromadb": 100_000, "hermes-agent": 10_000}
COLD_RUNS: Final = 5
# What must not be exceeded at 10,000 facts, in CPU ms at the median.
TARGETS: Final = {"search": 3.0, "probe": 5.0, "add": 2.0}
AT: Final = 10_000
ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PROBE_VERSIONS: Final = (
    "import sys, sqlite3; from importlib.util import find_spec; from importlib.metadata import version;"
    "print(sys.version.split()[0], sqlite3.sqlite_version, hasattr(sqlite3.Connection, 'enable_load_extension'));"
    "[print(p, version(p)) for p, m in {packages!r}.items() if find_spec(m.split('.')[0])]"
)

Json = dict[str, Any]


def measure(python: str, what: str, system: str, cache: Path, size: int) -> Json:
    """What one fresh process says; {"failed": its last line} when it fails."""
    command = [python, str(Path(__file__).with_name("_measure.py")), what, system, str(cache), str(size)]
    done = subprocess.run(
        [*command, repr(time.time())], capture_output=True, text=True, env=os.environ | ONE_THREAD, check=False
    )
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    result: Json = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def built(python: str, system: str, cache: Path, size: int, *, rebuild: bool) -> Json:
    """What building a store took, when it was built; the store is there afterwards unless it failed."""
    record = cache / f"{system}-{size}.json"
    if rebuild or not record.exists():
        shutil.rmtree(cache / f"{system}-{size}", ignore_errors=True)
        record.unlink(missing_ok=True)
        say(f"{system}: building {size:,} facts")
        took = measure(python, "build", system, cache, size)
        if "failed" in took:
            return took
        record.write_text(json.dumps(took), encoding="utf-8")
    result: Json = json.loads(record.read_text(encoding="utf-8"))
    return result


def run(python: str, system: str, cache: Path, size: int, *, rebuild: bool) -> Json:
    """Every figure of one system at one size."""
    result: Json = {"build": built(python, system, cache, size, rebuild=rebuild)}
    if "failed" in result["build"]:
        return result["build"]
    say(f"{system}: {size:,} facts")
    result["cold"] = [measure(python, "cold", system, cache, size) for _ in range(COLD_RUNS)]
    for what in ("warm", "add"):
        result |= measure(python, what, system, cache, size)
    failed = [run["failed"] for run in result["cold"] if "failed" in run]
    return {"failed": failed[0]} if failed else result


def say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


# ---- the report ----------------------------------------------------------------------------------------------------


def report(results: dict[tuple[int, str], Json], *, markdown: bool) -> None:
    """Tables of warm calls, cold starts and builds, and whether the targets are met."""
    series = {"search": "search", "probe": "probe", "add": "add", "search_after_add": "search after an add"}
    for name, title in series.items():
        body = []
        for (size, system), result in results.items():
            if name in result:
                cpu, wall = result[name]["cpu"], result[name]["wall"]
                figures = [quantile(cpu, 50), quantile(cpu, 95), quantile(wall, 50), quantile(wall, 95)]
                row = [f"{size:,}", system, *(number(figure) for figure in figures)]
                if name == "search":
                    floor = results.get((size, "floor"), {}).get("search")
                    row += [f"{figures[0] / quantile(floor['cpu'], 50):.1f}" if floor else "-"]
                    row += [megabytes(result["rss_open"]), megabytes(result["rss"])]
                body.append(row)
        head = ["facts", "system", "CPU p50", "CPU p95", "wall p50", "wall p95"]
        head += ["x floor", "RSS MB open", "after"] if name == "search" else []
        if body:
            table(f"{title} (ms)", head, body, markdown=markdown)
    body = []
    for (size, system), result in results.items():
        if "cold" in result:
            runs = result["cold"]
            wall, cpu = sorted(run["wall"] for run in runs), statistics.median(run["cpu"] for run in runs)
            figures = [f"{statistics.median(wall):.0f}", f"{wall[0]:.0f}", f"{cpu:.0f}"]
            body.append([f"{size:,}", system, *figures, megabytes(max(run["rss"] or 0 for run in runs) or None)])
    title = "fresh process to the first hit (ms)"
    table(title, ["facts", "system", "wall p50", "best", "CPU p50", "peak RSS MB"], body, markdown=markdown)
    body = []
    for (size, system), result in results.items():
        if "build" in result and system != "floor":
            built = result["build"]
            speeds = [f"{size / built[kind]:,.0f}" for kind in ("seconds", "cpu_seconds")]
            body.append([f"{size:,}", system, *speeds, f"{built['bytes'] / size:,.0f}", megabytes(built["rss"])])
    head = ["facts", "system", "facts/s", "facts/CPU s", "bytes/fact", "peak RSS MB"]
    table("bulk add, when the store was built", head, body, markdown=markdown)
    for (size, system), result in results.items():
        if "failed" in result:
            print(f"skipped: {system} at {size:,}: {result['failed']}")
    targets(results)


def targets(results: dict[tuple[int, str], Json]) -> None:
    """Print whether what the project asks of itself is met."""
    mine = results.get((AT, "holomem"), {})
    print()
    for name, most in TARGETS.items():
        if name in mine:
            cpu, wall = quantile(mine[name]["cpu"], 50), quantile(mine[name]["wall"], 50)
            verdict = "met" if cpu <= most else "MISSED"
            print(f"target at {AT:,}: {name} <= {most:.0f} ms: {cpu:.2f} CPU, {wall:.2f} wall: {verdict}")
    small = results.get((1000, "holomem"), {})
    if "add" in mine and "add" in small:
        first, second = (quantile(r["add"]["cpu"], 50) for r in (small, mine))
        verdict = "met" if second <= 1.1 * first else "MISSED"  # a tenth is the noise between two runs
        print(f"target: add no slower at {AT:,} than at 1,000: {second:.2f} and {first:.2f} CPU ms: {verdict}")


def quantile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def number(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.0f}"


def table(title: str, head: list[str], body: list[list[str]], *, markdown: bool) -> None:
    """Print one table; the first two columns are text, the others are figures."""
    print()
    if markdown:
        print(f"**{title}**\n\n| {' | '.join(head)} |\n|---|---|{'---:|' * (len(head) - 2)}")
        print("\n".join(f"| {' | '.join(row)} |" for row in body))
        return
    widths = [max(len(row[i]) for row in (head, *body)) for i in range(len(head))]
    print(title)
    for row in (head, *body):
        print("  ".join(c.ljust(w) if i == 1 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))))


def peers(python: str) -> tuple[str, dict[str, str]]:
    """The peers' Python in one line, and the installed peers with their versions."""
    asked = PROBE_VERSIONS.format(packages=PACKAGES)
    lines = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.splitlines()
    release, sqlite, loads = lines[0].split()
    installed = dict(line.split() for line in lines[1:])
    extensions = "loads" if loads == "True" else "cannot load"
    return f"Python {release}, SQLite {sqlite}, which {extensions} extensions", installed


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], metavar="N")
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS), metavar="SYSTEM")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python in which the peers are installed")
    parser.add_argument("--slow", action="store_true", help="chromadb at 100,000 and the plugin at 10,000 facts too")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder that keeps data and built stores")
    parser.add_argument("--rebuild", action="store_true", help="build the stores anew")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--markdown", action="store_true")
    output.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    python, installed = peers(arguments.peers_python)
    machine = _machine.describe()
    if set(arguments.systems) & PACKAGES.keys():
        versions = ", ".join(f"{name} {version}" for name, version in installed.items()) or "none installed"
        machine += f"\npeers in {python}: {versions}"
    print(machine, file=sys.stderr if arguments.json else sys.stdout, flush=True)
    most = LARGEST_SLOW if arguments.slow else LARGEST
    results: dict[tuple[int, str], Json] = {}
    for size in arguments.sizes:
        _facts.make(arguments.cache, size)
        for system in arguments.systems:
            if system in PACKAGES and system not in installed:
                results[size, system] = {"failed": "not installed"}
            elif size > most.get(system, size):
                results[size, system] = {"failed": "takes very long" + ("" if arguments.slow else "; see --slow")}
            else:
                with_python = arguments.peers_python if system in PACKAGES else sys.executable
                results[size, system] = run(with_python, system, arguments.cache, size, rebuild=arguments.rebuild)
    if arguments.json:
        flat = [{"facts": size, "system": system, **result} for (size, system), result in results.items()]
        print(json.dumps({"machine": machine, "results": flat}, indent=1))
    else:
        report(results, markdown=arguments.markdown)


if __name__ == "__main__":
    main()
