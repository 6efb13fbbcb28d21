"""Modes and covariances of weighted posteriors, in double precision and the units of the table.

Tables in odd units (a longitude next to a population) have Hessians that single precision cannot invert. For models
with a linear predictor only elementwise functions of it are left to JAX; products over rows are made here. Other
models take the package's usual way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.divergence import as_beta, response_likelihood
from betacores.grid import grid_modes, priors_at
from betacores.inputs import encode_rows
from betacores.models.auxiliary import SeveralPredictors, derivatives_by_u
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.models.predictors import features_of, linear_predictor, linear_predictors
from betacores.posteriors.derivatives import Derivatives, add, response_derivatives
from betacores.posteriors.laplace import first_guess
from betacores.sources import ArraySource

if TYPE_CHECKING:
    from jaxtyping import Float

STEPS = 50
TOLERANCE = 1e-8
# Multiplications spent on one Hessian; of more rows a uniform sample is taken, never of fewer rows than so many for
# each parameter.
WORK, ROWS_A_PARAMETER = 1.5e9, 10
TOGETHER = 32_768  # rows in one product


class Fit(NamedTuple):
    """A Gaussian approximation of a posterior."""

    mean: Float[np.ndarray, " p"]
    covariance: Float[np.ndarray, "p p"]
    converged: bool

    @property
    def spread(self) -> Float[np.ndarray, " p"]:
        """Standard deviations of the parameters."""
        return np.sqrt(np.maximum(self.covariance.diagonal(), 0.0))


class Fitting(NamedTuple):
    """Rows to fit a model to: numbers, responses, and labels if they are words."""

    model: Model
    x: Float[np.ndarray, "n columns"]
    y: Any
    labels: Any

    def first(self) -> Fitting:
        """Return the first row only."""
        return Fitting(self.model, self.x[:1], None if self.y is None else self.y[:1], self.labels)

    def fit(self, weights: Float[np.ndarray, " n"], beta: float, start: Float[np.ndarray, " p"] | None = None) -> Fit:
        """Return the posterior of weighted rows at the mode near a start."""
        rows = encode_rows(self.x, self.y, self.labels)
        start = np.asarray(first_guess(self.model, self.x.shape[1]), np.float64) if start is None else start
        if isinstance(self.model, (LinearPredictor, SeveralPredictors)):
            return _climb(
                self.model, np.asarray(self.x, np.float64), rows, np.asarray(weights, np.float64), beta, start
            )
        source = ArraySource(rows.x, rows.y, None, weights)
        found = grid_modes(self.model, source, start[None], np.array([beta]))
        bend = found.likelihood.hessian[0] + priors_at(self.model, found.looked_at).hessian[0]
        return Fit(found.thetas[0].astype(np.float64), _inverse(-bend), bool(found.converged[0]))


def sampled(rows: int, parameters: int) -> np.ndarray:
    """Return the rows a fit of so many parameters looks at: all, or evenly spread ones."""
    most = int(max(WORK / parameters**2, ROWS_A_PARAMETER * parameters, 1000))
    return np.arange(rows) if rows <= most else np.unique(np.linspace(0, rows - 1, most).astype(int))


def _climb(
    model: LinearPredictor | SeveralPredictors,
    x: np.ndarray,
    rows: Rows,
    weights: np.ndarray,
    beta: float,
    start: np.ndarray,
) -> Fit:
    """Climb to a mode by damped Newton steps."""
    z, traced = features_of(model, x), as_beta(beta)

    def of_one(theta: np.ndarray) -> Derivatives:
        eta = linear_predictor(model, x, theta).astype(np.float32)
        value, slope, curvature = (np.asarray(part, np.float64) for part in _response(model, eta, rows.y, traced))
        bent = _products(z, weights * curvature, z)
        return Derivatives(weights @ value, (weights * slope) @ z, bent)

    def of_several(theta: np.ndarray) -> Derivatives:
        eta = linear_predictors(model, x, theta)
        m, (n, q) = eta.shape[1], z.shape
        further = np.broadcast_to(theta[m * q :], (n, len(theta) - m * q))
        u = np.concatenate([eta, further], axis=1).astype(np.float32)
        value, slope, bend = (np.asarray(part, np.float64) for part in _responses(model, u, rows.y, traced))
        # Further parameters multiply a one.
        parts = [*[z] * m, *[np.ones((n, 1))] * further.shape[1]]
        gradient = [(weights * slope[:, k]) @ part for k, part in enumerate(parts)]
        bent = [
            [_products(part, weights * bend[:, k, j], other) for j, other in enumerate(parts)]
            for k, part in enumerate(parts)
        ]
        return Derivatives(weights @ value, np.concatenate(gradient), np.block(bent))

    def look(theta: np.ndarray) -> Derivatives:
        here = of_one(theta) if isinstance(model, LinearPredictor) else of_several(theta)
        return add(here, Derivatives(*(part[0] for part in priors_at(model, theta[None]))))

    theta, at, damping, decrement = np.asarray(start, np.float64), look(start), 0.0, np.inf
    for _ in range(STEPS):
        step = _solved(-at.hessian, at.gradient, damping)
        decrement = float(at.gradient @ step)
        if damping == 0 and decrement <= TOLERANCE:
            break
        there = look(theta + step)
        if np.isfinite(there.value) and there.value >= at.value - 1e-6 * abs(at.value):
            theta, at, damping = theta + step, there, damping * 0.1 if damping > 1e-2 else 0.0
        else:
            damping = max(10 * damping, 0.1)
    return Fit(theta, _inverse(-at.hessian), decrement <= 1e-4)


def _products(one: np.ndarray, weights: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the weighted sum of products of two tables' rows, some at a time: a third table is not made for it."""
    starts = range(0, max(len(weights), 1), TOGETHER)
    parts = (slice(start, start + TOGETHER) for start in starts)
    total: np.ndarray = sum(one[part].T @ (weights[part, None] * other[part]) for part in parts)
    return total


_response = jax.jit(response_derivatives)


@jax.jit
def _responses(model: SeveralPredictors, u: Any, y: Any, beta: Any) -> tuple[Any, Any, Any]:
    return derivatives_by_u(lambda at, seen: response_likelihood(model, at, seen, beta), u, y)


def _solved(curvature: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
    return _inverse(curvature + damping * np.diag(np.abs(curvature.diagonal()) + 1e-9)) @ gradient


def _inverse(curvature: np.ndarray) -> np.ndarray:
    """Return the inverse of a curvature, as if directions bent the wrong way were bent the right way."""
    if not np.isfinite(curvature).all():
        return np.full_like(curvature, np.nan)
    # Equal diagonals first: columns of very different scale would otherwise fail for want of digits alone.
    scale = 1 / np.sqrt(np.maximum(np.abs(curvature.diagonal()), 1e-300))
    scaled = curvature * scale * scale[:, None]
    try:
        half = np.linalg.inv(np.linalg.cholesky(scaled))
        inverse = half.T @ half
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
        inverse = (vectors / np.maximum(np.abs(values), 1e-14)) @ vectors.T
    return scale * inverse * scale[:, None]
