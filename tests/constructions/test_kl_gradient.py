"""The gradient the construction steps along is the gradient of `KL(π_w ‖ π)`.

On the conjugate Gaussian the divergence is known in closed form, so the paper's formula `−Cov_w[f, (1−w)ᵀf]` can be
held against finite differences, and the Monte-Carlo estimate of the compiled code against the formula.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.constructions.incremental import State, _advance
from betacores.models import GaussianMean, Rows
from betacores.tangent import vectors

ROWS, COLUMNS = 40, 3
rng = np.random.default_rng(3)
X = rng.normal(0.5, 1, (ROWS, COLUMNS)).astype(np.float32).astype(np.float64)
MEMBERS = np.array([4, 11, 17, 30])
WEIGHTS = np.zeros(ROWS)
WEIGHTS[MEMBERS] = [1.5, 6.0, 0.4, 3.0]


def posterior(weights):
    """Mean and variance (the same in every direction) of the posterior of a mean, prior N(0, I)."""
    precision = 1 + weights.sum()
    return weights @ X / precision, 1 / precision


def divergence(weights):
    """`KL(π_w ‖ π_1)`, in closed form."""
    (mean, variance), (full_mean, full_variance) = posterior(weights), posterior(np.ones(ROWS))
    ratio = variance / full_variance
    away = mean - full_mean
    return 0.5 * (COLUMNS * (ratio - 1 - np.log(ratio)) + away @ away / full_variance)


def formula(weights):
    """`−Cov_w[f, (1−w)ᵀf]` with the exact moments of `f_n = −½‖x_n − θ‖²` under a Gaussian."""
    mean, variance = posterior(weights)
    away = X - mean
    covariance = variance * away @ away.T + COLUMNS * variance**2 / 2
    return -covariance @ (1 - weights)


@pytest.mark.parametrize("weights", [WEIGHTS, np.zeros(ROWS), np.full(ROWS, 0.5), np.ones(ROWS)])
def test_formula_is_the_gradient_of_the_divergence(weights):
    step = 1e-5 * np.eye(ROWS)
    slopes = [(divergence(weights + e) - divergence(weights - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(formula(weights), slopes, rtol=1e-5, atol=1e-6)


def test_inner_products_of_centred_vectors_are_covariances():
    """`−(1/S) ḡ·R` over very many draws of the exact posterior."""
    draws = 40_000
    mean, variance = posterior(WEIGHTS)
    thetas = mean + np.sqrt(variance) * np.random.default_rng(0).normal(size=(draws, COLUMNS))
    g = np.asarray(vectors(GaussianMean(), jnp.asarray(thetas, jnp.float32), Rows(jnp.asarray(X, jnp.float32)), None))
    terms = -g * ((1 - WEIGHTS) @ g)
    error = terms.std(axis=1) / np.sqrt(draws)
    assert np.all(np.abs(terms.mean(axis=1) - formula(WEIGHTS)) < 4.5 * error)


CAPACITY, RATE, DRAWS = 6, 1e-4, 10


@pytest.fixture(scope="module")
def gradients():
    """Gradients the compiled step took, one a key: plain SGD, one step of a tiny rate, from the same coreset."""
    capacity_ids = np.pad(MEMBERS, (0, CAPACITY - len(MEMBERS)), constant_values=-1)
    places = np.zeros((CAPACITY, COLUMNS))
    places[: len(MEMBERS)] = X[MEMBERS]
    start = np.pad(WEIGHTS[MEMBERS], (0, CAPACITY - len(MEMBERS)))
    state = State(
        jnp.asarray(capacity_ids, jnp.int32),
        Rows(jnp.asarray(places, jnp.float32)),
        jnp.asarray(start, jnp.float32),
        jnp.int32(len(MEMBERS)),
        jnp.zeros(COLUMNS),
    )
    rows, nobody = Rows(jnp.asarray(X, jnp.float32)), jnp.zeros(ROWS, bool)

    def gradient(key):
        # The undecorated step: compiler options belong to the outermost compilation only.
        after = _advance.__wrapped__(
            GaussianMean(),
            rows,
            nobody,
            state,
            key,
            rates=jnp.full(1, RATE),
            beta=None,
            sampler_beta=None,
            exact=True,
            draws=DRAWS,
            batch_select=10,
            batch_optimise=10,
            optimiser="sgd",
        )
        return (state.weights - after.weights) / RATE

    return np.asarray(jax.jit(jax.vmap(gradient))(jax.random.split(jax.random.key(0), 8000)), np.float64)


def test_step_follows_an_unbiased_estimate_of_the_gradient(gradients):
    """With the mean estimated from the same S draws, `1/S` times the sum has expectation `(1 − 1/S)` Cov."""
    expected = (1 - 1 / DRAWS) * formula(WEIGHTS)[MEMBERS]
    found = gradients[:, : len(MEMBERS)]
    error = found.std(axis=0) / np.sqrt(len(found))
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - expected), 4.5 * error + 1e-3 * np.abs(expected))
    # The test has teeth: the error bars are small against the gradient itself.
    assert np.all(error < 0.1 * np.abs(expected).max())


def test_empty_places_have_no_gradient(gradients):
    assert not gradients[:, len(MEMBERS) :].any()
