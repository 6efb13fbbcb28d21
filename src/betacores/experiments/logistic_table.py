"""Numbers of the logistic experiments: curves over sizes, β by cross-validation, and the table of all of them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.experiments import logistic as study
from betacores.experiments.runner import Task

if TYPE_CHECKING:
    from jaxtyping import Float

NAMES = {"adult": "Adult", "phishing": "Phishing", "covtype": "Covertype"}
CHOSEN = "beta-cores"


def sizes_of(task_study: str) -> tuple[int, ...]:
    """Return the sizes that a study measured."""
    sizes = {"all columns": study.ALL_COLUMNS_SIZES, "other dirt": study.OTHER_DIRT_SIZES, "quick": study.QUICK_SIZES}
    return sizes.get(task_study, study.SIZES)


def where(results: list[Task], **wanted: Any) -> list[Task]:
    """Return the results of the tasks that are as wanted."""
    return [r for r in results if all(r.get(name) == value for name, value in wanted.items())]


def experiments(results: list[Task]) -> list[tuple[str, float]]:
    """Return the data sets and fractions of the paper's protocol that were run, in the order they are shown."""
    found = {(r["data"], r["fraction"]) for r in results if r["study"] in ("paper", "quick")}
    return sorted(found, key=lambda one: (list(NAMES).index(one[0]), one[1]))


def of_paper(results: list[Task], data: str, fraction: float) -> list[Task]:
    """Return the trials of one experiment of the paper's protocol."""
    return [r for r in where(results, data=data, fraction=fraction) if r["study"] in ("paper", "quick")]


def curve(runs: list[Task], method: str, measure: str = "accuracy") -> Float[np.ndarray, "trials sizes"]:
    """Return a measure of one method by trial and size."""
    return np.array([r["methods"][method][measure] for r in runs], float)


def median(runs: list[Task], method: str, measure: str = "accuracy") -> Float[np.ndarray, " sizes"]:
    """Return the median over trials of a measure, by size."""
    return np.median(curve(runs, method, measure), axis=0)


def betas(runs: list[Task]) -> list[float]:
    """Return the β that β-Cores was run with."""
    return [beta for beta in study.BETAS if study.beta_cores(beta) in runs[0]["methods"]]


def validated(results: list[Task], data: str, fraction: float) -> dict[float, float]:
    """Return the cross-validated accuracy of every β on dirty rows, over folds and sizes; nothing if it was not run."""
    folds = where(results, study="validation", data=data, fraction=fraction)
    if not folds:
        return {}
    return {beta: float(curve(folds, study.beta_cores(beta)).mean()) for beta in study.BETAS}


def chosen(results: list[Task], data: str, fraction: float) -> float:
    """Return the β that cross-validation chose, or the one that was run."""
    found = validated(results, data, fraction)
    return max(found, key=lambda beta: found[beta]) if found else study.MIDDLE_BETA


def best_beta(runs: list[Task], sizes: tuple[int, ...]) -> float:
    """Return the β whose median accuracy is best at its best size from 30 up, in hindsight."""
    large = np.array(sizes) >= 30
    return max(betas(runs), key=lambda beta: median(runs, study.beta_cores(beta))[large].max())


def write_table(out: Path, results: list[Task]) -> Path:
    """Write the quartiles of every measure, for every study, method and size."""
    path = out / "table.csv"
    measures = ("accuracy", "log_density", "calibration_error", "kl_to_clean", "dirty", "kept", "r_hat", "divergences")
    groups: dict[tuple, list[Task]] = {}
    for r in results:
        key = (r["study"], r.get("data", "adult"), r.get("fraction", study.FRACTION), r.get("scheme", "paper"))
        groups.setdefault(key, []).append(r)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["study", "data", "F", "scheme", "method", "size", "trials", "measure", "q25", "median", "q75"]
        writer.writerow(header)
        for key, runs in groups.items():
            for method, found in runs[0]["methods"].items():
                for measure in [name for name in measures if name in found]:
                    quartiles = np.quantile(curve(runs, method, measure), (0.25, 0.5, 0.75), axis=0)
                    length = quartiles.shape[1]
                    # References have one size, their rows.
                    sizes = sizes_of(key[0])[-length:] if "beta" in found else [found["kept"][0]]
                    for size, values in zip(sizes, quartiles.T, strict=True):
                        row = [*key, method, size, len(runs), measure, *(f"{value:.5g}" for value in values)]
                        writer.writerow(row)
    return path
