"""Value, gradient and Hessian of `Σ_n w_n f_n(θ)`: sums over rows, so they add up over blocks."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from betacores.divergence import Beta, likelihood, response_likelihood
from betacores.models.base import LinearPredictor, Model, Rows


class Derivatives(NamedTuple):
    """A function's value, gradient and Hessian at one parameter."""

    value: Float[Array, ""]
    gradient: Float[Array, " p"]
    hessian: Float[Array, "p p"]


def likelihood_derivatives(
    model: Model, theta: Float[Array, " p"], rows: Rows, weights: Float[Array, " n"], beta: Beta
) -> Derivatives:
    """Return the derivatives of the weighted (β-)likelihood of rows."""
    if not isinstance(model, LinearPredictor):

        def total(at: Float[Array, " p"]) -> Float[Array, ""]:
            return weights @ jax.vmap(likelihood, (None, None, 0, None))(model, at, rows, beta)

        value, gradient = jax.value_and_grad(total)(theta)
        return Derivatives(value, gradient, jax.hessian(total)(theta))

    z = model.features(rows)
    eta = z @ theta
    ones = jnp.ones_like(eta)

    def value_of(at: Float[Array, " n"]) -> Float[Array, " n"]:
        return response_likelihood(model, at, rows.y, beta)

    def slope_of(at: Float[Array, " n"]) -> Float[Array, " n"]:
        return jax.jvp(value_of, (at,), (ones,))[1]

    slope, curvature = jax.jvp(slope_of, (eta,), (ones,))
    # A padded row may hold anything; its zero weight must win over a non-finite product.
    return Derivatives(weights @ value_of(eta), (weights * slope) @ z, ((weights * curvature)[:, None] * z).T @ z)


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
