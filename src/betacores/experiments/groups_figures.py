"""The figures of the group experiment: accuracy against groups and rows, and attributes of the selected groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.experiments import groups_table as numbers
from betacores.experiments.runner import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"pursuit": "#d1495b", "beta-cores": "#1b4f8a", "shapley": "#e9a23b", "random": "#9aa0a6"}


def draw(out: Path, results: list[Task]) -> list[Path]:
    """Draw both figures."""
    return [_accuracy(out, results), _selected(out, results)]


def _accuracy(out: Path, results: list[Task]) -> Path:
    from matplotlib.figure import Figure

    shown = numbers.cases(results)
    figure = Figure(figsize=(10, 3.1 * len(shown) + 0.5), layout="constrained")
    grid = figure.subplots(len(shown), 2, sharey="row", squeeze=False)
    for row, case in zip(grid, shown, strict=True):
        for axis, against in zip(row, ("groups", "rows"), strict=True):
            _panel(axis, results, case, against)
        row[0].set_ylabel("accuracy, per cent")
        row[0].set_title(numbers.case_name(case).capitalize(), loc="left", fontsize=10, fontweight="bold")
    for axis, words in zip(grid[-1], ("number of groups", "number of rows"), strict=True):
        axis.set_xlabel(words)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    path = out / "accuracy.png"
    figure.savefig(path, dpi=130)
    return path


def _panel(axis: Axes, results: list[Task], case: numbers.Case, against: str) -> None:
    sizes = numbers.sizes(results)
    for method in numbers.methods(results, case):
        low, middle, high = 100 * np.quantile(numbers.curve(results, case, method), (0.25, 0.5, 0.75), axis=0)
        across = sizes if against == "groups" else np.median(numbers.curve(results, case, method, "rows"), axis=0)
        colour, front = COLOURS[method], method == "pursuit"
        axis.fill_between(across, low, high, color=colour, alpha=0.2 if front else 0.12, linewidth=0)
        axis.plot(
            across,
            middle,
            color=colour,
            marker="o",
            markersize=3,
            linewidth=2 if front else 1.4,
            label=numbers.NAMES[method],
            zorder=3 if front else 2,
        )
    for name, style in zip(numbers.REFERENCES, ("--", ":"), strict=True):
        # Without dirt all groups are clean.
        if case[0] or name == "all groups":
            level = 100 * float(np.median(numbers.reference(results, case, name)))
            axis.axhline(level, color="black", linestyle="--" if not case[0] else style, linewidth=1, label=name)
    if against == "rows":
        axis.set_xscale("log")
    else:
        axis.set_xticks(sizes)
    axis.grid(alpha=0.25, linewidth=0.5)


def _selected(out: Path, results: list[Task]) -> Path:
    from matplotlib.figure import Figure

    case = numbers.cases(results)[0]
    methods = numbers.methods(results, case)
    values = {name: list(numbers.everyone(results, name)) for name in numbers.ATTRIBUTES}
    widths = [len(of) for of in values.values()]
    figure = Figure(figsize=(15, 4), layout="constrained")
    grid = figure.subplots(1, len(values), width_ratios=widths, sharey=False)
    for axis, (attribute, levels) in zip(grid, values.items(), strict=True):
        places = np.arange(len(levels))
        groups = numbers.everyone(results, attribute)
        for number, method in enumerate(methods):
            found = numbers.selected(results, case, method, attribute)
            heights = [100 * found.get(level, 0.0) for level in levels]
            shift = 0.8 * ((number + 0.5) / len(methods) - 0.5)
            axis.bar(places + shift, heights, 0.8 / len(methods), color=COLOURS[method], label=numbers.NAMES[method])
        shares = [100 * groups[level] for level in levels]
        axis.hlines(shares, places - 0.45, places + 0.45, color="black", linewidth=1.2, label="all groups")
        axis.set_xticks(places, [_shown(attribute, level) for level in levels], rotation=30 if len(levels) > 3 else 0)
        axis.set_title(attribute)
        axis.grid(axis="y", alpha=0.25, linewidth=0.5)
    grid[0].set_ylabel("selected groups, per cent")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    path = out / "selected.png"
    figure.savefig(path, dpi=130)
    return path


def _shown(attribute: str, level: object) -> str:
    if attribute == "quality":
        return ("0: clean", "1: 10 %", "2: 20 %")[int(str(level))]
    return {"AfricanAmerican": "African-\nAmerican"}.get(str(level), str(level).strip("[)"))
