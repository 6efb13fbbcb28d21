"""Value, gradient and Hessian of `Σ_n w_n f_n(θ)`: sums over rows, so they add up over blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from betacores.divergence import SMALLEST_BETA, Beta, likelihood, response_likelihood, transformed
from betacores.models.auxiliary import SeveralPredictors, gradients_of, row_derivatives, total_hessian
from betacores.models.base import LinearPredictor, Model, Rows, along
from betacores.models.family import ExponentialFamily
from betacores.models.scaled import ScaledPredictor
from betacores.posteriors.structured import (
    family_derivatives,
    family_row_gradients,
    scaled_derivatives,
    scaled_row_gradients,
)

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class Derivatives(NamedTuple):
    """A function's value (), gradient (p) and Hessian (p, p) at one parameter.

    JAX arrays where they are computed, NumPy arrays in double precision where blocks have been added up.
    """

    value: Any
    gradient: Any
    hessian: Any


def likelihood_derivatives(
    model: Model, theta: Float[Array, " p"], rows: Rows, weights: Float[Array, " n"], beta: Beta
) -> Derivatives:
    """Return the derivatives of the weighted (β-)likelihood of rows."""
    if isinstance(model, LinearPredictor):
        z = model.features(rows)
        value, slope, curvature = response_derivatives(model, model.with_offset(along(z, theta), rows.x), rows.y, beta)
        return Derivatives(weights @ value, (weights * slope) @ z, ((weights * curvature)[:, None] * z).T @ z)
    if isinstance(model, ScaledPredictor):
        return Derivatives(*scaled_derivatives(model, theta, rows, weights, beta))
    if isinstance(model, ExponentialFamily):
        return Derivatives(*family_derivatives(model, theta, rows, weights, beta))

    if isinstance(model, SeveralPredictors):
        value, slopes, hessians = row_derivatives(model, partial(response_likelihood, model, beta=beta), theta, rows)
        z = model.features(rows)
        gradient = weights @ gradients_of(model, slopes, z)
        return Derivatives(weights @ value, gradient, total_hessian(model, weights[:, None, None] * hessians, z))

    if hasattr(model, "quadratic") and hasattr(model, "log_temperature"):
        inner, gradients, hessian = model.quadratic(theta, rows)
        value, slope, curvature = _twice(lambda ell: transformed(model, ell, rows.x.shape[-1], beta), inner)
        bent = ((weights * curvature)[:, None] * gradients).T @ gradients
        return Derivatives(weights @ value, (weights * slope) @ gradients, (weights @ slope) * hessian + bent)

    def total(at: Float[Array, " p"]) -> Float[Array, ""]:
        return weights @ jax.vmap(likelihood, (None, None, 0, None))(model, at, rows, beta)

    value, gradient = jax.value_and_grad(total)(theta)
    return Derivatives(value, gradient, jax.hessian(total)(theta))


def row_gradients(model: Model, theta: Float[Array, " p"], rows: Rows, beta: Beta) -> Float[Array, "n p"]:
    """Return the gradient of every row's (β-)likelihood."""
    if isinstance(model, LinearPredictor):
        z = model.features(rows)
        return response_derivatives(model, model.with_offset(along(z, theta), rows.x), rows.y, beta)[1][:, None] * z
    if isinstance(model, SeveralPredictors):
        slopes = row_derivatives(model, partial(response_likelihood, model, beta=beta), theta, rows)[1]
        return gradients_of(model, slopes, model.features(rows))
    if isinstance(model, ScaledPredictor):
        return scaled_row_gradients(model, theta, rows, beta)
    if isinstance(model, ExponentialFamily):
        return family_row_gradients(model, theta, rows, beta)
    if hasattr(model, "quadratic") and hasattr(model, "log_temperature"):
        inner, gradients, _ = model.quadratic(theta, rows)
        return _twice(lambda ell: transformed(model, ell, rows.x.shape[-1], beta), inner)[1][:, None] * gradients
    return jax.vmap(jax.grad(likelihood, argnums=1), (None, None, 0, None))(model, theta, rows, beta)


def response_derivatives(
    model: LinearPredictor, eta: Float[Array, " n"], y: Array | None, beta: Beta
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """Return the likelihood of responses and its first two derivatives by the linear predictor."""
    if beta is not None and hasattr(model, "response_derivatives"):
        return model.response_derivatives(eta, y, jnp.maximum(beta, SMALLEST_BETA))
    return _twice(lambda at: response_likelihood(model, at, y, beta), eta)


def _twice(function: Callable[[Array], Array], at: Float[Array, " n"]) -> tuple[Array, Array, Array]:
    """Return an elementwise function's values, first and second derivatives."""
    ones = jnp.ones_like(at)

    def slope(at: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.jvp(function, (at,), (ones,))[1]

    return function(at), *jax.jvp(slope, (at,), (ones,))


def prior_derivatives(model: Model, theta: Float[Array, " p"]) -> Derivatives:
    """Return the derivatives of the log-prior."""
    value, gradient = jax.value_and_grad(model.log_prior)(theta)
    return Derivatives(value, gradient, jax.hessian(model.log_prior)(theta))


def log_posterior_derivatives(
    model: Model, theta: Float[Array, " p"], rows: Rows, weights: Float[Array, " n"], beta: Beta
) -> Derivatives:
    """Return the derivatives of `Σ_n w_n f_n(θ) + log π0(θ)`."""
    return add(likelihood_derivatives(model, theta, rows, weights, beta), prior_derivatives(model, theta))


def add(a: Derivatives, b: Derivatives) -> Derivatives:
    """Return the derivatives of the sum of two functions."""
    return Derivatives(a.value + b.value, a.gradient + b.gradient, a.hessian + b.hessian)
