"""Gaussians by their precision's factor: lifting, draws, and the KL divergence between two of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from betacores.posteriors import Gaussian, gaussian_kl
from betacores.posteriors.gaussian import factorise

factor_of = jax.jit(factorise)


def rotated(values, seed=0):
    """A symmetric matrix with these eigenvalues, and its eigenvectors."""
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    return (vectors * np.asarray(values)) @ vectors.T


def assert_is_a_factor(factor):
    assert np.isfinite(factor).all()
    np.testing.assert_array_equal(factor, np.tril(factor))
    assert (np.diagonal(factor) > 0).all()


@pytest.mark.parametrize("values", [(5.0, 0.5, 2.0), (1e-3, 1e3, 1.0), (7.0, 7.0, 7.0)])
def test_definite_matrices_are_factorised_as_they_are(values):
    """Even where eigenvalues lie below the floor, which is for the others only."""
    precision = rotated(values)
    factor, lifted = factor_of(jnp.asarray(precision, jnp.float32), jnp.float32(4.0))
    assert not lifted
    assert_is_a_factor(factor)
    np.testing.assert_allclose(factor, np.linalg.cholesky(precision), rtol=2e-4, atol=1e-5 * np.sqrt(max(values)))


def test_columns_of_very_different_scale_are_not_taken_for_indefinite():
    scales = np.array([1e-8, 1.0, 1e8])
    precision = rotated((1.0, 2.0, 3.0)) * np.outer(scales, scales)
    factor, lifted = factor_of(jnp.asarray(precision, jnp.float32), jnp.float32(1.0))
    assert not lifted
    expected = np.linalg.cholesky(rotated((1.0, 2.0, 3.0)))
    np.testing.assert_allclose(factor / scales[:, None], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((5.0, -3.0, 8.0), (5.0, 3.0, 8.0)),
        ((5.0, -300.0, 0.2), (5.0, 300.0, 1.0)),
        ((-0.5, -2.0, -3.0), (1.0, 2.0, 3.0)),
    ],
)
def test_indefinite_matrices_get_absolute_eigenvalues_of_at_least_the_floor(given, wanted):
    factor, lifted = factor_of(jnp.asarray(rotated(given), jnp.float32), jnp.float32(1.0))
    assert lifted
    assert_is_a_factor(factor)
    np.testing.assert_allclose(factor @ factor.T, rotated(wanted), atol=2e-6 * np.abs(given).max())


@pytest.mark.parametrize("values", [(1e6, -1e6), (1e8, 0.0), (0.0, 0.0), (1e-3, -1e-12)])
def test_whatever_is_given_the_eigenvalues_end_above_the_floor(values):
    factor, _ = factor_of(jnp.asarray(rotated(values, seed=1), jnp.float32), jnp.float32(0.5))
    assert_is_a_factor(factor)
    singular = np.linalg.svd(np.asarray(factor, np.float64), compute_uv=False)
    assert singular.min() ** 2 >= 0.5 * (1 - 1e-4) - 1e-6 * max(values)


def test_curvature_that_is_not_a_number_still_gives_a_usable_factor():
    bad = jnp.nan
    factor, lifted = factor_of(jnp.asarray([[2.0, bad, 0.0], [bad, 3.0, 0.0], [0.0, 0.0, 1.0]]), jnp.float32(1.0))
    assert lifted
    assert_is_a_factor(factor)


def test_factors_vectorise_over_definite_and_indefinite_matrices():
    stack = jnp.asarray(np.stack([rotated((5.0, 2.0, 1.0)), rotated((5.0, -2.0, 1.0))]), jnp.float32)
    factors, lifted = jax.vmap(factorise, (0, None))(stack, jnp.float32(0.5))
    np.testing.assert_array_equal(lifted, [False, True])
    for matrix, factor in zip(stack, factors, strict=True):
        np.testing.assert_allclose(factor, factor_of(matrix, jnp.float32(0.5))[0], rtol=1e-5, atol=1e-6)


def test_draws_have_the_mean_and_covariance_they_should():
    covariance, count = rotated((0.2, 1.5, 4.0)), 40_000
    mean = np.array([3.0, -1.0, 0.5])
    factor = np.linalg.cholesky(np.linalg.inv(covariance))
    gaussian = Gaussian(jnp.asarray(mean, jnp.float32), jnp.asarray(factor, jnp.float32))
    np.testing.assert_allclose(gaussian.covariance(), covariance, rtol=1e-4, atol=1e-5)
    draws = np.asarray(gaussian.draw(jax.random.key(0), count), np.float64)
    assert draws.shape == (count, 3)
    # Whitened draws are standard normal: means with variance 1/n, covariances with 1/n and variances with 2/n.
    white = (draws - mean) @ factor
    assert np.abs(white.mean(0)).max() < 4 / np.sqrt(count)
    assert np.abs(np.cov(white.T) - np.eye(3)).max() < 4 * np.sqrt(2 / count)


def test_transform_moves_noise_linearly():
    factor = np.array([[2.0, 0.0], [1.0, 0.5]], np.float32)
    gaussian = Gaussian(jnp.asarray([1.0, 2.0]), jnp.asarray(factor))
    noise = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32)
    expected = [1.0, 2.0] + noise @ np.linalg.inv(factor)
    np.testing.assert_allclose(gaussian.transform(jnp.asarray(noise)), expected, rtol=1e-6)


def test_kl_of_one_dimension_is_the_closed_form():
    for m, s, m2, s2 in ((0.0, 1.0, 0.0, 1.0), (1.0, 0.5, -2.0, 3.0), (0.0, 4.0, 0.1, 0.2)):
        expected = np.log(s2 / s) + (s**2 + (m - m2) ** 2) / (2 * s2**2) - 0.5
        actual = gaussian_kl(np.array([m]), np.array([[s**2]]), np.array([m2]), np.array([[s2**2]]))
        assert actual == pytest.approx(expected, abs=1e-12)


def test_kl_is_the_expected_log_ratio_and_not_its_reverse():
    one = stats.multivariate_normal([0.5, -1.0, 0.0], rotated((0.5, 1.0, 2.0)), seed=0)
    other = stats.multivariate_normal([0.0, 0.0, 1.0], rotated((3.0, 1.5, 0.7), seed=2))
    x = one.rvs(100_000)
    ratio = one.logpdf(x) - other.logpdf(x)
    actual = gaussian_kl(one.mean, one.cov, other.mean, other.cov)
    assert abs(ratio.mean() - actual) < 4 * ratio.std() / np.sqrt(len(x))
    assert abs(gaussian_kl(other.mean, other.cov, one.mean, one.cov) - actual) > 0.1
    assert gaussian_kl(one.mean, one.cov, one.mean, one.cov) == pytest.approx(0.0, abs=1e-12)
