"""How good a choice of groups is: accuracy of inference from their rows, and what entered with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.datasets import HospitalGroup
from betacores.evaluation import measures, posterior_draws, reference_posterior
from betacores.experiments.groups_data import Table
from betacores.inputs import encode_rows, read_problem
from betacores.models import LogisticRegression

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

LABELS = np.array([0, 1])
# Room for rows comes in multiples of so many, so that few sizes are compiled for; one group fits into half of it.
ROOM = 4096


class Chosen(NamedTuple):
    """Rows of some groups, their weights, and the groups in order of selection."""

    rows: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    groups: list[HospitalGroup]


def measured(table: Table, chosen: list[Chosen], draws: int, seed: int, *, check: bool) -> dict[str, Any]:
    """Return by number of groups the accuracy, the rows, and how much dirt came with them; and the groups at the end.

    As a check the first choice, of fewest rows, is drawn from by NUTS too: Laplace's approximation is least sure there.
    """
    model, held = LogisticRegression(), encode_rows(*table.test, LABELS)
    coresets = [(encode_rows(table.x[one.rows], table.y[one.rows], LABELS), one.weights) for one in chosen]
    room = -(-max(len(one.rows) for one in chosen) // ROOM) * ROOM
    key = jax.random.key(seed)
    found = posterior_draws(
        model, coresets, key, sampler="laplace", draws=draws, chains=1, lanes=len(chosen), capacity=room
    )
    dirty = dict(zip(table.labels, table.dirty_groups.tolist(), strict=True))
    checked = {}
    if check:
        by_nuts = posterior_draws(model, coresets[:1], key, draws=draws // 2, chains=2, lanes=1, capacity=ROOM // 2)
        checked["accuracy_by_nuts"] = [_short(value) for value in measures(model, by_nuts.thetas, held)["accuracy"]]
    return {
        "accuracy": [_short(value) for value in measures(model, found.thetas, held)["accuracy"]],
        **checked,
        "rows": [len(one.rows) for one in chosen],
        "dirty_rows": [int(table.dirty[one.rows].sum()) for one in chosen],
        "groups": [len(one.groups) for one in chosen],
        "dirty_groups": [sum(dirty[label] for label in one.groups) for one in chosen],
        "selected": [list(label) for label in chosen[-1].groups],
    }


def reference_accuracy(table: Table, kept: Bool[np.ndarray, " rows"] | None, draws: int, seed: int) -> float:
    """Return the accuracy of classical inference from all rows, or those kept."""
    key = jax.random.key(seed)
    model, posterior = reference_posterior(read_problem(table.x, table.y, LogisticRegression()), key, kept)
    held = encode_rows(*table.test, LABELS)
    return _short(measures(model, np.asarray(posterior.draw(key, draws)), held)["accuracy"][0])


def _short(value: float) -> float:
    return float(f"{value:.5g}")
