"""SIGKILL at random moments: the same command goes on, and ends with the coreset of a run that nobody disturbed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scale_tables import QUICK, arrow_table, logistic_table, written

pytestmark = pytest.mark.faults
SETTINGS = {**QUICK, "guard": "auto"}
REST = 0.15


class Runs:
    """Starts runs, and kills them."""

    def __init__(self, root):
        self.root, self.count = root, 0
        x, y = logistic_table()
        self.path = written(arrow_table(x, y=y), root / "rows.parquet")

    def start(self, folder):
        self.count += 1
        self.out = self.root / f"result-{self.count}.npz"
        script = Path(__file__).with_name("checkpointed_run.py")
        return subprocess.Popen(
            [sys.executable, str(script), str(self.path), str(folder), str(self.out), json.dumps(SETTINGS), str(REST)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )

    def finished(self, folder):
        started = time.monotonic()
        process = self.start(folder)
        first = process.stdout.readline()
        begun = time.monotonic()
        process.communicate(timeout=300)
        assert process.returncode == 0
        assert first
        self.span = time.monotonic() - begun
        self.seconds = time.monotonic() - started
        with np.load(self.out) as found:
            return dict(found)

    def killed(self, folder, seconds):
        """Kill a run so long after its first pass began; return whether it was still under way."""
        process = self.start(folder)
        process.stdout.readline()
        time.sleep(seconds)
        under_way = process.poll() is None
        process.kill()
        process.communicate(timeout=60)
        return under_way


def assert_survives(root, kills, seed):
    runs, rng = Runs(root), np.random.default_rng(seed)
    expected = runs.finished(root / "undisturbed")
    span, done, number = runs.span, 0, 0
    while done < kills:
        folder = root / f"checkpoint-{number}"
        while done < kills:
            if not runs.killed(folder, rng.uniform(0, 0.8 * span)):
                break
            done += 1
        found = runs.finished(folder)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert found[name].dtype == values.dtype
            assert np.array_equal(found[name], values), name
        shutil.rmtree(folder)
        number += 1


def test_a_kill_changes_nothing(tmp_path):
    assert_survives(tmp_path, 1, seed=0)


@pytest.mark.slow
def test_twenty_kills_change_nothing(tmp_path):
    assert_survives(tmp_path, 20, seed=1)
