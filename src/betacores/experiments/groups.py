"""The β-Cores paper's selection of whole groups of patients: which of 165 subpopulations to learn from.

The table is that of `groups_data`. Every method chooses up to ten groups: pursuit; β-Cores with β = 0.6 and the
published settings; the groups with the largest Shapley values, by 5,000 orders of which the first 20 groups are looked
at, groups entering with no more than 50 rows, valued on the test rows as published; and groups in random order. The
measure is the accuracy of the likelier label under each draw of the classical posterior given the rows of the chosen
groups, with the weights the method gave them, or 1 for Shapley and random groups.

The components are made without the answer among the columns; and once more as published, with it.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from betacores.experiments.runner import OnFiles, Task

# Whether groups are made dirty, and whether columns are made as published.
CASES = ((True, False), (False, False), (True, True), (False, True))
SIZES = tuple(range(1, 11))
FAST, SLOW = ("pursuit", "shapley", "random"), ("beta-cores",)
METHODS = ("pursuit", "beta-cores", "shapley", "random")
BETA = 0.6
PUBLISHED = {"draws": 200, "steps": 500, "batch_optimise": 1000}
SHAPLEY: dict[str, Any] = {"permutations": 5000, "first": 20, "most_rows": 50}
# Draws of every posterior, by Laplace's approximation.
DRAWS = 500

# So quick that it can be tried, and is, at every change.
QUICK_SIZES = (1, 2)
QUICK = {"draws": 30, "steps": 30, "batch_optimise": 200}
QUICK_SHAPLEY = {**SHAPLEY, "permutations": 100}


def tasks(trials: int, seed: int, quick: bool = False) -> list[Task]:
    """Return every run of every case; times are taken first, in a process that has compiled nothing yet.

    β-Cores takes minutes where the others take seconds: it has tasks of its own, and fewer trials beyond the first
    case.
    """

    def task(study: str, number: int, case: tuple[bool, bool], methods: tuple[str, ...]) -> Task:
        where = {"contaminated": case[0], "as_published": case[1]}
        return {"study": study, "seed": seed, "trial": number, **where, "methods": list(methods)}

    if quick:
        return [task("quick", 0, CASES[0], METHODS)]
    few = max(trials // 2, 1)
    return [
        {"study": "times", "seed": seed},
        *(task("groups", t, case, FAST) for case in CASES for t in range(trials)),
        *(task("groups", t, case, SLOW) for case in CASES for t in range(trials if case == CASES[0] else few)),
    ]


def run(task: Task) -> Task:
    """Let methods choose groups of a task's table, and measure."""
    from betacores.experiments.groups_times import times

    started = time.perf_counter()
    result = times(task["seed"]) if task["study"] == "times" else _trial(task)
    return {**result, "task_seconds": round(time.perf_counter() - started, 1)}


def _trial(task: Task) -> Task:
    from betacores.experiments.groups_data import grouped_table
    from betacores.experiments.groups_measures import measured, reference_accuracy

    quick, seed = task["study"] == "quick", task["seed"] + task["trial"]
    sizes = QUICK_SIZES if quick else SIZES
    table = grouped_table(seed, contaminated=task["contaminated"], as_published=task["as_published"])
    found: Task = {"results": {}}
    for name in task["methods"]:
        began = time.process_time()
        chosen = _choose(name, table, sizes, seed, quick, found)
        seconds = round(time.process_time() - began, 2)
        found["results"][name] = {**measured(table, chosen, DRAWS, seed, check=not quick), "seconds": seconds}
    if "pursuit" in task["methods"]:
        clean = ~table.dirty_groups[table.groups.codes]
        found |= {
            "clean groups": reference_accuracy(table, clean, DRAWS, seed),
            "all groups": reference_accuracy(table, None, DRAWS, seed),
            "table": {"labels": [list(label) for label in table.labels], "rows": table.groups.sizes.tolist()},
        }
    return found


def _choose(name: str, table: Any, sizes: tuple[int, ...], seed: int, quick: bool, found: Task) -> list[Any]:
    """Return what a method chooses for every number of groups; pursuit also leaves its estimates."""
    from betacores.experiments.groups_measures import Chosen
    from betacores.valuation import random_ranking, shapley_values

    if name in ("shapley", "random"):
        if name == "random":
            ranking = random_ranking(table.groups, seed)
        else:
            settings = QUICK_SHAPLEY if quick else SHAPLEY
            ranking = shapley_values(table.x, table.y, table.groups, table.test, seed=seed, **settings).ranking()
        firsts = [(ranking[:m], table.groups.members(ranking[:m])) for m in sizes]
        return [Chosen(rows, np.ones(len(rows)), [table.labels[g] for g in first]) for first, rows in firsts]
    plan: dict[str, Any] = {"max_groups": max(sizes), "seed": seed}
    if name == "beta-cores":
        plan |= {"method": "beta-cores", "beta": BETA, **(QUICK if quick else PUBLISHED)}
    coreset = summarized(table, **plan)
    if name == "pursuit":
        found["estimates"] = _estimates(table, coreset) | {"beta": coreset.beta}
    paths = [coreset.at(min(m, len(coreset.path.weights))) for m in sizes]
    return [Chosen(one.indices, one.weights, one.groups) for one in paths]


def summarized(table: Any, **plan: Any) -> Any:
    """Return the coreset of a table's groups."""
    from betacores.front_door import summarize

    labels = [table.labels[code] for code in table.groups.codes]
    with warnings.catch_warnings():
        # The published methods have no guard, and on this table their robust mode is not always found.
        warnings.simplefilter("ignore")
        return summarize(table.x, table.y, groups=labels, **plan)


def _estimates(table: Any, coreset: Any) -> Task:
    """Return how well the estimated contamination of groups tells the true one: by rank, and on average by quality."""
    from scipy.stats import spearmanr

    frame = coreset.group_table().set_index("group")
    estimated = np.array([frame.contamination[label] for label in table.labels])
    true = table.groups.means(table.dirty.astype(float))
    found: Task = {
        "estimated": [float(estimated[table.quality == q].mean()) for q in range(3)],
        "true": [float(true[table.quality == q].mean()) for q in range(3)],
    }
    if table.dirty.any():
        found["spearman"] = float(spearmanr(estimated, true).statistic)
    return found


reproduce = OnFiles("groups", tasks, run, lambda task: "hospital_readmissions", trials=5).reproduce
