"""What every model must meet: β-likelihoods that tend to the log-likelihood, scores that average one, no overflow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.divergence import likelihoods, log_scores
from betacores.posteriors.derivatives import likelihood_derivatives

derivatives, matrix, scores_of = jax.jit(likelihood_derivatives), jax.jit(likelihoods), jax.jit(log_scores)


def check_small_betas(model, thetas, rows):
    """Assert that the β-likelihood tends to the log-likelihood. In double precision."""
    exact = matrix(model, thetas, rows, None)
    errors = [np.abs(matrix(model, thetas, rows, jnp.asarray(beta)) - exact).max() for beta in (1e-3, 1e-5)]
    assert errors[1] < 1e-3
    assert errors[1] < errors[0] / 50


def check_beta_zero(model, thetas, rows):
    """Assert that a traced β of zero gives the log-likelihood, but for a constant."""
    exact, actual = (np.asarray(matrix(model, thetas, rows, beta)) for beta in (None, jnp.float32(0.0)))
    np.testing.assert_allclose(actual - actual.mean(), exact - exact.mean(), rtol=1e-4, atol=1e-4)


def check_scores_average_one(model, theta, rows, beta):
    """Assert it of rows that were drawn from the model."""
    scores = np.exp(np.asarray(scores_of(model, theta, rows, jnp.float32(beta)), float))
    assert scores.mean() == pytest.approx(1, abs=4 * scores.std() / np.sqrt(len(scores)))


def check_finite(model, theta, rows, beta):
    """Assert that the sum over rows and its derivatives are numbers."""
    found = derivatives(model, theta, rows, jnp.ones(len(rows.x)), beta)
    assert all(np.isfinite(part).all() for part in found)
