"""The Frank–Wolfe method over weights: a sparse sum inside a polytope.

Problem: minimise `‖L − Σ_n w_n v_n‖²` over the weights `w ≥ 0` with `Σ_n w_n σ_n = σ`, where `σ_n = ‖v_n‖` and σ is
their sum over all rows; the full data, all weights one, is among them.

Update: begin at the best vertex, one row with weight `σ/σ_n`. From `w` look for the vertex that the residual points to
most, and go towards it as far as brings the sum nearest to `L`. After M steps the squared error is of order 1/M.

Reference: Campbell and Broderick, "Automated scalable Bayesian inference via Hilbert coresets", JMLR 20 (2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from betacores.constructions.hilbert import directions
from betacores.constructions.path import NOTHING, Path, Sparse, path_of, sparse, stopped

if TYPE_CHECKING:
    from jaxtyping import Float


def frank_wolfe(
    vectors: Float[np.ndarray, "n s"],
    target: Float[np.ndarray, " s"],
    *,
    size: int,
    total: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of the Frank–Wolfe method, with places among the vectors as its indices.

    Parameters
    ----------
    vectors, target
        What to choose from, and what to sum to.
    size
        Number of steps, and so the largest number of rows.
    total
        σ; by default the sum of the vectors' lengths.
    progress
        Called with the number of finished steps and their total.
    """
    units, length = directions(np.asarray(vectors, np.float64))
    total = float(length.sum()) if total is None else total
    if not (length.any() and np.any(target)):
        return NOTHING
    reached, weights = np.zeros_like(target), np.zeros(len(units))
    steps: list[Sparse] = []
    warnings: tuple[str, ...] = ()
    for m in range(1, size + 1):
        residual = target - reached
        best = int(np.where(length > 0, units @ residual, -np.inf).argmax())
        direction = total * units[best] - reached
        ahead, squared = direction @ residual, direction @ direction
        # At the vertex already, or none lies ahead: no step brings the sum nearer.
        if m > 1 and not (ahead > 0 and squared > 0):
            break
        share = 1.0 if m == 1 else min(ahead / squared, 1.0)
        reached = reached + share * direction
        weights = (1 - share) * weights
        weights[best] += share * total / length[best]
        steps.append(sparse(weights))
        if warnings := stopped(progress, m, size):
            break
    return path_of(steps, size, warnings)
