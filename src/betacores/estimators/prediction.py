"""Predictions averaged over the posterior, which is Gaussian: exact for linear regression, Laplace for logistic.

With `θ ~ N(μ, Σ)` and a row `z = (x, 1)` the linear predictor is `η ~ N(z·μ, zᵀΣz)`, and

    a new response of linear regression is  N(z·μ, noise² + zᵀΣz),
    the probability of logistic regression is  E[1 / (1 + exp(−η))],

a one-dimensional integral, computed by the trapezoidal rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr

from betacores.coreset import Coreset
from betacores.divergence import as_beta
from betacores.inputs import encode_rows
from betacores.models import LinearPredictor
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float

BLOCK_ROWS = 65_536
# The rule's error falls exponentially with the distance of the integrand's poles, π / sd, over the step.
STEP, FARTHEST, WIDEST = 0.125, 7.0, 14.0


@dataclass(frozen=True)
class Predictor:
    """The Gaussian posterior of a linear predictor's coefficients, in double precision."""

    mean: Float[np.ndarray, " p"]
    factor: Float[np.ndarray, "p p"]
    intercept: bool

    def moments(self, x: Float[np.ndarray, "n columns"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return mean and variance of the linear predictor of rows."""
        mean, variance = np.empty(len(x)), np.empty(len(x))
        slopes = slice(0, x.shape[1])
        for start in range(0, len(x), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            spread = x[part] @ self.factor[slopes]
            mean[part] = x[part] @ self.mean[slopes]
            if self.intercept:
                mean[part] += self.mean[-1]
                spread += self.factor[-1]
            variance[part] = np.einsum("np,np->n", spread, spread)
        return mean, variance


def predictor(coreset: Coreset) -> Predictor:
    """Return the posterior of a coreset of a linear or logistic regression, read as it was built to be."""
    beta = as_beta(coreset.beta) if coreset.readout == "beta" else None
    with single_precision():
        rows = encode_rows(coreset.X, coreset.y, coreset.labels)
        found, _ = weighted_posterior(coreset.model, rows, coreset.weights, beta)
        mean, precision_factor = (np.asarray(part, np.float64) for part in found)
    assert isinstance(coreset.model, LinearPredictor)  # the estimators that predict have no other
    # Σ = L⁻ᵀ L⁻¹ if the precision is L Lᵀ.
    return Predictor(mean, np.linalg.inv(precision_factor).T, coreset.model.intercept)


def mean_sigmoid(mean: Float[np.ndarray, " n"], variance: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `E[1 / (1 + exp(−η))]` for Gaussian η, to five digits."""
    width = np.sqrt(variance)
    # For a wide η the logistic curve is as good as any other of its variance, the Gaussian one included.
    result = ndtr(mean / np.sqrt(variance + np.pi**2 / 3))
    narrow = np.flatnonzero(width <= WIDEST)
    total = np.zeros(len(narrow))
    nodes = np.arange(-FARTHEST, FARTHEST + STEP / 2, STEP)
    weights = np.exp(-0.5 * nodes**2)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        total += weight * expit(mean[narrow] + node * width[narrow])
    result[narrow] = total
    return result
