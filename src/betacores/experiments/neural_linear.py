"""The β-Cores paper's neural linear regressions on tables of which some minibatches are poisoned.

The paper's protocol: Housing (initial coreset 20, batches of 10, 30 hidden units) and Songs (200, 100, 100);
covariates and response standardised, then a fraction F of the batches poisoned, 70 % of the rows of each replaced. What
they are replaced by is told by ``dirt``: in the published code (``"shifted"``) half of the columns are N(1, 1) and the
response is N(10, 0.5²), in standard deviations of the clean one; by the paper's words (``"scattered"``) both are noise,
here N(0, 5²). The coreset starts from clean rows, as published, or from a random sample, in which as many rows are
dirty as in the table. Songs is the subset of 8,162 rows.

The measure is the root mean square error on clean test rows, after every round: 1,000 gradient steps on the coreset,
then one more batch. Whether the error falls at every size is a matter of small differences, for which pursuit alone
has several times as many trials.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from betacores.experiments.runner import OnFiles, Task


class Setting(NamedTuple):
    """Sizes of a data set's experiment, and how many times as many trials as all methods pursuit has."""

    name: str
    initial: int
    batch: int
    hidden: int
    rounds: int
    unit: str
    times_alone: int


SETTINGS = {
    "boston_housing": Setting("Housing", 20, 10, 30, 40, "1,000 dollars", 5),
    "songs": Setting("Songs (subset)", 200, 100, 100, 20, "years", 4),
}
# Dirt, share of poisoned batches, where the coreset starts.
CASES = (
    ("shifted", 0.0, "clean rows"),
    *(("shifted", fraction, start) for fraction in (0.3, 0.6) for start in ("clean rows", "random rows")),
)
OTHER_CASES = tuple(
    ("scattered", fraction, start) for fraction in (0.3, 0.6) for start in ("clean rows", "random rows")
)
POISONED_SHARE = 0.7
BETAS = (0.1, 0.5)
CLEAN = "clean rows only"
QUICK_ROUNDS = 4


def beta_cores(beta: float) -> str:
    """Return what β-Cores with a β is called."""
    return f"beta-cores {beta:g}"


# Pursuit averages several networks, the others have one: pursuit with one network says what that does.
ALONE = "pursuit, one network"
BASELINES = (*(beta_cores(beta) for beta in BETAS), "sparse-vi", "uniform")
METHODS = ("pursuit", ALONE, *BASELINES)


def tasks(trials: int, seed: int, quick: bool = False) -> list[Task]:
    """Return every run: a trial of a case, with all methods; then further ones of the poisoned cases, with pursuit."""

    def task(data: str, case: tuple[str, float, str], trial: int) -> Task:
        dirt, fraction, start = case
        return {"data": data, "dirt": dirt, "fraction": fraction, "start": start, "seed": seed, "trial": trial}

    if quick:
        return [{**task("boston_housing", CASES[2], t), "quick": True} for t in range(trials)]
    return [
        *(task("songs", case, t) for case in CASES for t in range(trials)),
        *(task("boston_housing", case, t) for case in (*CASES, *OTHER_CASES) for t in range(trials)),
        *(
            {**task(data, case, t), "only": "pursuit"}
            for data, cases in (("boston_housing", (*CASES, *OTHER_CASES)), ("songs", CASES))
            for case in cases
            for t in range(trials, SETTINGS[data].times_alone * trials)
            if case[1] > 0
        ),
    ]


class Table(NamedTuple):
    """A poisoned table: which rows are dirty, the batch of every row, those to begin with, and clean rows for tests."""

    x: np.ndarray
    y: np.ndarray
    dirty: np.ndarray
    batches: np.ndarray
    initial: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    scale: float


def table(data: str, dirt: str, fraction: float, start: str, seed: int) -> Table:
    """Return a data set, standardised and then poisoned."""
    from betacores import datasets

    split = getattr(datasets, data)(seed=seed)
    setting, random = SETTINGS[data], np.random.default_rng([seed, 7])
    level, scale = split.y_train.mean(), split.y_train.std()
    x, y = split.x_train.copy(), (split.y_train - level) / scale
    # Rows are in random order already: the first are those to begin with.
    numbers = np.arange(len(x)) - setting.initial
    batches = np.where(numbers < 0, 0, numbers // setting.batch)
    columns = random.permutation(x.shape[1])[: x.shape[1] // 2]
    dirty = np.zeros(len(x), bool)
    count = batches.max() + 1
    for batch in random.permutation(count)[: round(fraction * count)]:
        members = np.flatnonzero((batches == batch) & (numbers >= 0))
        dirty[random.permutation(members)[: int(POISONED_SHARE * len(members))]] = True
    if start == "random rows":
        dirty[: setting.initial] = random.random(setting.initial) < POISONED_SHARE * fraction
    rows = np.flatnonzero(dirty)
    mean, spread, response, response_spread = (1.0, 1.0, 10.0, 0.5) if dirt == "shifted" else (0.0, 5.0, 0.0, 5.0)
    x[np.ix_(rows, columns)] = random.normal(mean, spread, (len(rows), len(columns)))
    y[rows] = random.normal(response, response_spread, len(rows))
    initial = np.arange(setting.initial)
    return Table(x, y, dirty, batches, initial, split.x_test, (split.y_test - level) / scale, scale)


def run(task: Task) -> Task:
    """Make the table of a task, fit in every way or the only one asked for, and measure after every round."""
    started = time.perf_counter()
    seed = task["seed"] + task["trial"]
    dirty_table = table(task["data"], task["dirt"], task["fraction"], task["start"], seed)
    setting = SETTINGS[task["data"]]
    setting = setting._replace(rounds=QUICK_ROUNDS) if task.get("quick") else setting
    names = (task["only"],) if "only" in task else (*METHODS, CLEAN)
    methods = {name: measure(name, dirty_table, setting, seed) for name in names}
    return {"methods": methods, "task_seconds": round(time.perf_counter() - started, 1)}


def measure(method: str, data: Table, setting: Setting, seed: int) -> dict[str, Any]:
    """Fit by one method; return the error, the log predictive density and the rows after every round."""
    from betacores.groups import Groups
    from betacores.neural import NeuralFit, Training, fit_neural_linear

    found: dict[str, Any] = {"rmse": [], "log_density": [], "rows": [], "dirty": []}

    def record(number: int, fit: NeuralFit) -> None:
        del number
        mean, spread = fit.predict(data.x_test)
        error = data.y_test - mean
        density = -0.5 * (error / spread) ** 2 - np.log(spread * data.scale) - 0.5 * np.log(2 * np.pi)
        found["rmse"].append(_short(data.scale * np.sqrt(np.mean(error**2))))
        found["log_density"].append(_short(density.mean()))
        found["rows"].append(len(fit.indices))
        found["dirty"].append(int(np.count_nonzero(data.dirty[fit.indices])))

    # Processor time: other work on the machine is no part of a trial.
    started = time.process_time()
    common: dict[str, Any] = {"hidden": setting.hidden, "seed": seed, "record": record}
    if method == CLEAN:
        # As many gradient steps as the others make in all their rounds.
        clean = np.flatnonzero(~data.dirty)
        everything = Groups([0], np.zeros(len(clean), int))
        training = Training(steps=Training().steps * (setting.rounds + 1))
        fit_neural_linear(
            data.x[clean],
            data.y[clean],
            method="uniform",
            batches=everything,
            initial=np.arange(len(clean)),
            rounds=0,
            noise=1.0,
            training=training,
            **common,
        )
        found["dirty"] = [0]
        return {**found, "seconds": round(time.process_time() - started, 2)}
    name, *beta = ("pursuit",) if method == ALONE else method.split()
    fit_neural_linear(
        data.x,
        data.y,
        method=name,
        batches=Groups(list(range(data.batches.max() + 1)), data.batches),
        initial=data.initial,
        rounds=setting.rounds,
        # As published, that of the response.
        noise=None if name == "pursuit" else 1.0,
        beta=float(beta[0]) if beta else None,
        networks=1 if method == ALONE else None,
        **common,
    )
    return {**found, "seconds": round(time.process_time() - started, 2)}


def _short(value: float) -> float:
    return float(f"{value:.5g}")


reproduce = OnFiles("neural_linear", tasks, run, lambda task: task["data"], trials=30).reproduce
