"""What robust pursuit reaches, and where it breaks: five studies on simulated tables with a known truth.

The figure of merit is the reverse KL divergence from the coreset's classical posterior to the posterior of the clean
rows (Gaussian mean, linear regression), or the accuracy on clean test rows against that of inference from the clean
training rows (logistic regression). Every study is a list of tasks and a table made of their results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from betacores.datasets import GAUSSIAN_OUTLIERS, Dirty, corrupted_logistic, flipped_logistic, gaussian_with
from betacores.datasets import shifted_linear as shifted
from betacores.experiments.runner import Task, run_all

GAUSSIAN_FRACTIONS = (0.0, 0.15, 0.30, 0.45)
BREAKDOWN_FRACTIONS = (0.05, 0.15, 0.25, 0.35, 0.45)
LOGISTIC_FRACTIONS = (0.0, 0.1, 0.2, 0.3)
REGRET_FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4)
LINEAR_NOISE = 0.5
TRAINING_ROWS, TEST_ROWS = 30_000, 10_000
SIZES = {"gaussian": 20, "linear": 30, "logistic": 60}
PAPER_BETA = 0.01


def tasks(trials: int, seed: int) -> list[Task]:
    """Return every run of every study."""
    from betacores.models import GaussianMean, LinearRegression
    from betacores.tuning import beta_grid

    seeds = range(seed, seed + trials)
    grids: dict[str, list[float]] = {
        "gaussian": beta_grid(GaussianMean(), 20).tolist(),
        "linear": beta_grid(LinearRegression(), 10).tolist(),
        "logistic": beta_grid(LinearRegression(), 10).tolist(),
    }
    kinds = [("gaussian", kind) for kind in GAUSSIAN_OUTLIERS[1:]]
    kinds += [("linear", "response shift of 10 sd"), ("linear", "response shift of 1e6 sd")]
    kinds += [("logistic", "labels flipped in one region")]
    cluster, corruption = GAUSSIAN_OUTLIERS[0], "the paper's corruption"
    usual = {"gaussian": cluster, "linear": "response shift of 10 sd", "logistic": corruption}

    def task(study: str, model: str, kind: str, fraction: float, seed: int, **more: Any) -> Task:
        return {"study": study, "model": model, "kind": kind, "fraction": fraction, "seed": seed, **more}

    return [
        *(
            task("gaussian", "gaussian", cluster, f, s, beta=beta)
            for f in GAUSSIAN_FRACTIONS
            for beta in (PAPER_BETA, "auto")
            for s in seeds
        ),
        *(
            task("kinds", model, kind, f, s, beta="auto")
            for model, kind in kinds
            for f in BREAKDOWN_FRACTIONS
            for s in seeds
        ),
        *(task("logistic", "logistic", corruption, f, s, beta="auto") for f in LOGISTIC_FRACTIONS for s in seeds),
        *(
            task("regret", model, usual[model], f, s, beta=beta)
            for model, grid in grids.items()
            for f in REGRET_FRACTIONS
            for beta in ("auto", *grid)
            for s in seeds
        ),
        *(
            task("init", model, usual[model], 0.3, s, beta="auto", init=init)
            for model in ("gaussian", "logistic")
            for init in (False, True)
            for s in seeds
        ),
    ]


def run(task: Task) -> Task:
    """Make the table of a task, summarise it, and measure."""
    from betacores.front_door import summarize

    table, test = _tables(task)
    settings: dict[str, Any] = {}
    if task.get("init"):
        settings["init"] = np.flatnonzero(table.outlier)[: SIZES[task["model"]]]
    with warnings.catch_warnings():
        # What they say is in `coreset.info`; at breakdown fractions rival modes are to be expected.
        warnings.simplefilter("ignore")
        coreset = summarize(
            table.x, table.y, size=SIZES[task["model"]], beta=task["beta"], seed=task["seed"], **settings
        )
    result = {
        "chosen": coreset.beta,
        "kept": len(coreset),
        "outliers": int(table.outlier[coreset.indices].sum()),
        "contamination": coreset.contamination,
        "truth": float(table.outlier.mean()),
        "kl_estimate": coreset.info.kl_estimate.value if coreset.info.kl_estimate else None,
        "seconds": sum(coreset.info.timings.values()),
    }
    everything, clean = np.ones(len(table.x)), (~table.outlier).astype(float)
    if task["model"] == "logistic":
        for name, (x, y, weights) in {
            "coreset": (coreset.X, coreset.y, coreset.weights),
            "all rows": (table.x, table.y, everything),
            "clean": (table.x, table.y, clean),
        }.items():
            result[name], result[f"{name}, log density"] = _predictions(x, y, weights, test)
        return result
    result["coreset"] = _divergence(coreset.X, coreset.y, coreset.weights, test, model=coreset.model)
    result["all rows"] = _divergence(table.x, table.y, everything, test)
    return result


def _tables(task: Task) -> tuple[Dirty, Dirty]:
    """Return the table to summarise, and what it is judged by: its clean rows, or clean test rows."""
    seed, fraction, kind = task["seed"], task["fraction"], task["kind"]
    if task["model"] == "logistic":
        rows = TRAINING_ROWS + TEST_ROWS
        make = corrupted_logistic if kind == "the paper's corruption" else flipped_logistic
        # The same seed without contamination has the same rows, clean.
        dirty, clean = make(seed, fraction, rows=rows), make(seed, 0.0, rows=rows)
        return Dirty(*(part[:TRAINING_ROWS] for part in dirty)), Dirty(*(part[TRAINING_ROWS:] for part in clean))
    if task["model"] == "linear":
        table = shifted(seed, fraction, 1e6 if "1e6" in kind else 10.0, noise=LINEAR_NOISE)
    else:
        table = gaussian_with(kind, seed, fraction)
    kept = ~table.outlier
    return table, Dirty(table.x[kept], None if table.y is None else table.y[kept], table.outlier[kept])


def _divergence(x: np.ndarray, y: np.ndarray | None, weights: np.ndarray, clean: Dirty, model: Any = None) -> float:
    """Return the KL divergence from the posterior of weighted rows to that of the clean rows, in double precision."""
    from betacores.posteriors import gaussian_kl

    noise = 1.0 if y is None else LINEAR_NOISE
    own = noise if y is None or model is None else model.noise
    return gaussian_kl(*_exact(x, y, weights, own), *_exact(clean.x, clean.y, np.ones(len(clean.x)), noise))


def _exact(x: np.ndarray, y: np.ndarray | None, weights: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the classical posterior under a standard normal prior."""
    if y is None:
        precision = 1.0 + weights.sum()
        return weights @ x / precision, np.eye(x.shape[1]) / precision
    z = np.column_stack([x, np.ones(len(x))])
    covariance = np.linalg.inv(np.eye(z.shape[1]) + (z * weights[:, None]).T @ z / noise**2)
    return covariance @ (z.T @ (weights * y)) / noise**2, covariance


def _predictions(x: np.ndarray, y: np.ndarray | None, weights: np.ndarray, test: Dirty) -> tuple[float, float]:
    """Return accuracy, averaged over posterior draws, and mean log predictive density of classical inference."""
    from betacores.evaluation import classical_measures
    from betacores.inputs import encode_rows
    from betacores.models import LogisticRegression

    labels = np.array([0, 1])
    rows, held = encode_rows(x, y, labels), encode_rows(test.x, test.y, labels)
    found = classical_measures(LogisticRegression(), rows, weights, held)
    return found["accuracy"], found["log_density"]


def reproduce(
    out: Path,
    *,
    trials: int = 10,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Run the studies and write the page and its numbers; finished runs of an earlier attempt are kept."""
    from betacores.experiments import pursuit_page

    out.mkdir(parents=True, exist_ok=True)
    results = run_all(run, tasks(trials, seed), out / "runs.jsonl", jobs=jobs, progress=progress)
    return [pursuit_page.write(out, results, trials, seed), *pursuit_page.draw(out, results)]
