"""A robust coreset of a million rows against one classical fit by scikit-learn, in one run.

N = 1,000,000, d = 10, logistic regression, 100 rows kept, everything else at its default: β, guard, scores of all rows
and the quality estimate included. Both are timed several times, in turn, after compilation, and the best of each is
compared, since other processes share the machine. The memory is the growth of the process's largest resident size
during one call, in a process that has compiled everything on other data of the same shape.

    python benchmarks/pursuit_vs_sklearn.py [--rows N] [--repeats K] [--out docs/results/pursuit/speed-sklearn.json]
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

import betacores as bc

COLUMNS, SIZE = 10, 100


def table(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal covariates and labels by a logistic model, a twentieth of them flipped."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, COLUMNS))
    theta = random.normal(size=COLUMNS)
    theta *= 2.5 / np.linalg.norm(theta)
    y = (random.uniform(size=rows) < 1 / (1 + np.exp(-x @ theta))).astype(np.int64)
    y[: rows // 20] = 1 - y[: rows // 20]
    return x, y


def peak() -> int:
    """Return the largest resident size of this process since the last reset, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def resident() -> int:
    """Return the present resident size of this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def reset_peak() -> None:
    """Give freed memory back, so that earlier calls lend this one nothing, and forget the largest size (Linux)."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def timed(work: object) -> float:
    """Return the seconds a call takes."""
    started = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - started


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    x, y = table(given.rows, given.seed)
    # Compiles everything, on other data of the same shape.
    first = timed(lambda: bc.summarize(*table(given.rows, given.seed + 1), size=SIZE))
    ours, theirs = [], []
    for _ in range(given.repeats):
        ours.append(timed(lambda: bc.summarize(x, y, size=SIZE)))
        theirs.append(timed(lambda: LogisticRegression().fit(x, y)))
    reset_peak()
    before = resident()
    coreset = bc.summarize(x, y, size=SIZE)
    extra = peak() - before
    result = {
        "command": f"python benchmarks/pursuit_vs_sklearn.py --rows {given.rows} --repeats {given.repeats}"
        f" --seed {given.seed}",
        "version": bc.__version__,
        "rows": given.rows,
        "first_call_s": first,
        "pursuit_s": ours,
        "sklearn_s": theirs,
        "ratio_best": min(ours) / min(theirs),
        "ratio_median": float(np.median(ours) / np.median(theirs)),
        "input_bytes": x.nbytes + y.nbytes,
        "extra_bytes": extra,
        "extra_over_input": extra / (x.nbytes + y.nbytes),
        "kl_estimate": coreset.info.kl_estimate,
        "timings_s": coreset.info.timings,
    }
    print(coreset)
    print(json.dumps(result, indent=2))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
