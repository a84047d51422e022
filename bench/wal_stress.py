"""Do several processes that write and checkpoint at once lose anything? Prints what was acknowledged, lost and found.

Every process adds facts and makes a checkpoint after each few; a small checkpoint threshold makes the race that corrupts
WAL files of SQLite up to 3.51.2 (a checkpoint against the commit that restarts the log) as frequent as it can be.

    python bench/wal_stress.py --seconds 180 --processes 4
"""

import argparse
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = """
import sys, time
from holomem import Memory, database
database.WAL_BYTES = 60_000
path, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
memory = Memory(path, embedder=None)
i = 0
while time.monotonic() < end:
    content = f"{name} writes line {i} for Person{i % 9}"
    memory.add(content)
    print(content, flush=True)
    i += 1
    if i % 3 == 0:
        memory.search(f"line {i}")
    if i % 25 == 0:
        memory.close()  # closing checkpoints too
        memory = Memory(path, embedder=None)
memory.close()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    path = folder / "stress.db"
    started = time.monotonic()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, path, f"w{n}", str(options.seconds)], stdout=subprocess.PIPE, text=True
        )
        for n in range(options.processes)
    ]
    outputs = [worker.communicate()[0].splitlines() for worker in workers]
    failed = [worker.returncode for worker in workers if worker.returncode]
    acknowledged = {line for lines in outputs for line in lines}
    connection = sqlite3.connect(path)
    stored = {row[0] for row in connection.execute("SELECT content FROM facts")}
    integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.execute("INSERT INTO facts_fts(facts_fts, rank) VALUES ('integrity-check', 1)")
    connection.close()
    lost = acknowledged - stored
    print(
        f"SQLite {sqlite3.sqlite_version}, {options.processes} processes, {time.monotonic() - started:.0f} s: acknowledged"
        f" {len(acknowledged)}, lost {len(lost)}, stored {len(stored)}, integrity {integrity}, failed processes {failed}"
    )
    sys.exit(bool(lost or failed or integrity != "ok"))


if __name__ == "__main__":
    main()
