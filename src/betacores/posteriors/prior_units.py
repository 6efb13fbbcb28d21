"""The units of the prior: posteriors are computed where the prior is N(0, 1), for single precision's sake.

A table may be in any units, years or nanoseconds, and the estimators hand over models of it as it is, with a prior that
ties the coefficients to the intercept. Rows and prior cast to single precision there would lose the digits that count.
With the prior `N(μ0, Σ0)`, `Σ0 = S Sᵀ`, and `θ = μ0 + S φ`, rows `z` become `z S`, formed in double precision, and
`φ ~ N(0, 1)` has coefficients of about one. Draws of `φ` are turned back in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from betacores.models import (
    GaussianMean,
    GaussianPrior,
    LinearRegression,
    LogisticRegression,
    Model,
    NegativeBinomialRegression,
    PoissonRegression,
    SoftmaxRegression,
)
from betacores.models.one_further import OneFurther

if TYPE_CHECKING:
    from jaxtyping import Float


class Posed(NamedTuple):
    """A model and its rows in some units, and the way of its parameters back to others: `shift + scale φ`."""

    model: Model
    x: np.ndarray
    y: np.ndarray | None
    shift: Float[np.ndarray, " p"] | None = None
    scale: Float[np.ndarray, "p p"] | None = None

    def back(self, parameters: Float[np.ndarray, "*n p"]) -> Float[np.ndarray, "*n p"]:
        """Return parameters in the units of the table."""
        if self.scale is None:
            return parameters
        return np.asarray(parameters, np.float64) @ self.scale.T + self.shift


def in_prior_units(model: Model, x: np.ndarray, y: np.ndarray | None) -> Posed:
    """Return a model and its rows in the units of the prior; as they are if there is nothing to win or no way."""
    as_given = Posed(model, x, y)
    if isinstance(model, GaussianMean):
        return _mean_in_prior_units(model, x) if np.ndim(model.prior.mean) else as_given
    prior = _coefficient_prior(model)
    if prior is None or np.ndim(prior.precision) != 2:
        return as_given
    try:
        factor = np.linalg.cholesky(np.asarray(prior.precision, np.float64))
    except np.linalg.LinAlgError:
        return as_given
    count = len(factor)
    scale = solve_triangular(factor, np.eye(count), lower=True).T
    shift = np.broadcast_to(np.asarray(prior.mean, np.float64), (count,))
    z = np.column_stack([x, np.ones(len(x))]) if model.intercept else np.asarray(x, np.float64)  # type: ignore[attr-defined]
    if isinstance(model, LinearRegression):
        assert y is not None  # a regression has a response
        # The prior's own prediction is taken off the response, which may be far from zero.
        return Posed(LinearRegression(float(model.noise), intercept=False), z @ scale, y - z @ shift, shift, scale)
    own = GaussianPrior(factor.T @ shift, 1.0)
    if isinstance(model, SoftmaxRegression):
        posed: Model = SoftmaxRegression(model.classes, False).bound([""] * count, None)
        scale = np.kron(np.eye(model.vectors), scale)
        return Posed(posed, z @ scale[:count, :count], y, np.zeros(len(scale)), scale)
    if isinstance(model, OneFurther):
        # The logarithm of a dispersion has no units, nor has a rate.
        whole = block_diag(scale, np.eye(model.further))
        return Posed(model.without_intercept().moved(own, factor.T), z @ scale, y, np.zeros(len(whole)), whole)
    kind = PoissonRegression if isinstance(model, PoissonRegression) else LogisticRegression
    return Posed(kind(intercept=False, prior=own), z @ scale, y, np.zeros(count), scale)


def _coefficient_prior(model: Model) -> GaussianPrior | None:
    """Return the prior of a vector of coefficients, for models that can be posed in other units."""
    if isinstance(model, (PoissonRegression, NegativeBinomialRegression)) and model.column is not None:
        return None
    if isinstance(model, OneFurther):
        return model.coefficient_prior
    if isinstance(model, SoftmaxRegression):
        precision = model.units()
        return None if precision is None else GaussianPrior(0.0, precision)
    return model.prior if isinstance(model, (LinearRegression, LogisticRegression, PoissonRegression)) else None


def _mean_in_prior_units(model: GaussianMean, x: np.ndarray) -> Posed:
    if np.ndim(model.prior.precision) == 2 or np.ndim(model.whitener) == 2:
        return Posed(model, x, None)
    scale = np.broadcast_to(np.asarray(model.prior.precision, np.float64) ** -0.5, (x.shape[1],))
    own = GaussianMean((np.asarray(model.whitener, np.float64) * scale) ** -2.0)
    return Posed(own, (x - model.prior.mean) / scale, None, np.asarray(model.prior.mean), np.diag(scale))
