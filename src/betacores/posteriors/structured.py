"""Derivatives of `Σ_n w_n f_n(θ)` for models with a structure, which cost a fraction of those by brute force.

A regression with unknown scale enters through two numbers a row, the linear predictor and the logarithm `a` of the
scale: five derivatives by these, each a function of the row, and three matrix products make gradient and Hessian.

A density of an exponential family has `ℓ_n = ν(θ)·T_n`, with the statistics `T` of a row, and a power integral that is
the same for all rows. With `f = g(ℓ) − h(θ)` and `J = ∂ν/∂θ`,

    ∇ Σ w f = Jᵀ Σ w g' T − (Σ w) ∇h,     ∇² Σ w f = Jᵀ (Σ w g'' T Tᵀ) J + ∇²[ν(θ)·Σ w g' T] − (Σ w) ∇²h,

in which the sums over rows are matrix products and all else is done once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from betacores.divergence import FLOOR, Beta, relative, transformed
from betacores.models.base import Rows
from betacores.models.family import ExponentialFamily
from betacores.models.scaled import ScaledPredictor, held

if TYPE_CHECKING:
    from jaxtyping import Array, Float


def scaled_derivatives(
    model: ScaledPredictor, theta: Float[Array, " p"], rows: Rows, weights: Float[Array, " n"], beta: Beta
) -> tuple[Array, Array, Array]:
    """Return value, gradient and Hessian of the weighted likelihood of a regression with unknown scale."""
    z, eta, a = _entry(model, theta, rows)
    value = _response_likelihood(model, eta, a, rows.y, beta)
    (by_eta, by_a), (eta_eta, eta_a) = jax.jvp(lambda u: _slopes(model, u, a, rows.y, beta), (eta,), (_ones(eta),))
    gradient = (weights * by_eta) @ z
    hessian = ((weights * eta_eta)[:, None] * z).T @ z
    if model.known is None:
        a_a = jax.jvp(lambda u: _slopes(model, eta, u, rows.y, beta)[1], (a,), (_ones(a),))[1]
        slope, bend = _held(model, theta)
        mixed = slope * ((weights * eta_a) @ z)
        gradient = jnp.append(gradient, slope * (weights @ by_a))
        corner = (slope**2 * (weights @ a_a) + bend * (weights @ by_a))[None, None]
        hessian = jnp.block([[hessian, mixed[:, None]], [mixed[None, :], corner]])
    return weights @ value, gradient, hessian


def scaled_row_gradients(
    model: ScaledPredictor, theta: Float[Array, " p"], rows: Rows, beta: Beta
) -> Float[Array, "n p"]:
    """Return the gradient of every row's likelihood."""
    z, eta, a = _entry(model, theta, rows)
    by_eta, by_a = _slopes(model, eta, a, rows.y, beta)
    gradients = by_eta[:, None] * z
    if model.known is not None:
        return gradients
    return jnp.column_stack([gradients, _held(model, theta)[0] * by_a])


def family_derivatives(
    model: ExponentialFamily, theta: Float[Array, " p"], rows: Rows, weights: Float[Array, " n"], beta: Beta
) -> tuple[Array, Array, Array]:
    """Return value, gradient and Hessian of the weighted likelihood of an exponential family's rows."""
    columns = rows.x.shape[-1]
    statistics = model.statistics(rows)

    def natural(at: Float[Array, " p"]) -> Float[Array, " q"]:
        return model.natural(at, columns)

    log_likelihood = model.log_likelihoods(theta[None], rows)[:, 0]
    value, slope, bend = _of_log_likelihood(model, log_likelihood, theta, columns, beta)
    jacobian = jax.jacfwd(natural)(theta)
    total = (weights * slope) @ statistics
    gradient = total @ jacobian
    hessian = jax.hessian(lambda at: natural(at) @ total)(theta)
    if beta is not None:
        moments = ((weights * bend)[:, None] * statistics).T @ statistics
        hessian = hessian + jacobian.T @ moments @ jacobian
        if not hasattr(model, "log_temperature"):
            mass = weights.sum()
            gradient = gradient + mass * jax.grad(_integral_part, 1)(model, theta, columns, beta)
            hessian = hessian + mass * jax.hessian(_integral_part, 1)(model, theta, columns, beta)
    return weights @ value, gradient, hessian


def family_row_gradients(
    model: ExponentialFamily, theta: Float[Array, " p"], rows: Rows, beta: Beta
) -> Float[Array, "n p"]:
    """Return the gradient of every row's likelihood."""
    columns = rows.x.shape[-1]
    log_likelihood = model.log_likelihoods(theta[None], rows)[:, 0]
    _, slope, _ = _of_log_likelihood(model, log_likelihood, theta, columns, beta)
    jacobian = jax.jacfwd(lambda at: model.natural(at, columns))(theta)
    gradients = (slope[:, None] * model.statistics(rows)) @ jacobian
    if beta is not None and not hasattr(model, "log_temperature"):
        gradients = gradients + jax.grad(_integral_part, 1)(model, theta, columns, beta)
    return gradients


def _ones(a: Array) -> Array:
    return jnp.ones_like(a)


def _entry(model: ScaledPredictor, theta: Float[Array, " p"], rows: Rows) -> tuple[Array, Array, Array]:
    z = model.features(rows)
    coefficients, a = model.split(theta)
    eta = z @ coefficients
    return z, eta, jnp.broadcast_to(a, eta.shape)


def _held(model: ScaledPredictor, theta: Float[Array, " p"]) -> tuple[Array, Array]:
    """Return the first two derivatives of the scale as it is held within reach: 1 and 0 but at the ends."""
    slope = jax.grad(lambda a: held(a, model.log_typical()))
    return slope(theta[-1]), jax.grad(slope)(theta[-1])


def _response_likelihood(model: ScaledPredictor, eta: Array, a: Array, y: Array, beta: Beta) -> Array:
    log_likelihood = model.response_log_likelihood(eta, a, y)
    if beta is None or hasattr(model, "log_temperature"):
        return transformed(model, log_likelihood, 0, beta)
    return relative(model, jnp.maximum(log_likelihood, FLOOR), model.log_integral(a, beta), 0, beta)


def _slopes(model: ScaledPredictor, eta: Array, a: Array, y: Array, beta: Beta) -> tuple[Array, Array]:
    """Return the derivatives by linear predictor and logarithm of the scale, elementwise."""
    by_eta = jax.jvp(lambda u: _response_likelihood(model, u, a, y, beta), (eta,), (_ones(eta),))[1]
    by_a = jax.jvp(lambda u: _response_likelihood(model, eta, u, y, beta), (a,), (_ones(a),))[1]
    return by_eta, by_a


def _of_log_likelihood(
    model: ExponentialFamily, log_likelihood: Float[Array, " n"], theta: Float[Array, " p"], columns: int, beta: Beta
) -> tuple[Array, Array, Array]:
    """Return `f`, and its first two derivatives by `ℓ`."""

    def value(ell: Array) -> Array:
        if beta is None or hasattr(model, "log_temperature"):
            return transformed(model, ell, columns, beta)
        return relative(model, jnp.maximum(ell, FLOOR), model.log_integral(theta, columns, beta), columns, beta)

    def slope(ell: Array) -> Array:
        return jax.jvp(value, (ell,), (_ones(ell),))[1]

    return value(log_likelihood), *jax.jvp(slope, (log_likelihood,), (_ones(log_likelihood),))


def _integral_part(model: ExponentialFamily, theta: Float[Array, " p"], columns: int, beta: Array) -> Array:
    """Return `−h(θ)` up to a constant: what the power integral takes from every row."""
    return relative(model, jnp.zeros(()), model.log_integral(theta, columns, beta), columns, beta)
