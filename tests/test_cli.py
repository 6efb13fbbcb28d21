"""The command line, run as a person runs it: in a process of its own."""

import subprocess
import sys
import time

import pytest


def betacores(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "betacores", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def test_help_is_quick_and_does_not_import_jax():
    times = []
    for _ in range(5):
        started = time.perf_counter()
        done = betacores("--help")
        times.append(time.perf_counter() - started)
        assert done.returncode == 0
        assert "demo" in done.stdout
        assert "reproduce" in done.stdout
    assert min(times) < 1.0
    check = "import sys, betacores.cli; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


def test_version():
    import betacores as bc

    assert betacores("--version").stdout.strip() == f"betacores {bc.__version__}"


def test_demo_tells_the_story_and_leaves_files(tmp_path):
    out = tmp_path / "demo"
    done = betacores("demo", "--out", str(out), "--size", "30")
    assert done.returncode == 0, done.stderr
    for words in ("Rows in", "Rows kept", "Contamination", "all rows", "random rows", "coreset of"):
        assert words in done.stdout
    accuracy = {
        line.rsplit(maxsplit=1)[0].strip(): float(line.rsplit(maxsplit=1)[1].rstrip("%"))
        for line in done.stdout.splitlines()
        if line.startswith("  ") and line.endswith("%")
    }
    best, worst = accuracy["clean rows only (not known in practice)"], accuracy["30 random rows"]
    coreset = next(value for name, value in accuracy.items() if name.startswith("coreset"))
    assert worst < coreset
    assert coreset > best - 5
    assert {file.name for file in out.iterdir()} == {
        "coreset.parquet",
        "path.parquet",
        "scores.parquet",
        "summary.json",
        "demo.png",
        "story.txt",
    }
    assert (out / "demo.png").stat().st_size > 10_000


def test_demo_does_not_replace_files_unasked(tmp_path):
    (tmp_path / "there").mkdir()
    done = betacores("demo", "--out", str(tmp_path / "there"))
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert "Traceback" not in done.stderr


def test_reproduce_names_the_nearest_experiment():
    done = betacores("reproduce", "gausian")
    assert done.returncode == 2
    assert "Did you mean 'gaussian'?" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--trials", "0"], ["--size", "0"]])
def test_reproduce_checks_its_numbers(arguments):
    done = betacores("reproduce", "gaussian", *arguments)
    assert done.returncode == 2
    assert "at least 1" in done.stderr


def test_quick_gaussian_experiment_writes_its_pages_and_resumes(tmp_path):
    out = tmp_path / "gaussian"
    arguments = ("reproduce", "gaussian", "--trials", "1", "--size", "10", "--out", str(out))
    assert betacores(*arguments).returncode == 0
    assert {file.name for file in out.iterdir()} == {"README.md", "table.csv", "kl.png", "points.png", "trials.jsonl"}
    trials = (out / "trials.jsonl").read_text()
    assert len(trials.splitlines()) == 9
    page = (out / "README.md").read_text()
    # A second run finds every trial done, runs none again and writes the same page; a lost trial comes back.
    started = time.perf_counter()
    assert betacores(*arguments).returncode == 0
    assert (out / "trials.jsonl").read_text() == trials
    assert (out / "README.md").read_text() == page
    (out / "trials.jsonl").write_text("\n".join(trials.splitlines()[:8]) + "\n")
    assert betacores(*arguments).returncode == 0
    assert len((out / "trials.jsonl").read_text().splitlines()) == 9
    assert time.perf_counter() - started < 240
