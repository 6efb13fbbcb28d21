"""What a pass over rows costs: core-seconds for each row, and bytes that it gives, whatever the number of rows.

    python benchmarks/scale_per_row.py --rows 2e6 --out docs/results/scale/per-row.json

Processor time of all threads, of a second run (the first compiles). The first pass reads and decodes Parquet, the
others read the rows as workers hold them. The bytes are those of the state that a pass leaves in its journal, which is
also what a worker sends for a partition.

The longest tables have a sample that is short for their length, so that choosing β takes two passes, with curvatures;
the sample is made as short here, or the passes would be those of two million rows.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import betacores as bc
from betacores import samples

COLUMNS = 10


def written(folder, rows):
    """Write a logistic table of which one label in twenty is turned round, in files of a million rows."""
    theta = np.random.default_rng(99).normal(size=COLUMNS)
    for k, start in enumerate(range(0, rows, 1_000_000)):
        random, count = np.random.default_rng(k), min(1_000_000, rows - start)
        x = random.normal(size=(count, COLUMNS)).astype(np.float32)
        y = (random.uniform(size=count) < 1 / (1 + np.exp(-x @ theta))) ^ (random.uniform(size=count) < 0.05)
        pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(COLUMNS)} | {"y": y}), folder / f"{k:04d}.parquet")


def measured(folder):
    """Return processor seconds and passes of every stage, and the coreset."""
    spent: Counter = Counter()
    last = [time.process_time()]

    def on_pass(stage, rows, total):
        now = time.process_time()
        if rows:
            spent[stage] += now - last[0]
        last[0] = now

    coreset = bc.summarize(str(folder), target="y", size=100, on_pass=on_pass)
    return spent, coreset


def main():
    """Measure, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=2e6)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = int(asked.rows)
    samples.MOST_CELLS = COLUMNS * samples.SAMPLE_ROWS
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder, notes = Path(place) / "rows", Path(place) / "notes"
        folder.mkdir()
        written(folder, rows)
        bc.summarize(str(folder), target="y", size=100, checkpoint=notes)
        states = [file.stat().st_size for file in sorted(notes.glob("pass-*.state"))]
        spent, coreset = measured(folder)
        stored = sum(file.stat().st_size for file in folder.iterdir())
    passes = coreset.info.passes
    found = {
        "command": f"python benchmarks/scale_per_row.py --rows {asked.rows:g}",
        "betacores": bc.__version__,
        "jax": jax.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "rows": rows,
        "columns": COLUMNS,
        "parquet_bytes_per_row": stored / rows,
        "passes": passes,
        "core_seconds_per_row_and_pass": {stage: spent[stage] / rows / count for stage, count in passes.items()},
        "state_bytes": states,
    }
    text = json.dumps(found, indent=2)
    print(text)
    if asked.out is not None:
        asked.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
