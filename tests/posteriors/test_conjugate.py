"""Exact posteriors against their closed form in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows
from betacores.posteriors import conjugate, has_conjugate

exact = jax.jit(conjugate)


def assert_same_gaussian(actual, mean, covariance):
    """Means to a thousandth of a standard deviation, covariances to 1e-4 of their scale."""
    scale = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose((actual.mean - mean) / scale, 0.0, atol=1e-3)
    unit = np.outer(scale, scale)
    np.testing.assert_allclose(actual.covariance() / unit, covariance / unit, atol=1e-4)


def test_unit_weights_give_the_posterior_of_all_rows(conjugate_case):
    case = conjugate_case
    assert_same_gaussian(exact(case.model, case.rows, jnp.ones(40)), *case.exact(np.ones(40)))


def test_weights_enter_linearly(conjugate_case):
    case = conjugate_case
    assert_same_gaussian(exact(case.model, case.rows, case.weights), *case.exact(case.weights))


def test_no_weight_at_all_gives_the_prior(conjugate_case):
    case = conjugate_case
    assert_same_gaussian(exact(case.model, case.rows, jnp.zeros(40)), case.prior_mean, case.prior_covariance)


def test_integer_weights_are_repeated_rows_and_zero_weights_absent_ones(conjugate_case):
    case = conjugate_case
    counts = np.tile([1, 0, 2, 1], 10)
    repeated = jax.tree.map(lambda a: jnp.repeat(a, counts, axis=0), case.rows)
    once = exact(case.model, case.rows, jnp.asarray(counts, jnp.float32))
    again = exact(case.model, repeated, jnp.ones(len(repeated.x)))
    assert_same_gaussian(once, np.asarray(again.mean), np.asarray(again.covariance()))


@pytest.mark.parametrize("covariance", [2.5, [0.5, 3.0]], ids=["number", "vector"])
def test_independent_columns_are_as_many_one_dimensional_problems(covariance):
    x = np.random.default_rng(0).normal(1.0, 2.0, size=(15, 2)).astype(np.float32)
    posterior = conjugate(GaussianMean(covariance), Rows(jnp.asarray(x)), jnp.ones(15))
    variance = 1 / (1 + 15 / np.broadcast_to(covariance, 2))
    mean = variance * x.sum(0) / np.broadcast_to(covariance, 2)
    assert_same_gaussian(posterior, mean, np.diag(variance))


def test_very_many_rows_keep_their_digits():
    """Weights of a million: the posterior's standard deviation is a thousandth, its mean far from zero."""
    x = np.array([[100.0, -7.0], [101.0, -7.5]], np.float32)
    posterior = conjugate(GaussianMean(), Rows(jnp.asarray(x)), jnp.asarray([1e6, 2e6]))
    expected = (1e6 * x[0] + 2e6 * x[1]) / (1 + 3e6)
    np.testing.assert_allclose(posterior.mean, expected, rtol=3e-7)
    np.testing.assert_allclose(posterior.covariance(), np.eye(2) / (1 + 3e6), rtol=1e-5, atol=1e-12)


def test_many_coresets_at_once_are_each_what_they_are_alone(conjugate_case):
    case = conjugate_case
    weights = jnp.stack([case.weights, jnp.ones(40), jnp.zeros(40), case.weights[::-1]])
    together = jax.jit(jax.vmap(conjugate, (None, None, 0)))(case.model, case.rows, weights)
    for k, alone in enumerate(weights):
        one = exact(case.model, case.rows, alone)
        np.testing.assert_allclose(together.mean[k], one.mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(together.factor[k], one.factor, rtol=1e-4, atol=1e-5)


def test_models_tell_whether_they_are_conjugate():
    assert has_conjugate(GaussianMean())
    assert has_conjugate(LinearRegression())
    assert not has_conjugate(LogisticRegression())
