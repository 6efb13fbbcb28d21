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
        (np.linspace(6, 3.1, 41), 3),
        (np.linspace(6, 3.3, 41), 2),
        ([*np.linspace(6, 3, 21), *np.linspace(3, 3.1, 20)], 2),
        (np.linspace(10, 3, 41), 2),
        (np.full(41, 12.0), 1),
    ],
)
def test_aims_are_judged_by_the_figures(curve, reached, tmp_path):
    page.write(tmp_path, made_up({"pursuit": list(map(float, curve))}), 3, 0, False)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    aims = text.split("## Aims")[1].split("## Error")[0]
    assert aims.count(": reached, ") == reached
    assert aims.count("**not reached**") == 3 - reached


def test_clean_tables_are_judged_by_two_per_cent(tmp_path):
    for level, word in ((9.1, ": reached, "), (9.3, "**not reached**")):
        page.write(tmp_path, made_up({"pursuit": [level] * 41}, fraction=0.0), 3, 0, False)
        assert word in (tmp_path / "README.md").read_text(encoding="utf-8").split("## Aims")[1].split("## Error")[0]


def test_the_spread_of_a_figure_is_that_of_other_trials():
    """By resampling the trials of one experiment, and by making the experiment again; nothing where trials agree."""
    assert page.excess_with_spread(np.full(9, 2.2), np.full(9, 2.0)) == "+10.0 ± 0.0 %"
    random = np.random.default_rng(3)

    def ratio(draw):
        return 100 * np.median(draw[0]) / np.median(draw[1])

    def made(trials):
        level = np.exp(0.2 * random.normal(size=trials))
        return level * np.exp(0.05 * random.normal(size=(2, trials)))

    truth = np.std([ratio(made(200)) for _ in range(400)])
    said = [float(page.excess_with_spread(*made(200)).split()[2]) for _ in range(20)]
    assert np.mean(said) == pytest.approx(truth, rel=0.3)


def test_how_often_medians_fall_is_told_of_other_trials_too():
    random = np.random.default_rng(5)
    level = np.exp(0.3 * random.normal(size=(40, 1)))
    falling = level * np.exp(np.linspace(0, -1, 6))
    assert page.share_that_falls(falling) == 1
    assert page.share_that_falls(falling[:, ::-1]) == 0
    # Nothing but noise falls from one size to the next every other time.
    flat = np.exp(random.normal(size=(400, 2)))
    flat[:, 1] *= np.median(flat[:, 0]) / np.median(flat[:, 1])
    assert page.share_that_falls(flat) == pytest.approx(0.5, abs=0.15)


def test_the_median_trial_compares_trials_with_themselves():
    # Medians of the columns are 2 and 3, but two trials of three fall.
    before, after = np.array([[1.0], [2.0], [9.0]]), np.array([[0.9], [3.0], [8.1]])
    np.testing.assert_allclose(page.in_median_trial(after, before), [-10.0])
