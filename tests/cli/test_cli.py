"""The command line, run as a person runs it: in a process of its own."""

import json
import os
import subprocess
import sys
import time

import pytest


def betacores(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "betacores", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


COMMANDS = ("summarize", "report", "compare", "datasets", "demo", "reproduce")


def test_help_is_quick_and_does_not_import_jax():
    times = []
    for _ in range(5):
        # Of the processor: the clock also counts what others do on the machine.
        before = os.times()
        done = betacores("--help")
        after = os.times()
        spent = (after.children_user - before.children_user, after.children_system - before.children_system)
        times.append(sum(spent))
        assert done.returncode == 0
        for command in COMMANDS:
            assert command in done.stdout
    assert min(times) < 1.0
    slow = "{'jax', 'pandas', 'sklearn', 'pyarrow', 'matplotlib', 'numpy'}"
    check = f"import sys, betacores.cli; sys.exit(', '.join({slow} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, run):
    done = run(command, "--help")
    assert done.code == 0
    assert f"Example: betacores {command}" in " ".join(done.out.split())


def test_the_shell_completes_names_of_methods():
    environment = {
        **os.environ,
        "_BETACORES_COMPLETE": "complete_bash",
        "COMP_WORDS": "betacores summarize t.csv --method q",
        "COMP_CWORD": "4",
    }
    code = "import sys; sys.argv[0] = 'betacores'; from betacores.cli import app; app(prog_name='betacores')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.split() == ["quasi-newton"]


def test_version():
    import betacores as bc

    assert betacores("--version").stdout.strip() == f"betacores {bc.__version__}"


@pytest.mark.slow
def test_demo_tells_the_story_and_leaves_files(tmp_path):
    out = tmp_path / "demo"
    done = betacores("demo", "--out", str(out), "--size", "30")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"Open {out / 'report.html'}"
    assert "betacores demo --size 30 --seed 0" in (out / "report.html").read_text(encoding="utf-8")
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
        "report.html",
    }
    assert (out / "demo.png").stat().st_size > 10_000


def test_demo_does_not_replace_files_unasked(tmp_path):
    (tmp_path / "there").mkdir()
    done = betacores("demo", "--out", str(tmp_path / "there"))
    assert done.returncode == 2
    assert "--force" in done.stderr
    assert "Traceback" not in done.stderr
    forced = betacores("demo", "--out", str(tmp_path / "there"), "--force")
    assert forced.returncode == 2
    assert "is not a saved coreset and will not be replaced" in forced.stderr


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


@pytest.mark.slow
def test_quick_gaussian_experiment_writes_its_pages_and_resumes(tmp_path):
    out = tmp_path / "gaussian"
    arguments = ("reproduce", "gaussian", "--trials", "1", "--size", "10", "--out", str(out))
    assert betacores(*arguments).returncode == 0
    assert {file.name for file in out.iterdir()} == {"README.md", "table.csv", "kl.png", "points.png", "trials.jsonl"}
    trials = (out / "trials.jsonl").read_text()
    assert len(trials.splitlines()) == 12
    page = (out / "README.md").read_text()
    # A second run finds every trial done, runs none again and writes the same page; a lost trial comes back.
    started = time.perf_counter()
    assert betacores(*arguments).returncode == 0
    assert (out / "trials.jsonl").read_text() == trials
    assert (out / "README.md").read_text() == page
    (out / "trials.jsonl").write_text("\n".join(trials.splitlines()[:11]) + "\n")
    assert betacores(*arguments).returncode == 0
    assert len((out / "trials.jsonl").read_text().splitlines()) == 12
    assert time.perf_counter() - started < 240


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("BETACORES_DATA"), reason="real data: BETACORES_DATA is not set")
def test_quick_logistic_experiment_runs_all_methods_on_real_data(tmp_path):
    out = tmp_path / "logistic"
    done = betacores("reproduce", "logistic", "--quick", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert {file.name for file in out.iterdir()} == {"README.md", "table.csv", "accuracy.png", "runs.jsonl"}
    page = (out / "README.md").read_text(encoding="utf-8")
    for words in ("Phishing, F = 0.1", "quick run", "| pursuit |", "| quasi-newton |", "R-hat"):
        assert words in page
    runs = [json.loads(line)["result"]["methods"] for line in (out / "runs.jsonl").read_text().splitlines()]
    assert len(runs) == 2
    for run in runs:
        assert len(run) == 9
        assert run["pursuit"]["accuracy"][-1] > run["clean rows"]["accuracy"][0] - 0.02
        assert all(0.4 < value < 1 for of in run.values() for value in of["accuracy"])


def test_logistic_experiment_says_which_file_it_lacks(tmp_path):
    missing = {**os.environ, "BETACORES_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = betacores("reproduce", "logistic", "--quick", "--out", str(tmp_path / "out"), env=missing)
    assert done.returncode == 2
    assert "phishing.parquet was not found" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
