"""The target: the log-likelihood of all rows, `t(θ) = Σ_n w_n f_n(θ)`, as a function of the parameter.

For few rows it is summed directly, one pass for any number of draws. For many, the pass that found the mode has left
the sum's gradient and Hessian there, and with them its quadratic part, exactly; only what remains of third order is
estimated, from a sample of rows `b`, each of which stands for `s_b`:

    t(θ) ≈ t(θ̂) + g·δ + δᵀHδ/2 + Σ_b s_b w_b [f_b(θ) − f_b(θ̂) − g_b·δ − δᵀH_bδ/2],      δ = θ − θ̂.

Draws lie within `1/√N` of the mode, where the remainder is of order `N · N^(−3/2)` and its sampling error of order
`1/√(N B)`: no more than rounding. Not so for rows far out in the covariates, of which real tables have a few: their
predictor swings widely over the posterior. For a linear predictor those that swing most are all looked at, `s_b = 1`,
and the sample is of the rest. Far from the mode, where no quadratic is to be trusted, the correction stays what it
is at a distance of thirty standard deviations in that direction, and the rest is the sample's word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.divergence import Beta, as_beta
from betacores.grid import grid_derivatives
from betacores.models.base import Model
from betacores.pilot import Pilot, curvature
from betacores.posteriors.derivatives import Derivatives
from betacores.sources import ArraySource, Pool, Source
from betacores.tangent import target_over

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# So many rows are summed directly.
DIRECT_ROWS = 8192
# The remainder is estimated from so many others, more if there are many parameters, and known of half as many.
REMAINDER_ROWS, ROWS_A_PARAMETER = 2048, 128
# How far the quadratic is trusted, in root mean squared standard deviations of the posterior.
REACH = 30.0


class Target(NamedTuple):
    """`t(θ)` up to a constant. Make one with `target_of`."""

    model: Model
    source: Source
    beta: Beta
    centre: Float[np.ndarray, " p"]
    rest: Derivatives | None
    precision: Any = None  # (p, p), with `rest`

    def over(self, thetas: Float[Array, "s p"]) -> Float[np.ndarray, " s"]:
        """Return the target at draws, less its value at the first."""
        total = target_over(self.source, self.model, thetas, self.beta)
        if self.rest is None:
            return total
        # The sample's own sum, scaled, has another quadratic part than the sum over all rows: put that right.
        away = self._within_reach(np.asarray(thetas, np.float64) - self.centre)
        correction = away @ self.rest.gradient + 0.5 * np.einsum("sp,pq,sq->s", away, self.rest.hessian, away)
        return total + correction - correction[0]

    def _within_reach(self, away: Float[np.ndarray, "s p"]) -> Float[np.ndarray, "s p"]:
        squared = np.einsum("sp,pq,sq->s", away, self.precision, away) / away.shape[1]
        return away * np.minimum(1.0, REACH / np.sqrt(np.maximum(squared, 1e-12)))[:, None]


def direct_target(model: Model, source: Source, beta: float) -> Target:
    """Return the target as a sum over all rows at every call."""
    return Target(model, source, as_beta(beta), np.zeros(0), None)


def target_of(
    model: Model, found: Pilot, beta: float, *, source: Source, far: Pool | None = None, others: Pool | None = None
) -> Target:
    """Return the target over all rows of a source.

    Parameters
    ----------
    model, beta
        The posterior's ingredients.
    found
        The mode, with the derivatives over all rows there.
    source
        All rows.
    far, others
        The rows that are all looked at, and a sample of the others; see `betacores.survey`. Without them all rows are
        summed at every call.
    """
    if others is None or far is None:
        return direct_target(model, source, beta)
    left = (source.row_count - len(far.ids)) / max(len(others.ids), 1)
    x = np.concatenate([far.rows.x, others.rows.x])
    y = None if far.rows.y is None else np.concatenate([far.rows.y, others.rows.y])
    weights = np.concatenate([far.weights, others.weights * np.float32(left)])
    sample = ArraySource(x, y, source.columns, weights)
    part = grid_derivatives(model, sample, found.looked_at[None], np.array([beta]))
    rest = Derivatives(*(whole - some[0] for whole, some in zip(found.likelihood, part, strict=True)))
    return Target(
        model,
        sample,
        as_beta(beta),
        found.looked_at.astype(np.float64),
        jax.tree.map(np.asarray, rest),
        curvature(model, found),
    )


def remainder_rows(parameters: int) -> int:
    """Return how many rows the remainder is estimated from."""
    return max(REMAINDER_ROWS, ROWS_A_PARAMETER * parameters)
