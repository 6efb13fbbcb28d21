"""Laplace approximations: the mode against SciPy in double precision, weights, vectorisation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.divergence import as_beta
from betacores.models import Rows
from betacores.posteriors import conjugate, laplace

# Compiled once for each model and kind of β: starts are always given.
fit = jax.jit(laplace)


def start_for(case):
    """A point near the clean rows."""
    return jnp.asarray([0.8, -0.5, 0.3][: len(case.prior_mean)], jnp.float32)


def assert_same_gaussian(actual, mean, covariance):
    """Means to a thousandth of a standard deviation; the curvature is that one step earlier, 0.3 % of one away."""
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((actual.mean - mean) / scale, 0.0, atol=1e-3)
    unit = np.outer(scale, scale)
    np.testing.assert_allclose(actual.covariance() / unit, covariance / unit, atol=3e-3)


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.3, 0.8])
def test_mode_and_curvature_are_those_of_the_log_posterior(case, beta):
    found, info = fit(case.model, case.rows, case.weights, as_beta(beta), start_for(case))
    assert info.converged
    assert not info.lifted
    mode = case.mode(case.weights, beta, np.asarray(start_for(case), np.float64))
    gradient, hessian = case.derivatives(mode, case.weights, beta)
    covariance = np.linalg.inv(-hessian)
    assert gradient @ covariance @ gradient < 1e-8, "the reference is itself at a mode"
    assert_same_gaussian(found, mode, covariance)
    # Positive diagonal, lower triangular: what draws are made with.
    np.testing.assert_array_equal(found.factor, np.tril(found.factor))
    assert (np.diagonal(found.factor) > 0).all()


def test_unit_weights_give_the_posterior_of_all_rows(conjugate_case):
    case = conjugate_case
    found, info = fit(case.model, case.rows, jnp.ones(40), None, start_for(case))
    assert info.converged
    assert_same_gaussian(found, *case.exact(np.ones(40)))


def test_laplace_is_exact_where_the_posterior_is_gaussian(conjugate_case):
    case = conjugate_case
    exact = jax.jit(conjugate)(case.model, case.rows, case.weights)
    found, info = fit(case.model, case.rows, case.weights, None, start_for(case))
    assert info.converged
    assert info.steps <= 2, "a quadratic takes one Newton step, and rounding perhaps another"
    assert_same_gaussian(found, np.asarray(exact.mean), np.asarray(exact.covariance()))


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_no_weight_at_all_gives_the_prior(case, beta):
    found, info = fit(case.model, case.rows, jnp.zeros(40), as_beta(beta), start_for(case))
    assert info.converged
    assert_same_gaussian(found, case.prior_mean, case.prior_covariance)


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_integer_weights_are_repeated_rows(case, beta):
    """Twenty rows of weights 1, 2 and 3 are forty rows."""
    counts = np.tile([1, 2, 3, 2], 5)
    half = jax.tree.map(lambda a: a[:20], case.rows)
    repeated = jax.tree.map(lambda a: jnp.repeat(a, counts, axis=0), half)
    weights = jnp.concatenate([jnp.asarray(counts, jnp.float32), jnp.zeros(20)])
    once, info = fit(case.model, case.rows, weights, as_beta(beta), start_for(case))
    again, _ = fit(case.model, repeated, jnp.ones(40), as_beta(beta), start_for(case))
    assert info.converged
    assert_same_gaussian(once, np.asarray(again.mean), np.asarray(again.covariance()))


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_rows_of_weight_zero_may_hold_anything(case, beta):
    weights = case.weights.at[20:].set(0.0)
    clean, _ = fit(case.model, case.rows, weights, as_beta(beta), start_for(case))
    for absurd in (0.0, 1e12):
        y = case.rows.y
        padded = Rows(case.rows.x.at[20:].set(absurd), y.at[20:].set(absurd) if case.name == "linear" else y)
        found, info = fit(case.model, padded, weights, as_beta(beta), start_for(case))
        assert info.converged
        assert_same_gaussian(found, np.asarray(clean.mean), np.asarray(clean.covariance()))


def test_many_coresets_at_once_are_each_what_they_are_alone(case):
    beta = 0.0 if case.name == "linear" else 0.3
    weights = jnp.stack([case.weights, jnp.ones(40), jnp.zeros(40), 50 * case.weights[::-1]])
    over_weights = jax.vmap(partial(laplace, case.model, case.rows), (0, None, None))
    together, info = jax.jit(over_weights)(weights, as_beta(beta), start_for(case))
    for k, alone in enumerate(weights):
        one, how = fit(case.model, case.rows, alone, as_beta(beta), start_for(case))
        assert info.converged[k]
        assert info.steps[k] == how.steps
        assert_same_gaussian(type(one)(together.mean[k], together.factor[k]), one.mean, one.covariance())


def test_outliers_move_the_classical_mode_and_not_the_robust_one(make_case):
    """Four of 40 rows are nine away: the classical mean follows them, the β-posterior's does not."""
    case, clean = make_case("gaussian"), make_case("gaussian", outliers=0)
    weights = jnp.ones(40).at[36:].set(0.0)
    expected, covariance = clean.exact(weights)
    classical, _ = fit(case.model, case.rows, jnp.ones(40), None, start_for(case))
    robust, _ = fit(case.model, case.rows, jnp.ones(40), as_beta(0.3), start_for(case))
    scale = np.sqrt(np.diag(covariance))
    assert np.abs((classical.mean - expected) / scale).max() > 3
    assert np.abs((robust.mean - expected) / scale).max() < 1
