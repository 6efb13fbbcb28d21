"""Weights with which the rows of a coreset stand for all rows that are believed, on the basis of one network.

Model: on a basis the posterior of the last layer, given all those rows, is `N(μ, Λ⁻¹)`. At `μ` the gradients `g_n` of
their log-likelihoods and that of the prior cancel. With the weighted rows of the coreset a gradient `e` is left, and
the divergence of the two posteriors is near `½ eᵀ Λ⁻¹ e`.

Update: of the weights that are not negative, take those with the least `eᵀ Λ⁻¹ e + τ Σ (w_n / w̄ - 1)²`, where `w̄` is
the number of all rows over that of the coreset's: they are near to equal where that is possible. With whitened
gradients `G_n` and their wanted sum `t`, in units of `w̄`, they are `w_n = w̄ max(0, 1 + G_n·a)` where
`Σ_n G_n max(0, 1 + G_n·a) + τ a = t`, and Newton's method finds `a`.

The network has seen the rows it was trained on and comes closer to them than to any other; the last layer would take
that for granted. What all rows say corrects it.

Reference: Deville and Särndal, "Calibration estimators in survey sampling", JASA 1992.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

if TYPE_CHECKING:
    from jaxtyping import Float

    from betacores.posteriors.gaussian import Gaussian

# How much the spread of weights counts against the divergence.
EVENNESS = 0.01
NEWTON_STEPS, HALVINGS, CLOSE = 30, 10, 1e-6


def standing_for_all(
    z: Float[np.ndarray, "m hidden"],
    y: Float[np.ndarray, " m"],
    noise: float,
    everyone: Gaussian,
    count: int,
) -> Float[np.ndarray, " m"]:
    """Return weights with which rows come close to the posterior of all.

    Parameters
    ----------
    z, y
        Basis and response of the rows of the coreset.
    noise
        Standard deviation of the response.
    everyone
        The posterior of the last layer given all rows, with a standard normal prior.
    count
        How many all are.
    """
    mean, factor = np.asarray(everyone.mean, np.float64), np.asarray(everyone.factor, np.float64)
    z = np.column_stack([z, np.ones(len(z))]).astype(np.float64)
    usual = max(count / len(z), 1.0)
    gradients = z * ((y - z @ mean) / noise**2)[:, None]
    gradients = usual * solve_triangular(factor, gradients.T, lower=True).T
    # What cancels the gradient of the prior.
    wanted = solve_triangular(factor, mean, lower=True)
    weights = _relative(gradients, wanted)
    return usual * weights if np.isfinite(weights).all() and weights.any() else np.full(len(z), usual)


def _relative(gradients: Float[np.ndarray, "m p"], wanted: Float[np.ndarray, " p"]) -> Float[np.ndarray, " m"]:
    """Return weights in units of the usual one."""

    def height(a: np.ndarray) -> float:
        return 0.5 * float(np.sum(np.maximum(1 + gradients @ a, 0) ** 2) + EVENNESS * a @ a) - float(wanted @ a)

    a, close = np.zeros(len(wanted)), CLOSE * (1 + np.abs(wanted).max())
    for _ in range(NEWTON_STEPS):
        weights = np.maximum(1 + gradients @ a, 0)
        slope = weights @ gradients + EVENNESS * a - wanted
        if np.abs(slope).max() < close:
            break
        held = gradients[weights > 0]
        try:
            step = np.linalg.solve(held.T @ held + EVENNESS * np.eye(len(a)), slope)
        except np.linalg.LinAlgError:
            # Rows so far off that the rest is lost in rounding.
            break
        before, share = height(a), 1.0
        for _ in range(HALVINGS):
            if height(a - share * step) <= before - 1e-4 * share * float(slope @ step):
                break
            share /= 2
        a = a - share * step
    return np.maximum(1 + gradients @ a, 0)
