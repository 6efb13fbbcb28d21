"""The damped Newton search: bad starts, warm starts, giving up, and curvature that is not definite."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.divergence import as_beta
from betacores.models import GaussianMean, LogisticRegression, Rows
from betacores.posteriors import laplace
from betacores.posteriors.laplace import TOLERANCE, accepts, next_damping

# The number of steps is an ordinary argument here, so that one compilation serves all.
fit = jax.jit(laplace)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
@pytest.mark.parametrize("place", [(30.0, 30.0, 30.0), (-50.0, 20.0, 0.0), (0.0, 0.0, 0.0), (1e3, -1e3, 1e3)])
def test_the_classical_mode_is_found_from_bad_starts(logistic, scale, place):
    """The log-posterior is concave: one mode, whatever the start, though the curvature there is all but nothing."""
    case = logistic
    weights = scale * case.weights
    mode = case.mode(weights, 0.0, np.array([1.6, -1.0, 0.6]))
    covariance = np.linalg.inv(-case.derivatives(mode, weights, 0.0)[1])
    found, info = fit(case.model, case.rows, weights, None, jnp.asarray(place), max_steps=100)
    assert info.converged
    assert info.decrement <= TOLERANCE
    np.testing.assert_allclose((found.mean - mode) / np.sqrt(np.diag(covariance)), 0.0, atol=2e-3)


def test_a_warm_start_needs_fewer_steps(logistic):
    case = logistic
    before, cold = fit(case.model, case.rows, case.weights, None, jnp.zeros(3), max_steps=100)
    weights = case.weights.at[3].add(0.2)
    after, warm = fit(case.model, case.rows, weights, None, before.mean, max_steps=100)
    assert warm.converged
    assert warm.steps < cold.steps
    again, done = fit(case.model, case.rows, weights, None, after.mean, max_steps=100)
    assert done.steps <= 1
    np.testing.assert_allclose(again.mean, after.mean, atol=1e-3)


def test_giving_up_is_reported(logistic):
    case = logistic
    start = jnp.full(3, 20.0)
    for steps in (0, 1):
        found, info = fit(case.model, case.rows, case.weights, None, start, max_steps=steps)
        assert not info.converged
        assert info.steps == steps
        assert np.isfinite(found.mean).all()
        assert np.isfinite(found.factor).all()
    assert fit(case.model, case.rows, case.weights, None, start, max_steps=100)[1].converged


def test_search_never_lowers_the_log_posterior(logistic):
    """More steps, no worse a place."""
    case = logistic
    start = jnp.asarray([20.0, -20.0, 20.0])
    values = []
    for steps in (0, 1, 2, 4, 8):
        found, _ = fit(case.model, case.rows, case.weights, as_beta(0.4), start, max_steps=steps)
        values.append(case.log_posterior(np.asarray(found.mean, np.float64), case.weights, 0.4))
    assert all(later >= earlier - 1e-4 * abs(earlier) for earlier, later in pairwise(values))
    assert values[-1] > values[0]


def two_clusters():
    """Rows around (±3, 0): between them the β-posterior curves upwards along the first axis."""
    x = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    x[:, 0] += np.repeat([3.0, -3.0], 50)
    return GaussianMean(), Rows(jnp.asarray(x)), jnp.ones(100), as_beta(0.5)


@pytest.mark.parametrize("steps", [0, 1])
def test_between_two_clusters_the_curvature_is_made_definite(steps):
    assert fit(*two_clusters(), jnp.zeros(2), max_steps=0)[1].lifted, "the start is a saddle"
    found, info = fit(*two_clusters(), jnp.zeros(2), max_steps=steps)
    assert not info.converged
    assert np.isfinite(found.factor).all()
    np.testing.assert_array_equal(found.factor, np.tril(found.factor))
    assert (np.diagonal(found.factor) > 0).all()
    eigenvalues = np.linalg.eigvalsh(np.linalg.inv(np.asarray(found.covariance(), np.float64)))
    assert eigenvalues.min() >= 1 - 1e-3, "nowhere flatter than the prior"
    assert np.isfinite(found.draw(jax.random.key(0), 100)).all()


def test_from_a_saddle_the_search_reaches_one_of_the_clusters():
    found, info = fit(*two_clusters(), jnp.asarray([0.1, 0.0]), max_steps=100)
    assert info.converged
    assert not info.lifted
    assert abs(abs(float(found.mean[0])) - 3) < 0.5


def test_collinear_columns_leave_the_prior_to_decide():
    """Two equal columns: their difference is known from the prior alone, with its variance of 2."""
    x = np.repeat(np.random.default_rng(0).normal(size=(100, 1)), 2, axis=1).astype(np.float32)
    y = np.where(np.arange(100) % 3 == 0, 1.0, -1.0).astype(np.float32)
    found, info = fit(LogisticRegression(intercept=False), Rows(jnp.asarray(x), jnp.asarray(y)), jnp.ones(100))
    assert info.converged
    covariance = np.asarray(found.covariance(), np.float64)
    difference = np.array([1.0, -1.0])
    assert difference @ covariance @ difference == pytest.approx(2.0, rel=1e-3)
    assert abs(difference @ np.asarray(found.mean)) < 1e-3


def test_steps_are_judged_up_to_rounding():
    value = jnp.float32(-1000.0)
    assert accepts(value, value)
    assert accepts(value, value + 1)
    assert accepts(value, value - 1e-4)
    assert not accepts(value, value - 1)
    assert not accepts(value, jnp.float32(jnp.nan))
    assert not accepts(value, jnp.float32(jnp.inf))


def test_damping_rises_after_failures_and_vanishes_after_successes():
    damping = jnp.float32(0.0)
    seen = []
    for better in [False] * 3 + [True] * 6:
        damping = next_damping(damping, jnp.asarray(better))
        seen.append(float(damping))
    assert 0 < seen[0] < seen[1] < seen[2] > seen[3] > seen[4] > seen[-1] == 0
