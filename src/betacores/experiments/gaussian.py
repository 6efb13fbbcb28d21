"""The β-Cores paper's Gaussian experiment: the mean of dirty Gaussian rows.

d = 20, N = 5,000, prior N(0, I), unit covariance; clean rows N(1, I), a fraction F of them replaced by N(10, I);
β = 0.01, M = 200 outer iterations, five trials. Draws come from the exact classical posterior of the coreset, as in the
paper, and the coreset is read classically: the figure of merit is the reverse KL divergence from the coreset's
posterior to the posterior of the clean rows, in closed form.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.datasets import contaminated_gaussian
from betacores.experiments.page import written
from betacores.experiments.runner import Task, run_all

if TYPE_CHECKING:
    from jaxtyping import Float, Int

FRACTIONS = (0.0, 0.15, 0.30)
METHODS = ("beta-cores", "sparse-vi", "psvi", "uniform")
BETA = 0.01
SHOWN = (1, 10, 30, 60, 200)
SIZES = (1, 2, 5, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200)


class Run(NamedTuple):
    """One trial of one method: what it kept, and how good that was, after every outer iteration."""

    fraction: float
    method: str
    trial: int
    kl: Float[np.ndarray, " m"]
    kept: Int[np.ndarray, " m"]
    outliers: Int[np.ndarray, " m"]
    first_outlier: int | None
    seconds: float
    snapshots: dict[str, tuple[list[int], list[float]]]


def run(fraction: float, method: str, trial: int, size: int, seed: int) -> Run:
    """Run one trial. Every method sees the same table in the same trial."""
    from betacores.front_door import summarize

    table = contaminated_gaussian(seed + trial, fraction)
    settings: dict[str, dict[str, Any]] = {
        "beta-cores": {"sampler_target": "classical", "beta": BETA},
        "sparse-vi": {"sampler_target": "classical"},
        "psvi": {"sizes": SIZES},
        "uniform": {},
    }
    coreset = summarize(table.x, method=method, size=size, seed=seed + trial, **settings[method])
    sizes = range(1, len(coreset.path.weights) + 1)
    kept = [coreset.at(m) for m in sizes]
    mean, precision = posterior(table.x[~table.outlier], np.ones((~table.outlier).sum()))
    kl = [reverse_kl(*posterior(one.X, one.weights), mean, precision) for one in kept]
    outliers = np.array([table.outlier[one.indices].sum() for one in kept])
    first = int(np.flatnonzero(outliers)[0]) + 1 if outliers.any() else None
    return Run(
        fraction,
        method,
        trial,
        np.array(kl),
        np.array([len(one) for one in kept]),
        outliers,
        first,
        coreset.info.timings[method],
        {
            str(m): (one.indices.tolist(), one.weights.tolist())
            for m, one in zip(sizes, kept, strict=True)
            if m in SHOWN and method != "psvi"  # whose points are not rows
        },
    )


def posterior(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return mean and precision (a multiple of the identity) of the classical posterior of weighted rows."""
    precision = 1.0 + weights.sum()
    return weights @ x / precision, precision


def reverse_kl(mean: np.ndarray, precision: float, true_mean: np.ndarray, true_precision: float) -> float:
    """Return `KL(N(mean, I/precision) ‖ N(true_mean, I/true_precision))`."""
    ratio = true_precision / precision
    away = true_mean - mean
    return float(0.5 * (len(mean) * (ratio - 1 - np.log(ratio)) + true_precision * away @ away))


def reproduce(
    out: Path,
    *,
    trials: int = 5,
    size: int = 200,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Path]:
    """Run the experiment and write figures, table and numbers; finished trials of an earlier run are kept."""
    from betacores.experiments import gaussian_figures

    out.mkdir(parents=True, exist_ok=True)
    tasks: list[Task] = [
        {"fraction": f, "method": method, "trial": t, "size": size, "seed": seed}
        for f in FRACTIONS
        for method in METHODS
        for t in range(trials)
    ]
    found = run_all(_run, tasks, out / "trials.jsonl", jobs=jobs, progress=progress)
    runs = [_restored(record) for record in found]
    return [_table(out, runs), _page(out, runs, trials, size, seed), *gaussian_figures.draw(out, runs, seed)]


def _run(task: Task) -> Task:
    result = run(**task)._asdict()
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in result.items() if k not in task}


def _restored(record: Task) -> Run:
    fields = {name: record[name] for name in Run._fields}
    return Run(**{**fields, **{name: np.array(record[name]) for name in ("kl", "kept", "outliers")}})


def quartiles(runs: list[Run], fraction: float, method: str) -> Float[np.ndarray, "3 m"]:
    """Return the quartiles over trials of the reverse KL, after every outer iteration."""
    kl = np.array([r.kl for r in runs if (r.fraction, r.method) == (fraction, method)])
    return np.quantile(kl, (0.25, 0.5, 0.75), axis=0)


def _table(out: Path, runs: list[Run]) -> Path:
    path = out / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["F", "method", "m", "kl_q25", "kl_median", "kl_q75", "kept_median", "outliers_max"])
        for fraction in FRACTIONS:
            for method in METHODS:
                chosen = [r for r in runs if (r.fraction, r.method) == (fraction, method)]
                for m in [m for m in SIZES if m <= len(chosen[0].kl)]:
                    low, middle, high = quartiles(runs, fraction, method)[:, m - 1]
                    kept = np.median([r.kept[m - 1] for r in chosen])
                    outliers = max(r.outliers[m - 1] for r in chosen)
                    row = [f"{low:.4g}", f"{middle:.4g}", f"{high:.4g}", f"{kept:g}", outliers]
                    writer.writerow([fraction, method, m, *row])
    return path


def _page(out: Path, runs: list[Run], trials: int, size: int, seed: int) -> Path:
    from betacores import __version__

    shown = [m for m in (10, 20, 50, 60, 100, 200) if m <= size]
    lines = [
        "# The Gaussian experiment of the β-Cores paper",
        "",
        f"Made by `betacores reproduce gaussian --trials {trials} --size {size} --seed {seed}`,",
        f"betacores {__version__}.",
        "Reverse KL divergence from the coreset's classical posterior to the posterior of the clean rows after m outer",
        f"iterations: median over {trials} trials, with quartiles in brackets. d = 20, N = 5,000, β = {BETA}. PSVI is",
        "optimised for some sizes only, and m is its number of points.",
        "",
        "| F | method | " + " | ".join(f"m = {m}" for m in shown) + " | first outlier enters as |",
        "|---" * (len(shown) + 3) + "|",
    ]
    for fraction in FRACTIONS:
        for method in METHODS:
            chosen = [r for r in runs if (r.fraction, r.method) == (fraction, method)]
            cells = []
            for m in shown:
                low, middle, high = quartiles(runs, fraction, method)[:, m - 1]
                cells.append(f"{_number(middle)} [{_number(low)}, {_number(high)}]")
            entries = [r.first_outlier for r in chosen if r.first_outlier]
            first = f"point {min(entries)} ({len(entries)} of {len(chosen)} trials)" if entries else "never"
            lines.append(f"| {fraction:.0%} | {method} | " + " | ".join(cells) + f" | {first} |")
    lines += ["", *_claims(runs, size), ""]
    return written(out, lines)


def _claims(runs: list[Run], size: int) -> list[str]:
    """Say, with this run's numbers, how the paper's claims stand."""
    m = min(100, size)
    median = {(f, k): quartiles(runs, f, k)[1, m - 1] for f in FRACTIONS for k in METHODS}
    robust = [median[f, "beta-cores"] for f in FRACTIONS]
    clean, pseudo, worst = median[0.0, "sparse-vi"], median[0.0, "psvi"], FRACTIONS[-1]
    sparse, random = median[worst, "sparse-vi"], median[worst, "uniform"]
    entries = [r.first_outlier for r in runs if r.method == "beta-cores" and r.first_outlier]
    entered = f"the first outlier enters as point {min(entries)}" if entries else "no outlier ever enters"
    ratio = min(sparse, random) / robust[-1]
    on_par = _verdict(max(clean / robust[0], robust[0] / clean) < 1.5)
    same_order = _verdict(max(robust) < 10 * min(robust))
    astray = _verdict(ratio > 100)
    kept_out = _verdict(all(entry > 60 for entry in entries))
    return [
        "## How the paper's claims stand",
        "",
        f"All figures at m = {m}, medians over trials.",
        "",
        f"- *On par with SparseVI on clean data*: {on_par}. KL {_number(robust[0])} for β-Cores, {_number(clean)} for",
        "  SparseVI.",
        f"- *KL of the same order of magnitude whatever the contamination*: {same_order}. KL",
        f"  {', '.join(_number(v) for v in robust)} at F = 0, 15 and 30 %.",
        f"- *Outliers stay out up to about 60 points*: {kept_out}. Over all trials and contaminations {entered}.",
        "  The paper saw some enter beyond 60 points; rows that the model scores near zero are not candidates here",
        "  (`screen=0.05`).",
        f"- *Baselines converge to the wrong posterior*: {astray}. At F = {worst:.0%} SparseVI stays at KL",
        f"  {_number(sparse)} and uniform sampling at {_number(random)}, {_number(ratio)} times β-Cores or more.",
        f"- *PSVI does better yet on clean data* (its own paper): {_verdict(pseudo < clean)}. KL {_number(pseudo)}.",
        "",
        "Most of the KL that β-Cores has left is missing mass, not wrong points: T = 500 Adam steps at rate 1/t move a",
        "weight by a few units only, so that the total weight grows slowly towards the number of clean rows.",
    ]


def _verdict(holds: bool) -> str:
    return "confirmed" if holds else "not confirmed"


def _number(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
