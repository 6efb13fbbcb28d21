"""Claim: what is killed in a run costs time, and nothing else.

    python benchmarks/faults.py --kills 20 --worker-kills 10 --seed 0 --out docs/results/scale

Kills processes of runs with a checkpoint at random moments and starts them again; kills Dask workers in mid-pass.
Compares every coreset with that of the same run undisturbed, bit for bit: rows, weights, and scores of all rows. Writes
faults.json and faults.md.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import betacores as bc

COLUMNS = 10
SETTINGS = {"size": 50, "beta": 0.5}
RUN = """
import json, sys, time
import numpy as np
import betacores as bc

def on_pass(stage, rows, total):
    if stage != "check":
        print(stage, rows, flush=True)
        time.sleep(0.05)

path, folder, out, settings = sys.argv[1:]
coreset = bc.summarize(path, target="y", checkpoint=folder, on_pass=on_pass, **json.loads(settings))
np.savez(out, indices=coreset.indices, weights=coreset.weights, scores=np.asarray(coreset.scores))
"""


def written(folder, rows, seed):
    """Write a logistic table of which a tenth of the labels is flipped, in files of odd lengths."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    y = (rng.random(rows) < 1 / (1 + np.exp(-x @ np.linspace(-1, 1, COLUMNS)))) ^ (rng.random(rows) < 0.1)
    table = pa.table({**{f"x{j}": x[:, j] for j in range(COLUMNS)}, "y": y})
    folder.mkdir()
    ends = np.linspace(0, rows, 9).astype(int) + np.array([0, 3, -70, 11, 500, 1, 7, -9, 0])
    for k in range(8):
        part = table.slice(ends[k], ends[k + 1] - ends[k])
        pq.write_table(part, folder / f"part-{k}.parquet", row_group_size=50_001)
    return folder


def same(one, other):
    """Tell whether two coresets are the same, bit for bit."""
    return all(np.array_equal(one[name], other[name]) for name in ("indices", "weights", "scores"))


class Process:
    """One run with a checkpoint."""

    def __init__(self, rows, checkpoint, out):
        self.out = out
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(rows), str(checkpoint), str(out), json.dumps(SETTINGS)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        # Its first pass after the check begins.
        self.stage = self.process.stdout.readline().split()[0]
        self.begun = time.monotonic()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        """Follow what the run is at."""
        for line in self.process.stdout:
            self.stage = line.split()[0]

    def ended(self):
        """Return the result, and the seconds it took."""
        self.reader.join()
        if self.process.wait() != 0:
            raise SystemExit("a run failed")
        with np.load(self.out) as found:
            return dict(found), time.monotonic() - self.begun


def kill_processes(rows, root, kills, rng):
    """Kill processes until they have been killed so often; let every run end at last."""
    expected, span = Process(rows, root / "undisturbed", root / "result.npz").ended()
    stages, compared, different, number = [], 0, 0, 0
    while len(stages) < kills:
        folder = root / f"checkpoint-{number}"
        while len(stages) < kills:
            run = Process(rows, folder, root / "result.npz")
            time.sleep(rng.uniform(0, 0.7 * span))
            if run.process.poll() is not None:
                run.reader.join()
                break
            os.kill(run.process.pid, signal.SIGKILL)
            run.process.wait()
            run.reader.join()
            stages.append(run.stage)
        found, _ = Process(rows, folder, root / "result.npz").ended()
        compared, different = compared + 1, different + (not same(found, expected))
        shutil.rmtree(folder)
        number += 1
    return told("the process, SIGKILL at a random moment, checkpoint on disk", stages, compared, different)


def told(killed, stages, compared, different):
    """Return what was killed, during which stages, and what came of it."""
    return {
        "killed": killed,
        "kills": len(stages),
        "during": {stage: stages.count(stage) for stage in dict.fromkeys(stages)},
        "coresets compared": compared,
        "coresets that differ": different,
    }


def on_cluster(rows, on_pass_with):
    """Return the coreset of a run on a cluster of two workers; `on_pass_with(client)` is told of its passes."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        frame, on_pass = dd.read_parquet(rows), on_pass_with(client)
        coreset = bc.summarize(frame, target="y", client=client, on_pass=on_pass, **SETTINGS)
        return {"indices": coreset.indices, "weights": coreset.weights, "scores": np.asarray(coreset.scores)}


def kill_workers(rows, kills, rng):
    """Kill workers in mid-pass, run after run, until they have been killed so often."""
    expected = on_cluster(rows, lambda client: None)
    stages, compared, different = [], 0, 0

    def killer(client):
        here = []

        def on_pass(stage, seen, total):
            # At most once a stage, while other partitions are still at work: a task whose workers died three times is
            # given up by Dask.
            if stage == "check" or stage in here or not seen or seen >= total or len(stages) >= kills:
                return
            here.append(stage)
            time.sleep(rng.uniform(0, 0.02))
            workers = sorted(client.run(os.getpid).values())
            os.kill(workers[rng.integers(len(workers))], signal.SIGKILL)
            stages.append(stage)

        return on_pass

    while len(stages) < kills:
        found = on_cluster(rows, killer)
        compared, different = compared + 1, different + (not same(found, expected))
    return told("a Dask worker of two, SIGKILL in mid-pass", stages, compared, different)


def page(table):
    """Return the table as a person reads it."""
    lines = [
        "# What was killed, and what was lost",
        "",
        f"Rows of {COLUMNS} columns in 8 Parquet files; coresets compared bit for bit (rows, weights, scores of all "
        "rows) with that of the same run undisturbed.",
        "",
        "| killed | times | during | rows | coresets compared | lost |",
        "|---|---|---|---|---|---|",
    ]
    for one in table.values():
        during = ", ".join(f"{stage} {count}" for stage, count in one["during"].items())
        lost = f"{one['coresets that differ']} differ" if one["coresets that differ"] else "nothing"
        cells = (one["killed"], one["kills"], during, f"{one['rows']:,}", one["coresets compared"], lost)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    for part, one in table.items():
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        lines += ["", f"{part.capitalize()}: `{one['command']}`, {versions}."]
    return "\n".join(lines) + "\n"


def main():
    """Kill, compare, write down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--kills", type=int, default=20, help="of processes; 0 leaves that part of the table")
    parser.add_argument("--worker-kills", type=int, default=10, help="of workers; likewise")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    place = asked.out / "faults.json"
    about = {
        "command": "python " + " ".join(sys.argv),
        "seed": asked.seed,
        "rows": asked.rows,
        "versions": {"betacores": bc.__version__, **{name: version(name) for name in ("jax", "numpy", "distributed")}},
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        rows = written(Path(root) / "rows", asked.rows, asked.seed)
        parts = {
            "processes": (asked.kills, lambda: kill_processes(rows, Path(root), asked.kills, rng)),
            "workers": (asked.worker_kills, lambda: kill_workers(rows, asked.worker_kills, rng)),
        }
        for part, (kills, work) in parts.items():
            if kills:
                found = {**work(), **about}
                table = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
                table[part] = found
                print(json.dumps(table[part]), flush=True)
                place.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")
                (asked.out / "faults.md").write_text(page(table), encoding="utf-8")


if __name__ == "__main__":
    main()
