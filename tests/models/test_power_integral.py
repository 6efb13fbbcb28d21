"""Power integrals of the models against quadrature and sums in double precision."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows

BETAS = pytest.mark.parametrize("beta", [0.01, 0.1, 0.5, 1.0, 2.0])


@BETAS
@pytest.mark.parametrize("variance", [0.3, 1.0, 40.0])
def test_gaussian_in_one_dimension(beta, variance):
    model, scale = GaussianMean(variance), np.sqrt(variance)
    theta, row = jnp.asarray([0.7]), Rows(jnp.asarray([-2.0]))
    expected, _ = integrate.quad(
        lambda v: stats.norm.pdf(v, 0.7, scale) ** (1 + beta), 0.7 - 12 * scale, 0.7 + 12 * scale
    )
    np.testing.assert_allclose(model.power_integral(theta, row, jnp.float32(beta)), expected, rtol=1e-5)
    np.testing.assert_allclose(model.log_temperature(1, jnp.float32(beta)), np.log(expected), rtol=1e-5, atol=1e-6)


@BETAS
def test_gaussian_in_two_correlated_dimensions(beta):
    covariance = np.array([[2.0, 0.9], [0.9, 0.6]])
    precision, norm = np.linalg.inv(covariance), 1 / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
    (a, b), (_, c) = precision

    def power(u, v):
        return (norm * np.exp(-0.5 * (a * u * u + 2 * b * u * v + c * v * v))) ** (1 + beta)

    reach = 9 * np.sqrt(np.diag(covariance))
    limits = [(-reach[0], reach[0]), (-reach[1], reach[1])]
    expected, _ = integrate.nquad(power, limits, opts={"epsrel": 1e-7, "epsabs": 1e-12})
    theta, row = jnp.asarray([5.0, -3.0]), Rows(jnp.asarray([1.0, 2.0]))
    actual = GaussianMean(covariance).power_integral(theta, row, jnp.float32(beta))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@BETAS
def test_gaussian_with_one_variance_a_column_is_a_product_of_single_columns(beta):
    variances = np.array([0.5, 2.0, 9.0])
    parts = [integrate.quad(lambda t, s=s: stats.norm.pdf(t, 0, s) ** (1 + beta), -60, 60)[0] for s in variances**0.5]
    for covariance in (variances, np.diag(variances)):
        actual = GaussianMean(covariance).power_integral(jnp.zeros(3), Rows(jnp.ones(3)), jnp.float32(beta))
        np.testing.assert_allclose(actual, np.prod(parts), rtol=1e-5)


@BETAS
@pytest.mark.parametrize("noise", [0.2, 1.0, 7.0])
def test_linear_regression(beta, noise):
    theta, row = jnp.asarray([0.5, -1.0]), Rows(jnp.asarray([2.0]), jnp.asarray(4.0))
    mean = 0.5 * 2.0 - 1.0
    expected, _ = integrate.quad(
        lambda v: stats.norm.pdf(v, mean, noise) ** (1 + beta), mean - 12 * noise, mean + 12 * noise
    )
    model = LinearRegression(noise)
    np.testing.assert_allclose(model.power_integral(theta, row, jnp.float32(beta)), expected, rtol=1e-5)
    np.testing.assert_allclose(model.log_temperature(1, jnp.float32(beta)), np.log(expected), rtol=1e-5, atol=1e-6)


@BETAS
def test_logistic_regression_sums_over_both_labels(beta):
    eta = np.array([-60.0, -5.0, -0.3, 0.0, 0.3, 5.0, 60.0])
    expected = special.expit(eta) ** (1 + beta) + special.expit(-eta) ** (1 + beta)
    model = LogisticRegression(intercept=False)
    actual = [
        model.power_integral(jnp.ones(1), Rows(jnp.asarray([v], jnp.float32), jnp.ones(())), jnp.float32(beta))
        for v in eta
    ]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("model", [GaussianMean(), LinearRegression(1.0), LogisticRegression()], ids=lambda m: m.name)
def test_at_beta_zero_the_density_integrates_to_one(model):
    rows = Rows(jnp.asarray([0.4, -2.0]), None if model.name == "gaussian-mean" else jnp.asarray(1.0))
    theta = jnp.ones(model.parameter_count(2))
    np.testing.assert_allclose(model.power_integral(theta, rows, jnp.float32(0.0)), 1.0, rtol=1e-6)
