"""Gradients and Hessians of weighted (β-)likelihoods against finite differences in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.divergence import as_beta
from betacores.models import Model, Rows
from betacores.posteriors.derivatives import (
    Derivatives,
    add,
    likelihood_derivatives,
    log_posterior_derivatives,
    prior_derivatives,
)

posterior_derivatives = jax.jit(log_posterior_derivatives)
likelihood_part = jax.jit(likelihood_derivatives)
prior_part = jax.jit(prior_derivatives)
BETAS = pytest.mark.parametrize("beta", [0.0, 1e-6, 0.05, 0.5, 1.5])


def assert_close(actual, expected, rtol=3e-5):
    """Relative to the largest entry: single precision knows sums of rows to that."""
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@BETAS
@pytest.mark.parametrize("place", ["random", "zero"])
def test_derivatives_agree_with_finite_differences(case, beta, place):
    """At zero too, where every search begins: functions of |η| must not have a corner there."""
    p = len(case.prior_mean)
    theta = np.zeros(p) if place == "zero" else np.random.default_rng(1).normal(size=p).astype(np.float32)
    gradient, hessian = case.derivatives(theta, case.weights, beta)
    args = (case.rows, case.weights, as_beta(beta))
    actual = posterior_derivatives(case.model, jnp.asarray(theta, jnp.float32), *args)
    assert_close(actual.gradient, gradient)
    assert_close(actual.hessian, hessian)
    np.testing.assert_allclose(actual.hessian, actual.hessian.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.5, 1.5])
def test_values_differ_between_parameters_as_they_should(case, beta):
    p = len(case.prior_mean)
    here, there = np.full(p, 0.25, np.float32), np.linspace(-0.5, 1.0, p).astype(np.float32)
    expected = case.log_posterior(there, case.weights, beta) - case.log_posterior(here, case.weights, beta)
    args = (case.rows, case.weights, as_beta(beta))
    values = [posterior_derivatives(case.model, jnp.asarray(at), *args).value for at in (here, there)]
    np.testing.assert_allclose(values[1] - values[0], expected, rtol=1e-4)


@pytest.mark.parametrize("absurd", [1e12, -1e12])
def test_rows_of_weight_zero_change_nothing_whatever_they_hold(case, absurd):
    theta = jnp.asarray(np.linspace(-0.5, 1.0, len(case.prior_mean)), jnp.float32)
    weights = case.weights.at[::3].set(0.0)
    y = case.rows.y.at[::3].set(absurd) if case.name == "linear" else case.rows.y
    spoiled = Rows(case.rows.x.at[::3].set(absurd), y)
    for beta in (0.0, 0.5):
        clean = posterior_derivatives(case.model, theta, case.rows, weights, as_beta(beta))
        padded = posterior_derivatives(case.model, theta, spoiled, weights, as_beta(beta))
        for one, other in zip(clean, padded, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_a_model_without_shortcuts_has_the_same_derivatives(make_case, beta):
    """The Gaussian's likelihood alone, handed to automatic differentiation."""
    case = make_case("gaussian")

    class Plain(Model):
        name = "plain"

        def __init__(self, inner):
            self.inner = inner

        def parameter_count(self, columns):
            return columns

        def log_likelihood(self, theta, row):
            return self.inner.log_likelihood(theta, row)

        def log_prior(self, theta):
            return self.inner.log_prior(theta)

        def power_integral(self, theta, row, beta):
            return self.inner.power_integral(theta, row, beta)

    theta = np.array([0.3, -0.2], np.float32)
    # Without a temperature the likelihood is not divided by its power integral.
    row = Rows(case.rows.x[0])
    integral = float(case.model.power_integral(jnp.asarray(theta), row, jnp.float32(beta)))
    prior = case.derivatives(theta, np.zeros(40), beta)
    whole = case.derivatives(theta, case.weights, beta)
    gradient, hessian = (integral * (both - alone) + alone for both, alone in zip(whole, prior, strict=True))
    actual = posterior_derivatives(Plain(case.model), jnp.asarray(theta), case.rows, case.weights, as_beta(beta))
    assert_close(actual.gradient, gradient)
    assert_close(actual.hessian, hessian)


def test_sums_over_blocks_and_prior_add_up(case):
    theta = jnp.full(len(case.prior_mean), 0.3)
    first = case.weights.at[15:].set(0.0)
    blocks = [likelihood_part(case.model, theta, case.rows, part, None) for part in (first, case.weights - first)]
    total = add(add(*blocks), prior_part(case.model, theta))
    whole = posterior_derivatives(case.model, theta, case.rows, case.weights, None)
    for one, other in zip(total, whole, strict=True):
        assert_close(one, other, 1e-5)


def test_derivatives_of_the_prior_are_those_of_a_gaussian(case):
    theta = np.linspace(-1.0, 2.0, len(case.prior_mean)).astype(np.float32)
    away, precision = theta - case.prior_mean, np.linalg.inv(case.prior_covariance)
    actual = prior_part(case.model, jnp.asarray(theta))
    assert isinstance(actual, Derivatives)
    np.testing.assert_allclose(actual.value, -0.5 * away @ precision @ away, rtol=1e-5)
    assert_close(actual.gradient, -precision @ away, 1e-5)
    assert_close(actual.hessian, -precision, 1e-5)
