"""Figures of the Gaussian experiment: coreset points with ellipses, and the KL divergence against size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.datasets import contaminated_gaussian
from betacores.experiments.gaussian import FRACTIONS, METHODS, Run, posterior, quartiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"beta-cores": "#1b4f8a", "sparse-vi": "#c0504d", "psvi": "#8e6bb8", "uniform": "#6b9e4f"}
NAMES = {"beta-cores": "β-Cores", "sparse-vi": "SparseVI", "psvi": "PSVI", "uniform": "uniform"}


def draw(out: Path, runs: list[Run], seed: int) -> list[Path]:
    """Draw both figures; the points are those of the first trial."""
    return [_divergences(out, runs), _points(out, runs, seed)]


def _divergences(out: Path, runs: list[Run]) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    axes = figure.subplots(1, len(FRACTIONS), sharey=True)
    for axis, fraction in zip(axes, FRACTIONS, strict=True):
        for method in METHODS:
            low, middle, high = quartiles(runs, fraction, method)
            m = np.arange(1, len(middle) + 1)
            axis.fill_between(m, low, high, color=COLOURS[method], alpha=0.2, linewidth=0)
            axis.plot(m, middle, color=COLOURS[method], label=NAMES[method], linewidth=1.6)
        axis.set(xscale="log", yscale="log", xlabel="outer iterations", title=f"F = {fraction:.0%}")
        axis.grid(alpha=0.25, linewidth=0.5)
    axes[0].set_ylabel("reverse KL to the clean posterior")
    axes[0].legend(frameon=False)
    path = out / "kl.png"
    figure.savefig(path, dpi=130)
    return path


def _points(out: Path, runs: list[Run], seed: int) -> Path:
    from matplotlib.figure import Figure

    first = {(r.fraction, r.method): r for r in runs if r.trial == 0}
    sizes = list(first[FRACTIONS[0], METHODS[0]].snapshots)
    figure = Figure(figsize=(2.6 * len(sizes), 2.6 * len(FRACTIONS)), layout="constrained")
    grid = figure.subplots(len(FRACTIONS), len(sizes), sharex=True, sharey=True, squeeze=False)
    for row, fraction in zip(grid, FRACTIONS, strict=True):
        table = contaminated_gaussian(seed, fraction)
        plane = np.linalg.qr(np.random.default_rng(seed).normal(size=(table.x.shape[1], 2)))[0]
        clean = table.x[~table.outlier]
        for axis, m in zip(row, sizes, strict=True):
            axis.scatter(*(table.x[::5] @ plane).T, s=2, c="#c9ced6", linewidths=0)
            for method in [method for method in METHODS if first[fraction, method].snapshots]:
                ids, weights = first[fraction, method].snapshots[m]
                axis.scatter(*(table.x[ids] @ plane).T, s=9, c=COLOURS[method], linewidths=0, label=NAMES[method])
                _ellipse(axis, *posterior(table.x[ids], np.array(weights)), plane, COLOURS[method])
            _ellipse(axis, *posterior(clean, np.ones(len(clean))), plane, "black")
            axis.set(aspect="equal", xticks=[], yticks=[], title=f"F = {fraction:.0%}, m = {m}")
    grid[0, 0].legend(fontsize=7, loc="upper left", frameon=False)
    path = out / "points.png"
    figure.savefig(path, dpi=120)
    return path


def _ellipse(axis: Axes, mean: np.ndarray, precision: float, plane: np.ndarray, colour: str) -> None:
    """Draw where three standard deviations of the predictive distribution reach; a circle, since all are spherical."""
    from matplotlib.patches import Circle

    radius = 3 * np.sqrt(1 + 1 / precision)
    axis.add_patch(Circle(tuple(mean @ plane), radius, fill=False, edgecolor=colour, linewidth=1.3))
