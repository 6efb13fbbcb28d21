"""Memory of a run over files: a matter of blocks and of the rows that are picked, not of how many rows there are.

What a run holds at once is at most

    (AHEAD + 4) blocks in single precision, of `BLOCK_ROWS × (columns + 3) × 4` bytes each: those read ahead, one being
    read, one being computed, one whose results are on their way, and the padded copy of a last one;
    as many in double precision while the table is checked and the chosen rows are fetched;
    one row group's column chunks, compressed and decoded, in the reader's buffers;
    the picked rows: the sample, the candidates, the rows targets sum over, some ten thousands in all;

and what JAX, its compiled programs and their work on one block take, some 300 MB here, whatever the rows. That is
measured by runs over a short file; the bound is on what a run over a long one takes beyond their peak. The C library
keeps what threads have freed in several places, up to 150 MB more; the measurement asks it for one place.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scale_tables import QUICK

from betacores.sources.base import BLOCK_ROWS
from betacores.sources.reader import AHEAD

COLUMNS, GROUP = 10, 100_000
SHORT = 400_001

# Peak of the memory that is the process's own: pages of files that the system may drop at will are no use of memory.
CODE = """
import json, resource, sys, threading
import betacores as bc

def held():
    with open("/proc/self/status") as file:
        return int(next(line for line in file if line.startswith("RssAnon")).split()[1]) * 1024

def peak(path):
    most, over = [held()], threading.Event()
    def watch():
        while not over.wait(0.002):
            most[0] = max(most[0], held())
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return bc.summarize(path, target="y", **settings), most
    finally:
        over.set()
        watcher.join()

short, long, limit, settings = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
base = max(peak(short)[1][0] for _ in range(2))
if limit:
    with open("/proc/self/status") as file:
        data = int(next(line for line in file if line.startswith("VmData")).split()[1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (data + limit, data + limit))
coreset, [most] = peak(long)
print(json.dumps({"more": most - base, "base": base, "indices": coreset.indices.tolist(), "y": coreset.y.tolist(),
                  "first": coreset.X[:, 0].tolist(), "rows": len(coreset.scores)}))
"""


def bound():
    """Bytes by the formula above."""
    block = BLOCK_ROWS * (COLUMNS + 3)
    blocks = (AHEAD + 4) * block * (4 + 8)
    row_group = 2 * GROUP * (COLUMNS + 1) * 8
    picked = 60_000 * (COLUMNS + 3) * 8
    return blocks + row_group + picked


def write(path, rows, seed=0):
    """Write a table of doubles row group by row group; the first column is the row's number, scaled."""
    rng, weights = np.random.default_rng(seed), np.linspace(-1, 1, COLUMNS)
    schema = pa.schema([*((f"x{j}", pa.float64()) for j in range(COLUMNS)), ("y", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for start in range(0, rows, GROUP):
            count = min(GROUP, rows - start)
            x = rng.normal(size=(count, COLUMNS))
            y = rng.random(count) < 1 / (1 + np.exp(-x @ weights))
            x[:, 0] = (start + np.arange(count)) / rows
            columns = [*(pa.array(x[:, j]) for j in range(COLUMNS)), pa.array(y.astype(np.int8))]
            file.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=count)
    return path


def measured(short, long, limit=0):
    run = subprocess.run(
        [sys.executable, "-c", CODE, str(short), str(long), str(limit), json.dumps(QUICK)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MALLOC_ARENA_MAX": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    return write(tmp_path_factory.mktemp("short") / "rows.parquet", SHORT, seed=1)


def check(found, rows):
    """The rows are those that their numbers say, from all over the file."""
    ids = np.array(found["indices"])
    assert found["rows"] == rows
    np.testing.assert_array_equal(found["first"], ids / rows)
    assert ids.max() > rows / 4


@pytest.mark.slow
def test_four_times_the_rows_take_no_more_memory(short, tmp_path):
    rows = 4 * SHORT
    path = write(tmp_path / "rows.parquet", rows)
    found = measured(short, path)
    check(found, rows)
    # Far less than the rows that are more.
    assert found["more"] < min(bound(), path.stat().st_size / 2)


@pytest.mark.slow
def test_file_larger_than_the_memory_allowed(short, tmp_path):
    """The system allows the process a third of the file's size beyond what the short run took."""
    rows = 8_000_000
    path = write(tmp_path / "rows.parquet", rows)
    limit = path.stat().st_size // 3
    found = measured(short, path, limit)
    check(found, rows)
    assert found["more"] < bound()
