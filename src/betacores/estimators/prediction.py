"""Predictions averaged over the posterior, which is Gaussian: exact for linear regression, Laplace for the others.

With `θ ~ N(μ, Σ)` and a row `z = (x, 1)` the linear predictor is `η ~ N(z·μ, zᵀΣz)`, and

    a new response of linear regression is  N(z·μ, noise² + zᵀΣz),
    the probability of logistic regression is  E[1 / (1 + exp(−η))],

a one-dimensional integral, computed by the trapezoidal rule. Probabilities of several classes are averages over draws.
The mean of a count is `E[exp(η)] = exp(z·μ + zᵀΣz/2)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, ndtr, softmax

from betacores.coreset import Coreset
from betacores.divergence import as_beta
from betacores.inputs import encode_rows
from betacores.models import LinearPredictor, SeveralPredictors, SoftmaxRegression
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float

BLOCK_ROWS = 65_536
# The rule's error falls exponentially with the distance of the integrand's poles, π / sd, over the step.
STEP, FARTHEST, WIDEST = 0.125, 7.0, 14.0
# Draws that probabilities of several classes are averaged over, and numbers in memory at a time.
CLASS_DRAWS, CLASS_CELLS = 256, 4_000_000


@dataclass(frozen=True)
class Predictor:
    """The Gaussian posterior of a linear predictor's coefficients, in double precision."""

    mean: Float[np.ndarray, " p"]
    factor: Float[np.ndarray, "p p"]
    model: LinearPredictor | SeveralPredictors

    def moments(self, x: Float[np.ndarray, "n columns"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return mean and variance of the linear predictor of rows."""
        mean, variance = np.empty(len(x)), np.empty(len(x))
        for start in range(0, len(x), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            rows = self.model.covariates(x[part])
            constant = rows.shape[1]
            spread = rows @ self.factor[:constant]
            mean[part] = rows @ self.mean[:constant]
            if self.model.intercept:
                mean[part] += self.mean[constant]
                spread += self.factor[constant]
            mean[part] = self.model.with_offset(mean[part], x[part])
            variance[part] = np.einsum("np,np->n", spread, spread)
        return mean, variance

    def class_probabilities(self, x: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n classes"]:
        """Return the probabilities of several classes, averaged over the posterior."""
        assert isinstance(self.model, SoftmaxRegression)
        # The same draws for all rows, in pairs around the mean: rows may come in any company.
        half = np.random.default_rng(0).standard_normal((CLASS_DRAWS // 2, len(self.mean)))
        draws = self.mean + np.concatenate([half, -half]) @ self.factor.T
        draws = draws.reshape(CLASS_DRAWS, self.model.vectors, -1)
        found = np.empty((len(x), self.model.vectors + 1))
        block = max(1, CLASS_CELLS // (CLASS_DRAWS * self.model.vectors))
        for start in range(0, len(x), block):
            rows = x[start : start + block]
            z = np.column_stack([rows, np.ones(len(rows))]) if self.model.intercept else rows
            logits = np.moveaxis(z @ np.swapaxes(draws, 1, 2), 2, 0)
            logits = np.concatenate([np.zeros_like(logits[:1]), logits])
            found[start : start + block] = softmax(logits, axis=0).mean(1).T
        return found


def predictor(coreset: Coreset) -> Predictor:
    """Return the posterior of a coreset of a regression, read as it was built to be."""
    beta = as_beta(coreset.beta) if coreset.readout == "beta" else None
    with single_precision():
        rows = encode_rows(coreset.X, coreset.y, coreset.labels)
        found, _ = weighted_posterior(coreset.model, rows, coreset.weights, beta)
        mean, precision_factor = (np.asarray(part, np.float64) for part in found)
    assert isinstance(coreset.model, (LinearPredictor, SeveralPredictors))  # the estimators that predict have no other
    # Σ = L⁻ᵀ L⁻¹ if the precision is L Lᵀ.
    return Predictor(mean, np.linalg.inv(precision_factor).T, coreset.model)


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
