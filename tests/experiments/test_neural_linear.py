"""The neural linear experiments: the poisoned tables, the runs, and the page made of them."""

import functools

import numpy as np
import pytest

from betacores.experiments import neural_linear as study
from betacores.experiments import neural_linear_page as page


@functools.cache
def real(data, dirt, fraction, start):
    try:
        return study.table(data, dirt, fraction, start, seed=3)
    except FileNotFoundError:
        pytest.skip(f"BETACORES_DATA does not hold the file of {data}")


@pytest.mark.data
@pytest.mark.parametrize("data", study.SETTINGS)
@pytest.mark.parametrize(("dirt", "fraction", "start"), [*study.CASES, *study.OTHER_CASES])
def test_tables_are_poisoned_as_said(data, dirt, fraction, start):
    setting = study.SETTINGS[data]
    table = real(data, dirt, fraction, start)
    others = np.arange(len(table.x)) >= setting.initial
    counts = np.bincount(table.batches[others & table.dirty], minlength=table.batches.max() + 1)
    sizes = np.bincount(table.batches[others])
    assert np.count_nonzero(counts) == round(fraction * len(sizes))
    assert (counts[counts > 0] == (0.7 * sizes[counts > 0]).astype(int)).all()
    assert table.dirty[: setting.initial].any() == (start == "random rows" and fraction > 0)
    clean = real(data, dirt, 0.0, "clean rows")
    assert (clean.x[~table.dirty] == table.x[~table.dirty]).all()
    assert (clean.y[~table.dirty] == table.y[~table.dirty]).all()
    assert (clean.x_test == table.x_test).all()
    if fraction:
        changed = (clean.x != table.x)[table.dirty].mean(0) > 0.5
        assert changed.sum() == table.x.shape[1] // 2
        level, spread = (10.0, 0.5) if dirt == "shifted" else (0.0, 5.0)
        assert table.y[table.dirty].mean() == pytest.approx(level, abs=4 * spread / np.sqrt(table.dirty.sum()))
        assert table.y[table.dirty].std() == pytest.approx(spread, rel=0.4)


@pytest.mark.slow
@pytest.mark.data
def test_the_quick_run_writes_everything(tmp_path):
    real("boston_housing", *study.CASES[0])
    files = study.reproduce(tmp_path, trials=1, quick=True)
    assert {file.name for file in files} == {"README.md", "table.csv", "rmse.png"}
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "This is the quick run" in text
    before = (tmp_path / "runs.jsonl").read_bytes()
    study.reproduce(tmp_path, trials=1, quick=True)
    assert (tmp_path / "runs.jsonl").read_bytes() == before


def made_up(curves: dict[str, list[float]], fraction: float = 0.3, trials: int = 3) -> list:
    rounds = len(next(iter(curves.values())))
    method = lambda rmse: {  # noqa: E731
        "rmse": rmse,
        "log_density": [0.0] * len(rmse),
        "rows": list(range(len(rmse))),
        "dirty": [0] * len(rmse),
        "seconds": 1.0,
    }
    case = {"data": "boston_housing", "dirt": "shifted", "fraction": fraction, "start": "clean rows", "seed": 0}
    worse = {name: [9.0] * rounds for name in study.METHODS}
    methods = {name: method(rmse) for name, rmse in {**worse, **curves}.items()} | {study.CLEAN: method([3.0])}
    return [{**case, "trial": t, "methods": methods, "task_seconds": 5.0} for t in range(trials)]


@pytest.mark.parametrize(
    ("curve", "reached"),
    [
        (np.linspace(6, 3.1, 41), 4),
        (np.linspace(6, 3.3, 41), 3),
        ([*np.linspace(6, 3, 21), *np.linspace(3, 3.1, 20)], 2),
        (np.linspace(10, 3, 41), 3),
        (np.full(41, 12.0), 2),
    ],
)
def test_aims_are_judged_by_the_figures(curve, reached, tmp_path):
    page.write(tmp_path, made_up({"pursuit": list(map(float, curve))}), 3, 0, False)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    aims = text.split("## Aims")[1].split("## Error")[0]
    assert aims.count(": reached, ") == reached
    assert aims.count("**not reached**") == 4 - reached


def test_further_trials_are_of_pursuit_in_the_poisoned_cases():
    tasks = study.tasks(3, 0)
    further = [task for task in tasks if "only" in task]
    assert {task["only"] for task in further} == {"pursuit"}
    assert all(task["fraction"] > 0 and task["trial"] >= 3 for task in further)
    numbers = [tuple(sorted((key, value) for key, value in task.items() if key != "only")) for task in tasks]
    assert len(set(numbers)) == len(tasks)
    for data, setting in study.SETTINGS.items():
        cases = [
            case for case in study.CASES + study.OTHER_CASES if case[1] > 0 and (data != "songs" or case in study.CASES)
        ]
        count = sum(task["data"] == data for task in further)
        assert count == len(cases) * 3 * (setting.times_alone - 1)


def test_further_trials_tell_whether_the_error_falls_and_nothing_else(tmp_path):
    """Three trials of all methods rise at the end; six more of pursuit fall, and their median with them."""
    rising = [*np.linspace(6, 3.0, 36), *np.full(5, 3.1)]
    runs = made_up({"pursuit": list(map(float, rising))})
    more = made_up({"pursuit": list(map(float, np.linspace(5, 2.9, 41)))}, trials=9)[3:]
    for run in more:
        run["only"], run["methods"] = "pursuit", {"pursuit": run["methods"]["pursuit"]}
    page.write(tmp_path, runs, 3, 0, False)
    alone = (tmp_path / "README.md").read_text(encoding="utf-8")
    page.write(tmp_path, runs + more, 3, 0, False)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    *fall, trial = [line for line in text.splitlines() if "decreases" in line and line.startswith("  - ")]
    assert "in the median trial, 9 trials: reached" in trial
    assert [line.split(",")[1].split(":")[0] for line in fall] == [" 9 trials", " 3 trials"]
    assert ": reached" in fall[0]
    assert "**not reached**" in fall[1]
    assert "has more trials, 9 of Housing" in text
    # All else is of the trials that all methods have.
    other = lambda page: [  # noqa: E731
        line for line in page.splitlines() if line.startswith(("|", "  - no worse", "  - at the full", "- Housing"))
    ]
    assert other(text) == other(alone)
    rows = (tmp_path / "table.csv").read_text(encoding="utf-8")
    assert rows.count('"pursuit, 9 trials"') == 4 * 41


def test_a_task_of_one_method_runs_that_method_alone(monkeypatch):
    asked = []
    monkeypatch.setattr(study, "table", lambda *task: task)
    monkeypatch.setattr(study, "measure", lambda name, *of: asked.append(name) or {"rmse": []})
    task = study.tasks(1, 0)[-1]
    assert list(study.run(task)["methods"]) == ["pursuit"] == asked
    del task["only"]
    assert list(study.run(task)["methods"]) == [*study.METHODS, study.CLEAN]


def test_clean_tables_are_judged_by_two_per_cent(tmp_path):
    for level, word in ((9.1, ": reached, "), (9.3, "**not reached**")):
        page.write(tmp_path, made_up({"pursuit": [level] * 41}, fraction=0.0), 3, 0, False)
        assert word in (tmp_path / "README.md").read_text(encoding="utf-8").split("## Aims")[1].split("## Error")[0]


def test_trials_that_all_fall_fall_in_the_median_trial_though_their_medians_may_not(tmp_path):
    """Two trials of three fall at every size; at one size the third, which rises, comes to be the one in the middle."""
    runs = made_up({"pursuit": [4.0] * 41})
    steady = np.linspace(1, 0.9, 41)
    for run, curve in zip(runs, (5 * steady, 3 * steady, np.where(np.arange(41) < 20, 2.0, 3.5)), strict=True):
        own = {**run["methods"]["pursuit"], "rmse": list(map(float, curve))}
        run["methods"] = {**run["methods"], "pursuit": own}
    page.write(tmp_path, runs, 3, 0, False)
    lines = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    median, trial = (line for line in lines if "decreases" in line and line.startswith("  - "))
    assert "in the median trial, 3 trials: reached, least from" in trial
    assert "**not reached**, largest change from 170 to 220 rows" in median
