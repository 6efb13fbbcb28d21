"""Weights of a coreset's rows on a basis: near to equal, none negative, and the posterior that of all rows."""

import numpy as np
import pytest
from plain_network import last_layer
from scipy.optimize import lsq_linear

from betacores.neural.weighting import EVENNESS, standing_for_all
from betacores.posteriors.gaussian import Gaussian

ROWS, NOISE = 400, 0.5


def problem(seed, held=60, columns=5):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(ROWS, columns))
    y = z @ rng.normal(size=columns) + 0.3 + NOISE * rng.normal(size=ROWS)
    mean, covariance = last_layer(z, y, np.ones(ROWS), NOISE)
    everyone = Gaussian(mean, np.linalg.cholesky(np.linalg.inv(covariance)))
    return z, y, rng.choice(ROWS, held, replace=False), everyone


def away(z, y, weights, everyone):
    """How far the mean is from that of all rows, in standard deviations of theirs."""
    mean, _ = last_layer(z, y, weights, NOISE)
    return np.linalg.norm(everyone.factor.T @ (mean - everyone.mean))


@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_best_by_bounded_least_squares(seed):
    z, y, some, everyone = problem(seed)
    usual = ROWS / len(some)
    found = standing_for_all(z[some], y[some], NOISE, everyone, ROWS)
    ones = np.column_stack([z[some], np.ones(len(some))])
    gradients = usual * np.linalg.solve(
        everyone.factor, (ones * ((y[some] - ones @ everyone.mean) / NOISE**2)[:, None]).T
    )
    wanted = np.linalg.solve(everyone.factor, everyone.mean)
    both = np.vstack([gradients, np.sqrt(EVENNESS) * np.eye(len(some))])
    best = lsq_linear(both, np.append(wanted, np.full(len(some), np.sqrt(EVENNESS))), (0, np.inf), tol=1e-12)
    np.testing.assert_allclose(found / usual, best.x, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_posterior_has_the_mean_of_that_of_all_rows(seed):
    z, y, some, everyone = problem(seed)
    weights = standing_for_all(z[some], y[some], NOISE, everyone, ROWS)
    assert (weights >= 0).all()
    assert away(z[some], y[some], weights, everyone) < 0.05
    assert away(z[some], y[some], np.full(60, ROWS / 60), everyone) > 1


def test_all_rows_stand_for_themselves():
    z, y, _, everyone = problem(4)
    np.testing.assert_allclose(standing_for_all(z, y, NOISE, everyone, ROWS), 1, atol=1e-6)


def test_rows_that_cannot_agree_with_all_still_have_weights():
    z, y, some, everyone = problem(6)
    for wrong in (y[some] + 1e6, np.full(60, 1e12), y[some] - 3):
        weights = standing_for_all(z[some], wrong, NOISE, everyone, ROWS)
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.any()
