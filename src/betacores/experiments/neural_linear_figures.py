"""The figure of the neural linear experiments: test error against coreset size, one panel a case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.experiments import neural_linear as study
from betacores.experiments.neural_linear_page import Case, cases, curve, median, of_case
from betacores.experiments.runner import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "pursuit": "#d1495b",
    study.beta_cores(0.1): "#6f8fc9",
    study.beta_cores(0.5): "#1b4f8a",
    "sparse-vi": "#e9a23b",
    "uniform": "#9aa0a6",
}


def draw(out: Path, results: list[Task]) -> list[Path]:
    """Draw medians and quartiles over trials of the cases with the published code's dirt."""
    from matplotlib.figure import Figure

    shown = [case for case in cases(results) if case[1] == "shifted"]
    data = list(dict.fromkeys(case[0] for case in shown))
    columns = max(sum(case[0] == name for case in shown) for name in data)
    figure = Figure(figsize=(3.4 * columns, 3.2 * len(data) + 0.5), layout="constrained")
    grid = figure.subplots(len(data), columns, squeeze=False, sharey="row")
    for row, name in zip(grid, data, strict=True):
        for axis, case in zip(row, [case for case in shown if case[0] == name], strict=False):
            _panel(axis, of_case(results, case), case)
        row[0].set_ylabel(f"{study.SETTINGS[name].name}\nRMSE, {study.SETTINGS[name].unit}")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    path = out / "rmse.png"
    figure.savefig(path, dpi=130)
    return [path]


def _panel(axis: Axes, runs: list[Task], case: Case) -> None:
    setting = study.SETTINGS[case[0]]
    sizes = setting.initial + setting.batch * np.arange(curve(runs, "uniform").shape[1])
    for method, colour in COLOURS.items():
        low, middle, high = np.quantile(curve(runs, method), (0.25, 0.5, 0.75), axis=0)
        front = 3 if method == "pursuit" else 2
        axis.fill_between(sizes, low, high, color=colour, alpha=0.2 if front == 3 else 0.1, linewidth=0)
        axis.plot(sizes, middle, color=colour, linewidth=2 if front == 3 else 1.3, label=method, zorder=front)
    level = float(median(runs, study.CLEAN)[0])
    axis.axhline(level, color="black", linestyle="--", linewidth=1, label=study.CLEAN, zorder=1)
    poisoned = f"{case[2]:.0%} of batches poisoned" if case[2] else "clean"
    axis.set(title=f"{poisoned}\nstart: {case[3]}", xlim=(sizes[0], sizes[-1]), xlabel="rows of the batches entered")
    axis.set_yscale("log")
    ticks = [2.5, 3, 4, 6, 8, 12, 20] if case[0] == "boston_housing" else [9, 10, 11, 12, 14, 17, 20]
    axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(alpha=0.25, linewidth=0.5)
