"""The figure of the logistic experiments: accuracy against size, corrupted tables above and clean ones below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.experiments import logistic as study
from betacores.experiments import logistic_table as numbers
from betacores.experiments.runner import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "pursuit": "#d1495b",
    numbers.CHOSEN: "#1b4f8a",
    "sparse-vi": "#6fa8dc",
    "psvi": "#8e6bb8",
    "quasi-newton": "#2a9d8f",
    "giga": "#e9a23b",
    "uniform": "#9aa0a6",
}
LABELS = {"pursuit": "pursuit", numbers.CHOSEN: "β-Cores", "sparse-vi": "SparseVI", "psvi": "PSVI", "giga": "GIGA"}


def draw(out: Path, results: list[Task]) -> list[Path]:
    """Draw medians and quartiles over trials."""
    from matplotlib.figure import Figure

    shown = numbers.experiments(results)
    data = list(dict.fromkeys(name for name, _ in shown))
    fractions = sorted({fraction for _, fraction in shown}, reverse=True)
    figure = Figure(figsize=(4.6 * len(data), 3.4 * len(fractions)), layout="constrained")
    grid = figure.subplots(len(fractions), len(data), sharex=True, squeeze=False)
    for row, fraction in zip(grid, fractions, strict=True):
        for axis, name in zip(row, data, strict=True):
            _panel(axis, results, name, fraction)
        row[0].set_ylabel("accuracy on clean test rows")
    for axis in grid[-1]:
        axis.set_xlabel("coreset size")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    path = out / "accuracy.png"
    figure.savefig(path, dpi=130)
    return [path]


def _panel(axis: Axes, results: list[Task], data: str, fraction: float) -> None:
    runs = numbers.of_paper(results, data, fraction)
    if not runs:
        axis.set_axis_off()
        return
    sizes = numbers.sizes_of(runs[0]["study"])
    beta = numbers.chosen(results, data, fraction)
    for method, colour in COLOURS.items():
        key = study.beta_cores(beta) if method == numbers.CHOSEN else method
        low, middle, high = np.quantile(numbers.curve(runs, key), (0.25, 0.5, 0.75), axis=0)
        front = 3 if method in ("pursuit", numbers.CHOSEN) else 2
        shade = 0.2 if front == 3 else 0.08
        axis.fill_between(sizes, low, high, color=colour, alpha=shade, linewidth=0, zorder=front - 1)
        label = LABELS.get(method, method)
        axis.plot(sizes, middle, color=colour, linewidth=2 if front == 3 else 1.3, label=label, zorder=front)
    for reference, style in (("clean rows", "--"), ("all rows", ":")):
        level = float(numbers.median(runs, reference)[0])
        axis.axhline(level, color="black", linestyle=style, linewidth=1, label=reference, zorder=1)
    axis.set(title=f"{numbers.NAMES[data]}, F = {fraction:g} (β-Cores: β = {beta:g})", xlim=(sizes[0], sizes[-1]))
    axis.set_ylim(bottom=max(0.4, axis.get_ylim()[0]))
    axis.grid(alpha=0.25, linewidth=0.5)
