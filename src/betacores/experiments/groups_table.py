"""Numbers of the group experiment: curves over the number of groups, who was selected, and the table of all of them."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.experiments import groups as study
from betacores.experiments.runner import Task

if TYPE_CHECKING:
    from jaxtyping import Float

Case = tuple[bool, bool]
NAMES = {"pursuit": "pursuit", "beta-cores": "β-Cores", "shapley": "Shapley", "random": "random"}
ATTRIBUTES = ("age", "race", "gender", "quality")
REFERENCES = ("clean groups", "all groups")
MEASURES = ("accuracy", "rows", "dirty_rows", "groups", "dirty_groups")


def cases(results: list[Task]) -> list[Case]:
    """Return the cases that were run, whether contaminated and whether as published, in the order they are shown."""
    found = {(r["contaminated"], r["as_published"]) for r in results if "results" in r}
    return [case for case in study.CASES if case in found]


def case_name(case: Case) -> str:
    """Return what a case is called."""
    columns = "published columns, which hold the answer" if case[1] else "columns without the answer"
    return f"{'contaminated' if case[0] else 'clean'}, {columns}"


def of_case(results: list[Task], case: Case, holding: str = "results") -> list[Task]:
    """Return the runs of a case that hold something."""
    return [r for r in results if (r.get("contaminated"), r.get("as_published")) == case and holding in r]


def methods(results: list[Task], case: Case) -> list[str]:
    """Return the methods that were run in a case."""
    found = {name for r in of_case(results, case) for name in r["results"]}
    return [name for name in study.METHODS if name in found]


def runs(results: list[Task], case: Case, method: str) -> list[dict[str, Any]]:
    """Return what was measured of a method, one a trial."""
    return [r["results"][method] for r in of_case(results, case) if method in r["results"]]


def curve(results: list[Task], case: Case, method: str, measure: str = "accuracy") -> Float[np.ndarray, "trials sizes"]:
    """Return a measure of a method by trial and number of groups."""
    return np.array([run[measure] for run in runs(results, case, method)], float)


def reference(results: list[Task], case: Case, name: str) -> Float[np.ndarray, " trials"]:
    """Return the accuracy of classical inference from all groups, or all clean ones, by trial."""
    return np.array([r[name] for r in of_case(results, case, name)], float)


def estimates(results: list[Task], case: Case) -> list[Task]:
    """Return what pursuit told about the contamination of groups, one a trial."""
    return [r["estimates"] for r in of_case(results, case, "estimates")]


def sizes(results: list[Task]) -> tuple[int, ...]:
    """Return the numbers of groups that were measured."""
    return study.QUICK_SIZES if any(r["study"] == "quick" for r in results) else study.SIZES


def selected(results: list[Task], case: Case, method: str, attribute: str) -> dict[Any, float]:
    """Return how the groups that a method selected, over all trials, divide among the values of an attribute."""
    return _shares([label for run in runs(results, case, method) for label in run["selected"]], attribute)


def everyone(results: list[Task], attribute: str, by_rows: bool = False) -> dict[Any, float]:
    """Return how all groups, or all rows, divide among the values of an attribute, in the order of values."""
    table = next(r["table"] for r in results if "table" in r)
    weights = table["rows"] if by_rows else None
    shares = _shares(table["labels"], attribute, weights)
    return {value: shares[value] for value in sorted(shares)}


def _shares(labels: list[list], attribute: str, weights: list[int] | None = None) -> dict[Any, float]:
    place, counts = ATTRIBUTES.index(attribute), Counter[Any]()
    for label, weight in zip(labels, weights or [1] * len(labels), strict=True):
        counts[label[place]] += weight
    return {value: count / counts.total() for value, count in counts.items()}


def write_table(out: Path, results: list[Task]) -> Path:
    """Write the quartiles of every measure, for every case, method and number of groups."""
    path = out / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["contaminated", "columns", "method", "groups", "trials", "measure", "q25", "median", "q75"])
        for case in cases(results):
            where = ["yes" if case[0] else "no", "published" if case[1] else "without the answer"]
            for method in methods(results, case):
                for measure in MEASURES:
                    values = curve(results, case, method, measure)
                    for size, column in zip(sizes(results), values.T, strict=True):
                        writer.writerow([*where, method, size, len(column), measure, *_quartiles(column)])
            for name in REFERENCES:
                values = reference(results, case, name)
                writer.writerow([*where, name, "", len(values), "accuracy", *_quartiles(values)])
    return path


def _quartiles(values: np.ndarray) -> list[str]:
    return [f"{value:.5g}" for value in np.quantile(values, (0.25, 0.5, 0.75))]
