"""The demonstration: a table of which one row in sixteen is dirty, summarised by a few dozen."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from betacores import __version__
from betacores.coreset import Coreset
from betacores.datasets import contaminated_logistic
from betacores.evaluation import classical_measures
from betacores.front_door import summarize
from betacores.inputs import encode_rows
from betacores.models import LogisticRegression
from betacores.storage import save

ROWS, FRACTION = 20_000, 0.06


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found."""

    coreset: Coreset
    truth: float
    outliers_kept: int
    found: float
    accuracy: dict[str, float]


def run(*, size: int, seed: int, out: Path, progress: Callable[[int, int], None] | None = None) -> DemoResult:
    """Make the table, summarise it, compare accuracies on clean rows, and write the files."""
    table = contaminated_logistic(seed, FRACTION, rows=ROWS + 5000)
    train, test = slice(0, ROWS), slice(ROWS, None)
    x, y, outlier = table.x[train], table.y[train], table.outlier[train]
    clean_x, clean_y = table.x[test][~table.outlier[test]], table.y[test][~table.outlier[test]]

    coreset = summarize(x, y, size=size, seed=seed, progress=progress)
    subset = summarize(x, y, size=size, seed=seed, method="uniform")
    every, clean = np.ones(ROWS), (~outlier).astype(float)
    accuracy = {
        "all rows": _accuracy(x, y, every, clean_x, clean_y),
        f"{size} random rows": _accuracy(subset.X, subset.y, subset.weights, clean_x, clean_y),
        f"coreset of {len(coreset)} rows": _accuracy(coreset.X, coreset.y, coreset.weights, clean_x, clean_y),
        "clean rows only (not known in practice)": _accuracy(x, y, clean, clean_x, clean_y),
    }
    # Of the rows with the lowest scores, as many as there are dirty ones, how many are dirty?
    suspects = np.argsort(coreset.scores)[: outlier.sum()]
    kept = int(outlier[coreset.indices].sum())
    result = DemoResult(coreset, outlier.mean(), kept, outlier[suspects].mean(), accuracy)
    command = f"betacores demo --size {size} --seed {seed}"
    extra: dict[str, str | bytes] = {
        "demo.png": _drawn(x, outlier, coreset),
        "story.txt": f"{command}, betacores {__version__}\n\n{story(result)}\n",
        "report.html": coreset.report(title="The demonstration's table", command=command).html,
    }
    save(coreset, out, overwrite=True, extra=extra)
    return result


def story(result: DemoResult) -> str:
    """Tell a person what was done."""
    coreset = result.coreset
    lines = [
        f"Rows in           {coreset.row_count:,} ({len(coreset.columns)} columns, a yes/no response)",
        f"Rows kept         {len(coreset)} with weights; {result.outliers_kept} of them dirty",
        f"Contamination     found {coreset.contamination:.1%}, truth {result.truth:.1%}",
        f"Suspicious rows   {result.found:.1%} of the rows with the lowest scores are dirty ones",
        "",
        "Accuracy on clean test rows, inference from",
        *(f"  {name:<42}{value:.1%}" for name, value in result.accuracy.items()),
    ]
    return "\n".join(lines)


def _accuracy(
    x: np.ndarray, y: np.ndarray | None, weights: np.ndarray, test_x: np.ndarray, test_y: np.ndarray
) -> float:
    """Return the accuracy of classical logistic inference from weighted rows, averaged over posterior draws."""
    labels = np.unique(test_y)
    rows, test = encode_rows(x, y, labels), encode_rows(test_x, test_y, labels)
    return classical_measures(LogisticRegression(), rows, weights, test)["accuracy"]


def _drawn(x: np.ndarray, outlier: np.ndarray, coreset: Coreset) -> bytes:
    from matplotlib.figure import Figure

    direction = coreset.posterior(200).mean[:-1]
    direction = direction / np.linalg.norm(direction)
    other = np.eye(len(direction))[np.argmin(np.abs(direction))]
    other = other - (other @ direction) * direction
    plane = np.column_stack([direction, other / np.linalg.norm(other)])
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    scatter, histogram = figure.subplots(1, 2)
    shown = x @ plane
    scatter.scatter(*shown[~outlier][::4].T, s=3, c="#b8c4d0", label="clean rows", linewidths=0)
    scatter.scatter(*shown[outlier][::4].T, s=3, c="#e3a29b", label="dirty rows", linewidths=0)
    size = 15 + 150 * coreset.weights / coreset.weights.max()
    scatter.scatter(
        *(coreset.X @ plane).T, s=size, facecolors="none", edgecolors="#1b4f8a", linewidths=1.3, label="coreset"
    )
    scatter.set(xlabel="along the fitted direction", ylabel="across", title="Rows, and the coreset (size = weight)")
    scatter.legend(loc="lower right", markerscale=1, framealpha=0.9)
    bins = np.linspace(0, max(1.2, coreset.scores.max()), 60)
    values = [coreset.scores[~outlier], coreset.scores[outlier]]
    histogram.hist(values, bins, stacked=True, color=["#b8c4d0", "#e3a29b"], label=["clean rows", "dirty rows"])
    histogram.set(xlabel="score", ylabel="rows", title="Scores: near 0, the model does not believe the row")
    histogram.legend()
    sink = io.BytesIO()
    figure.savefig(sink, format="png", dpi=130)
    return sink.getvalue()
