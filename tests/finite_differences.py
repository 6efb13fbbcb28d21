"""Derivatives of a model's weighted likelihood against differences of its values, all computed at once."""

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import likelihood
from betacores.posteriors.derivatives import likelihood_derivatives, row_gradients

STEP = 1e-4


def check_derivatives(model, theta, rows, weights, beta):
    """Assert that gradients and Hessian are those of the sum of the rows' likelihoods. In double precision."""
    p = len(theta)
    steps = STEP * np.eye(p)
    one = [theta, *(theta + steps), *(theta - steps)]
    two = [theta + a * e + b * d for e in steps for d in steps for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
    signs = np.tile([1.0, -1.0, -1.0, 1.0], (p * p, 1))

    def total(at):
        return weights @ jax.vmap(likelihood, (None, None, 0, None))(model, at, rows, beta)

    values = np.asarray(jax.jit(jax.vmap(total))(jnp.asarray(np.stack([*one, *two]))))
    assert values.dtype == np.float64
    value, gradient, hessian = jax.jit(likelihood_derivatives)(model, jnp.asarray(theta), rows, weights, beta)
    each = jax.jit(row_gradients)(model, jnp.asarray(theta), rows, beta)
    slopes = (values[1 : p + 1] - values[p + 1 : 2 * p + 1]) / (2 * STEP)
    bends = (signs * values[2 * p + 1 :].reshape(p * p, 4)).sum(1).reshape(p, p) / (4 * STEP**2)
    np.testing.assert_allclose(value, values[0], rtol=1e-9)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weights @ each, gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hessian, bends, rtol=1e-4, atol=2e-4 * max(1.0, np.abs(bends).max() ** 0.5))


def check_against_slopes(model, theta, rows, weights, beta, *, rtol, atol):
    """Assert the same, sharper, the Hessian by differences of gradients; `atol` is of gradient and Hessian."""
    step, derivatives = 1e-5, jax.jit(likelihood_derivatives)
    found = derivatives(model, theta, rows, weights, beta)
    around = [
        [derivatives(model, theta + side * step * e, rows, weights, beta) for side in (1, -1)]
        for e in np.eye(len(theta))
    ]
    slope = [(there.value - here.value) / (2 * step) for there, here in around]
    bend = [(there.gradient - here.gradient) / (2 * step) for there, here in around]
    np.testing.assert_allclose(found.gradient, slope, rtol=rtol, atol=atol[0])
    np.testing.assert_allclose(found.hessian, bend, rtol=rtol, atol=atol[1])
    gradients = jax.jit(row_gradients)(model, theta, rows, beta)
    np.testing.assert_allclose(weights @ gradients, found.gradient, rtol=1e-8, atol=1e-9)
