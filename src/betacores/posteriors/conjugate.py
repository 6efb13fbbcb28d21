"""Exact posteriors of models with a Gaussian prior and a likelihood quadratic in θ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jax.scipy.linalg import cho_solve

from betacores.models.base import Model, Rows
from betacores.posteriors.gaussian import Gaussian, factorise

if TYPE_CHECKING:
    from jaxtyping import Array, Float


def has_conjugate(model: Model) -> bool:
    """Tell whether the model's classical posterior is known in closed form."""
    return hasattr(model, "conjugate")


def conjugate(model: Model, rows: Rows, weights: Float[Array, " n"]) -> Gaussian:
    """Return the classical posterior `∝ exp(Σ_n w_n ℓ_n) π0` in closed form."""
    p = model.parameter_count(rows.x.shape[-1])
    prior_precision, prior_mean = model.prior.precision_matrix(p), model.prior.mean_vector(p)
    precision, shift = model.conjugate(rows, weights)
    # The posterior is nowhere less certain than the prior: a floor for what rounding may have lost.
    factor, _ = factorise(prior_precision + precision, prior_precision.diagonal().min())
    mean = cho_solve((factor, True), prior_precision @ prior_mean + shift)
    return Gaussian(mean, factor)
