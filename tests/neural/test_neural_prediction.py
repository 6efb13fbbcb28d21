"""Predictions of a fit: `N(μ·z, σ² + zᵀ Σ z)` with the last layer's posterior in closed form, in double precision."""

import functools

import numpy as np
import pytest
from plain_network import curve, forward, in_batches, last_layer, leaves, numbers

from betacores.neural import Training, fit_neural_linear

METHODS = ("pursuit", "beta-cores", "sparse-vi", "uniform")
ROWS = 120
QUICK = {"draws": 15, "steps": 5}


@functools.cache
def fitted(method, networks=1):
    x, y = curve(0, ROWS, 2)
    settings = QUICK if method in ("beta-cores", "sparse-vi") else {}
    return fit_neural_linear(
        x,
        y,
        method=method,
        batches=in_batches(ROWS, 12),
        initial=24,
        rounds=3,
        hidden=6,
        networks=networks,
        training=Training(steps=20),
        noise=0.2,
        **settings,
    )


def exact(fit, new, number=0):
    """Mean and standard deviation of new responses, and the last layer they come from."""
    x, y = (part.astype(np.float32).astype(np.float64) for part in curve(0, ROWS, 2))
    parameters = numbers(fit.members[number].network)
    held, moments = forward(parameters, x[fit.indices], fit.weights)
    mean, covariance = last_layer(held, y[fit.indices], fit.members[number].weights, fit.noise)
    z, _ = forward(parameters, new, None, moments)
    z = np.column_stack([z, np.ones(len(z))])
    deviation = np.sqrt(fit.noise**2 + np.einsum("ij,jk,ik->i", z, covariance, z))
    return z @ mean, deviation, (z, mean, covariance)


def mixed(fit, new):
    """Mean and standard deviation of the mixture of all networks in equal parts."""
    each = [exact(fit, new, number) for number in range(len(fit.members))]
    means, deviations = np.array([one[0] for one in each]), np.array([one[1] for one in each])
    return means.mean(0), np.sqrt((deviations**2 + means**2).mean(0) - means.mean(0) ** 2)


@pytest.mark.parametrize("method", METHODS)
def test_mean_and_deviation_are_the_papers(method):
    fit, new = fitted(method), np.random.default_rng(5).normal(size=(50, 2)).astype(np.float32)
    mean, deviation = fit.predict(new)
    wanted_mean, wanted_deviation = mixed(fit, new)
    assert mean.dtype == deviation.dtype == np.float64
    np.testing.assert_allclose(mean, wanted_mean, atol=2e-3)
    np.testing.assert_allclose(deviation, wanted_deviation, rtol=2e-3)
    assert (deviation > fit.noise).all()
    assert fit.noise == 0.2


@pytest.mark.parametrize("method", METHODS)
def test_the_moments_are_those_of_the_weighted_coreset(method):
    fit, x = fitted(method), curve(0, ROWS, 2)[0]
    _, wanted = forward(numbers(fit.members[0].network), x[fit.indices], fit.weights)
    for own, (mean, variance) in zip(fit.members[0].moments, wanted, strict=True):
        np.testing.assert_allclose(own.mean, mean, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(own.variance, variance, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_several_networks_are_mixed_in_equal_parts(method):
    fit, new = fitted(method, 3), np.random.default_rng(5).normal(size=(50, 2)).astype(np.float32)
    assert len(fit.members) == 3 or (method == "pursuit" and len(fit.members) > 3)
    mean, deviation = fit.predict(new)
    wanted_mean, wanted_deviation = mixed(fit, new)
    np.testing.assert_allclose(mean, wanted_mean, atol=2e-3)
    np.testing.assert_allclose(deviation, wanted_deviation, rtol=2e-3)
    means = np.array([exact(fit, new, number)[0] for number in range(3)])
    assert np.ptp(means, axis=0).max() > 0.05, "each network begins elsewhere"


def test_the_first_of_several_networks_is_the_one_alone():
    alone, several = fitted("uniform"), fitted("uniform", 3)
    assert several.indices.tolist() == alone.indices.tolist()
    for own, one in zip(leaves(several.members[0].network), leaves(alone.members[0].network), strict=True):
        assert np.array_equal(own, one)


def test_pursuit_averages_five_networks_and_the_published_methods_have_one():
    x, y = curve(0, ROWS, 2)
    plain = {"rounds": 0, "hidden": 3, "training": Training(steps=2)}
    assert {m: len(fit_neural_linear(x, y, method=m, **plain).members) for m in METHODS} == {
        "pursuit": 5,
        "beta-cores": 1,
        "sparse-vi": 1,
        "uniform": 1,
    }


def test_pursuit_averages_one_network_of_each_earlier_round_too():
    """By turns, of those rounds in which the coreset had at least half as many rows."""
    x, y = curve(0, ROWS, 2)
    for method in ("pursuit", "uniform"):
        fits = []
        plan = {"batches": in_batches(ROWS, 12), "initial": 24, "rounds": 6, "hidden": 3, "networks": 2, "guard": None}
        keep = lambda number, fit, fits=fits: fits.append(fit)  # noqa: E731
        fit_neural_linear(x, y, method=method, training=Training(steps=5), record=keep, **plan)
        sizes = [len(fit.indices) for fit in fits]
        assert sizes[6] > 2 * sizes[0]
        for number, fit in enumerate(fits):
            near = [k for k in range(number) if method == "pursuit" and 2 * sizes[k] >= sizes[number]]
            assert len(fit.members) == 2 + len(near)
            for k, member in zip(near, fit.members[2:], strict=True):
                then = leaves(fits[k].members[k % 2].network)
                assert all(np.array_equal(a, b) for a, b in zip(leaves(member.network), then, strict=True))


def test_draws_of_the_last_layer_and_the_noise_have_the_predicted_moments():
    fit, new = fitted("uniform"), np.random.default_rng(6).normal(size=(6, 2)).astype(np.float32)
    mean, deviation = fit.predict(new)
    _, _, (z, centre, covariance) = exact(fit, new)
    rng, draws = np.random.default_rng(7), 200_000
    thetas = rng.multivariate_normal(centre, covariance, draws, method="cholesky")
    responses = thetas @ z.T + fit.noise * rng.normal(size=(draws, len(new)))
    np.testing.assert_allclose(responses.mean(0), mean, atol=5 * deviation.max() / np.sqrt(draws) + 1e-3)
    np.testing.assert_allclose(responses.std(0), deviation, rtol=5 / np.sqrt(2 * draws) + 1e-3)


def test_a_row_is_predicted_the_same_in_any_company_and_order():
    fit, new = fitted("pursuit"), np.random.default_rng(8).normal(size=(30, 2))
    mean, deviation = fit.predict(new)
    for part in (slice(4, 5), slice(None, None, -1), slice(0, 7)):
        found = fit.predict(new[part])
        np.testing.assert_allclose(found[0], mean[part], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(found[1], deviation[part], rtol=1e-5, atol=1e-5)


def test_no_rows_and_absurd_rows_can_be_predicted():
    fit = fitted("pursuit")
    assert [part.shape for part in fit.predict(np.zeros((0, 2)))] == [(0,), (0,)]
    mean, deviation = fit.predict(np.array([[1e30, 0.0], [-1e12, 1e12], [30.0, 0.0]]))
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()
    assert mean[0] == pytest.approx(mean[2], rel=1e-5)


def test_far_from_the_coreset_less_is_known():
    fit = fitted("uniform")
    _, near = fit.predict(curve(0, ROWS, 2)[0][fit.indices])
    _, far = fit.predict(np.array([[12.0, 0.0], [0.0, -12.0], [9.0, 9.0]]))
    assert far.min() > near.max()
