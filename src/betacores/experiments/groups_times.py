"""How long it takes to choose groups: pursuit, Shapley values as made here, and Shapley values the published way.

The published way makes one NUTS run for every beginning of every order: 5,000 × 20 of them, one chain of 1,000 draws
after 1,000 steps of warm-up each. A few of them are timed here, by the NUTS of this package and without compilation,
and the time of all is extrapolated from their mean. Predicting the test rows is not counted.
"""

from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np

from betacores.experiments import groups as study
from betacores.experiments.groups_data import Table, grouped_table

# Numbers of groups whose NUTS runs are timed, spread evenly over the first twenty.
BEGINNINGS = (1, 7, 14, 20)
DRAWS = 1000
REPEATS = 3


def times(seed: int) -> dict[str, Any]:
    """Return seconds of processor time, on one core, on the contaminated table of the first trial."""
    from betacores.valuation import shapley_values

    table = grouped_table(seed, contaminated=True)
    pursuit = [_timed(lambda: study.summarized(table, max_groups=10, seed=seed)) for _ in range(1 + REPEATS)]
    arguments = (table.x, table.y, table.groups, table.test)
    shapley_values(*arguments, **{**study.SHAPLEY, "permutations": 1})
    shapley = _timed(lambda: shapley_values(*arguments, **study.SHAPLEY, seed=seed))
    runs = {size: _nuts_seconds(table, size, seed) for size in BEGINNINGS}
    return {
        "pursuit_first": round(pursuit[0], 3),
        "pursuit": round(float(np.median(pursuit[1:])), 3),
        "shapley": round(shapley, 2),
        "nuts": {str(size): round(seconds, 3) for size, seconds in runs.items()},
    }


def shapley_fits() -> int:
    """Return how many fits the Shapley values take."""
    return study.SHAPLEY["permutations"] * study.SHAPLEY["first"]


def extrapolated(found: dict[str, Any]) -> float:
    """Return the seconds that the published Shapley values would take."""
    return shapley_fits() * float(np.mean(list(found["nuts"].values())))


def _nuts_seconds(table: Table, size: int, seed: int) -> float:
    """Return the seconds of one NUTS run given the rows of some random groups, capped as for Shapley values."""
    from betacores.evaluation import posterior_draws
    from betacores.experiments.groups_measures import LABELS
    from betacores.inputs import encode_rows
    from betacores.models import LogisticRegression

    random = np.random.default_rng([seed, size])
    most = study.SHAPLEY["most_rows"]
    groups = random.permutation(len(table.groups))[:size]
    rows = np.concatenate([random.permutation(table.groups.members(np.array([g])))[:most] for g in groups])
    coreset = (encode_rows(table.x[rows], table.y[rows], LABELS), np.ones(len(rows)))

    def draw() -> None:
        posterior_draws(
            LogisticRegression(), [coreset], jax.random.key(seed), draws=DRAWS, chains=1, warmup=DRAWS, lanes=1
        )

    draw()
    return _timed(draw)


def _timed(work: Any) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
