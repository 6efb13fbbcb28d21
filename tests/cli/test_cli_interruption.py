"""Ctrl-C: real signals to real processes. The first keeps what was found, the second ends at once."""

import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import betacores as bc
from betacores.constructions.frank_wolfe import frank_wolfe
from betacores.constructions.giga import giga

pytestmark = pytest.mark.faults

# The command line, with a person at the keys who presses Ctrl-C so many times when so many steps are done; at 0,
# before anything is begun.
PRESSED = """
import os, signal, sys
from contextlib import contextmanager
import betacores.cli.progress as shown

at, times = int(sys.argv.pop(1)), int(sys.argv.pop(1))
drawn = shown.progress_bar

def press(done):
    for _ in range(times if done == at else 0):
        os.kill(os.getpid(), signal.SIGINT)

@contextmanager
def progress_bar(*arguments, **options):
    with drawn(*arguments, **options) as progress:
        press(0)
        yield lambda done, total: (progress(done, total), press(done))

shown.progress_bar = progress_bar
from betacores.cli import main
main()
"""
QUICK = ["--beta", "0.1", "--no-guard", "--no-report"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return {**os.environ, "BETACORES_CACHE": str(tmp_path_factory.mktemp("compiled"))}


@pytest.fixture
def file(tmp_path):
    x = np.random.default_rng(0).normal(size=(400, 12))
    pq.write_table(pa.table({f"x{j}": x[:, j] for j in range(12)}), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def pressed(at, times, *arguments, env):
    command = [sys.executable, "-c", PRESSED, str(at), str(times), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=env)


def test_ctrl_c_keeps_what_was_found_and_resume_goes_on(file, compiled, refused):
    out = file.parent / "out"
    done = pressed(4, 1, "summarize", file, *QUICK, "--size", "30", "--out", out, env=compiled)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert {one.name for one in file.parent.iterdir()} == {"t.parquet", "out"}
    first = bc.load(out)
    assert len(first) == 4
    assert any("Interrupted at 4 of at most 30 rows" in line for line in first.info.warnings)
    assert json.loads((out / "summary.json").read_text())["run"]["interrupted"] is True
    told = done.stderr.strip().splitlines()[-1]
    assert f"interrupted at 4 rows, which are in {out}. To go on: " in told

    # With other options it is another run.
    line = refused("summarize", file, "--seed", "1", "--beta", "0.1", "--no-guard", "--out", out, "--resume")
    assert "--resume: --size, --seed are not as in the run to go on with, which was: betacores summarize" in line
    assert "exists already" in refused("summarize", file, *QUICK, "--size", "30", "--out", out)

    words = shlex.split(told.partition("To go on: ")[2])
    assert words[0] == "betacores"
    command = [sys.executable, "-m", *words, "--json"]
    resumed = subprocess.run(command, capture_output=True, text=True, timeout=300, env=compiled)
    assert resumed.returncode == 0, resumed.stderr
    said = json.loads(resumed.stdout)
    whole = bc.load(out)
    assert len(whole) == said["kept"] > 4
    assert not said["interrupted"]
    assert set(first.indices) <= set(whole.path.indices)
    assert not any("Interrupted" in line for line in whole.info.warnings)
    assert "is complete; use --force" in refused("summarize", file, *QUICK, "--size", "30", "--out", out, "--resume")


@pytest.mark.parametrize(("at", "times"), [(0, 1), (3, 2)])
def test_before_the_first_row_or_pressed_twice_nothing_is_written(at, times, file, compiled):
    done = pressed(at, times, "summarize", file, *QUICK, "--size", "30", env=compiled)
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().splitlines()[-1] == "betacores: interrupted; nothing was written."
    assert done.stdout == ""
    assert [one.name for one in file.parent.iterdir()] == ["t.parquet"]


# The keys pressed while Python's collector runs, whose callbacks' exceptions are dropped.
WHILE_COLLECTING = """
import gc, os, signal, time
from betacores.cli.interruption import Interruption
from betacores.cli.outcome import Ended

def press(phase, info):
    gc.callbacks.remove(press)
    os.kill(os.getpid(), signal.SIGINT)

try:
    with Interruption() as interruption:
        gc.callbacks.append(press)
        gc.collect()
        interruption.found_rows = True
        end = time.monotonic() + 20
        while time.monotonic() < end:
            sum(range(1000))
except Ended:
    print("ended")
"""


def test_a_signal_that_python_drops_is_sent_again():
    done = subprocess.run([sys.executable, "-c", WHILE_COLLECTING], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("ended\n", "", 0)


@pytest.mark.slow
def test_keys_pressed_while_the_bar_is_drawn(file, compiled):
    """As a person does it: look at the terminal, wait for the bar, press the keys."""
    master, slave = pty.openpty()
    asked = ["--method", "beta-cores", "--size", "400", "--out", str(file.parent / "out"), *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-m", "betacores", "summarize", str(file), *asked],
        stdout=subprocess.PIPE,
        stderr=slave,
        env={**compiled, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
        text=True,
    )
    os.close(slave)
    try:
        seen, asked_to_stop, until = "", False, time.monotonic() + 150
        while process.poll() is None and time.monotonic() < until:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    seen += os.read(master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
            if not asked_to_stop and re.search(r"Choosing rows.*[1-9]\d*/400", seen):
                process.send_signal(signal.SIGINT)
                asked_to_stop = True
        process.communicate(timeout=300)
    finally:
        process.kill()
        os.close(master)
    assert asked_to_stop, seen
    assert process.returncode == 130, seen
    assert "stopping after this step; Ctrl-C again ends at once" in seen
    assert "They can be used as they are; only --method pursuit without --groups can go on" in seen.replace("\r\n", " ")
    coreset = bc.load(file.parent / "out")
    assert 0 < len(coreset)
    assert 0 < len(coreset.path.weights) < 400


@pytest.mark.parametrize("construction", [giga, frank_wolfe])
def test_constructions_stop_when_the_callback_asks(construction):
    vectors = np.random.default_rng(0).normal(size=(50, 30))

    def progress(done, total):
        if done == 3:
            raise KeyboardInterrupt

    whole = construction(vectors, vectors.sum(0), size=10)
    path = construction(vectors, vectors.sum(0), size=10, progress=progress)
    assert path.warnings == ("Interrupted: 3 of 10 steps were done.",)
    assert np.array_equal(path.at(10)[0], whole.at(3)[0])
    assert np.array_equal(path.at(10)[1], whole.at(3)[1])


def test_groups_stop_when_the_callback_asks():
    table = bc.datasets.contaminated_gaussian(0, 0.1, rows=60, columns=2)
    groups = np.repeat(np.arange(6), 10)

    def progress(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted: 2 of 5"):
        coreset = bc.summarize(
            table.x, method="beta-cores", beta=0.1, groups=groups, max_groups=5, steps=5, progress=progress
        )
    assert len(coreset.path.weights) == 2
    assert len(coreset.groups) <= 2
