"""One measurement in a fresh process: `python _measure.py WHAT SYSTEM CACHE SIZE [STARTED]`, one line of JSON out.

WHAT is build, warm, add, cold or structure. Times are lists of milliseconds: "cpu" of this process (all its threads), "wall".
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import _facts
from _systems import SYSTEMS

ASKED = 200  # questions that a process has answered before it is measured; the others are new to it
WARM_UP = 20
PROBES = 100
SLOW = 20.0  # seconds after which a series of calls ends early


def main() -> None:
    what, system, cache, size = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
    folder = cache / f"{system}-{size}"
    result = {"build": build, "warm": warm, "add": add, "cold": cold, "structure": structure}[what](
        system, cache, size, folder
    )
    print(json.dumps(result))
    sys.stdout.flush()
    os._exit(0)  # background threads of some systems would keep the process for seconds


def build(system: str, cache: Path, size: int, folder: Path) -> dict[str, float | None]:
    folder.mkdir(parents=True)
    cpu, wall = time.process_time(), time.perf_counter()
    SYSTEMS[system](folder).build(cache, size)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {"seconds": wall, "cpu_seconds": cpu, "bytes": used, "rss": peak_bytes()}


def warm(system: str, cache: Path, size: int, folder: Path) -> dict[str, object]:
    questions = _facts.questions(cache, size)
    memory = SYSTEMS[system](folder)
    memory.open(questions)
    opened = rss_bytes()
    asked = list(zip(questions.texts, questions.vectors, strict=True))
    timed([lambda q=q: memory.search(*q) for q in asked[:ASKED]])
    result: dict[str, object] = {"search": timed([lambda q=q: memory.search(*q) for q in asked[ASKED:]])}
    result["rss_open"], result["rss"] = opened, rss_bytes()
    try:
        for name in questions.names[:2]:
            memory.probe(name)
        result["probe"] = timed([lambda n=n: memory.probe(n) for n in questions.names[:PROBES]])
        result["rss_probe"] = rss_bytes()
    except NotImplementedError:
        pass
    return result


def add(system: str, cache: Path, size: int, folder: Path) -> dict[str, object]:
    """Single adds, and searches each after an add, on a copy of the store."""
    import shutil
    import tempfile

    questions = _facts.questions(cache, size)
    with tempfile.TemporaryDirectory(dir=cache, prefix="copy-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        memory = SYSTEMS[system](Path(copy))
        memory.open(questions)
        new = list(zip(questions.added, questions.added_vectors, strict=True))
        try:
            for item in new[:WARM_UP]:
                memory.add(*item)
        except NotImplementedError:
            return {}
        half = len(new) // 2
        result = {"add": timed([lambda i=i: memory.add(*i) for i in new[WARM_UP:half]])}
        after: dict[str, list[float]] = {"cpu": [], "wall": []}
        until = time.perf_counter() + SLOW
        memory.search(questions.texts[0], questions.vectors[0])
        for item, question in zip(new[half:], zip(questions.texts, questions.vectors, strict=True), strict=False):
            memory.add(*item)
            for kind, values in timed([lambda q=question: memory.search(*q)]).items():
                after[kind] += values
            if time.perf_counter() > until:
                break
        result["search_after_add"] = after
        memory.close()
    return result


def structure(system: str, cache: Path, size: int, folder: Path) -> dict[str, object]:
    """probe, reason, related, contradictions; and encoding a fact, where the system is holomem."""
    questions = _facts.questions(cache, size)
    memory = SYSTEMS[system](folder)
    memory.open(questions)
    names = questions.names[:PROBES]
    memory.probe(names[-1])
    result: dict[str, object] = {"probe": timed([lambda n=n: memory.probe(n) for n in names])}
    for count in (2, 3):
        groups = [names[start : start + count] for start in range(len(names) - count)]
        result[f"reason of {count}"] = timed([lambda g=g: memory.reason(g) for g in groups])
    result["related"] = timed([lambda n=n: memory.related(n) for n in names])
    result["contradictions"] = timed([memory.contradictions])
    if system == "holomem":
        result |= without_links(cache, folder, questions, names)
        from holomem import hrr

        known = [fact.split()[:12] for fact in questions.added]
        new = [[f"{word}{i}" for word in words] for i, words in enumerate(known)]
        for words in known:
            hrr.encode_fact(words, words[:2])
        result["encode 12 words"] = timed([lambda w=w: hrr.encode_fact(w, w[:2]) for w in known[-100:]])
        result["encode 12 new words"] = timed([lambda w=w: hrr.encode_fact(w, w[:2]) for w in new])
    return result


def without_links(cache: Path, folder: Path, questions: _facts.Questions, names: list[str]) -> dict[str, object]:
    """The same by the algebra alone: on a copy of holomem's store whose links are taken away."""
    import shutil
    import sqlite3
    import tempfile

    with tempfile.TemporaryDirectory(dir=cache, prefix="copy-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        file = sqlite3.connect(Path(copy) / "memory.db")
        file.execute("DELETE FROM fact_entities")
        file.commit()
        file.close()
        memory = SYSTEMS["holomem"](Path(copy))
        memory.open(questions)
        memory.probe(names[-1])
        groups = [names[start : start + 3] for start in range(len(names) - 3)]
        result: dict[str, object] = {"probe, no links": timed([lambda n=n: memory.probe(n) for n in names])}
        result["reason of 3, no links"] = timed([lambda g=g: memory.reason(g) for g in groups])
        memory.close()
        return result


def cold(system: str, cache: Path, size: int, folder: Path) -> dict[str, float | None]:
    """From the start of the process (its wall-clock time is the fifth argument) to the first answer."""
    questions = _facts.questions(cache, size)
    memory = SYSTEMS[system](folder)
    memory.open(questions)
    found = memory.search(questions.texts[0], questions.vectors[0])
    wall, cpu = time.time() - float(sys.argv[5]), time.process_time()
    return {"wall": 1000 * wall, "cpu": 1000 * cpu, "rss": peak_bytes(), "found": len(found)}


def timed(calls: list[Callable[[], object]]) -> dict[str, list[float]]:
    """CPU and wall milliseconds of each call."""
    cpu, wall = [], []
    until = time.perf_counter() + SLOW
    for call in calls:
        before_cpu, before = time.process_time(), time.perf_counter()
        call()
        wall.append(1000 * (time.perf_counter() - before))
        cpu.append(1000 * (time.process_time() - before_cpu))
        if time.perf_counter() > until:
            break
    return {"cpu": cpu, "wall": wall}


def rss_bytes() -> int | None:
    """Resident memory now; ru_maxrss would be the peak."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def peak_bytes() -> int | None:
    """The most that was resident. Not ru_maxrss: on Linux that also counts what the parent had before exec."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    return next((1024 * int(line.split()[1]) for line in status.read_text().splitlines() if "VmHWM" in line), None)


if __name__ == "__main__":
    main()
