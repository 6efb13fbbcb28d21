"""What rows say without the prior: against closed forms, and against modes with a prior that is all but flat."""

import numpy as np
import pytest
from closed_forms import source_of
from scipy import special

from betacores.grid import grid_modes
from betacores.models import GaussianMean, LogisticRegression
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.pull import LEAST_SHARE, rows_inverse, without_prior

BETAS = np.array([0.0, 0.3, 1.0])


def logistic_rows(rows, steepness):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    truth = steepness * np.array([2.0, -1.0, 0.5])
    y = np.where(rng.random(rows) < special.expit(x @ truth[:2] + truth[2]), 1.0, -1.0)
    return source_of(x, y)


def test_a_quadratic_likelihood_is_left_at_its_mode_whatever_the_prior():
    x = np.random.default_rng(1).normal(3.0, 1.0, (40, 2)).astype(np.float32)
    for variance in (10.0, 1.0, 1 / 39):
        model = GaussianMean(prior=gaussian_prior(-1.0, variance))
        fit = grid_modes(model, source_of(x), np.zeros((1, 2)), np.zeros(1))
        found = without_prior(model, source_of(x), fit.thetas, np.zeros(1))
        pulled = (x.sum(0) - 1 / variance) / (40 + 1 / variance)
        np.testing.assert_allclose(fit.thetas[0], pulled, atol=1e-4)
        np.testing.assert_allclose(found.modes[0], x.mean(0), atol=1e-4)
        np.testing.assert_allclose(found.steps[0], x.mean(0) - pulled, atol=1e-4)
        np.testing.assert_allclose(found.curvatures[0], (40 + 1 / variance) * np.eye(2), rtol=1e-4)
        np.testing.assert_allclose(found.inverses[0], np.eye(2) / 40, rtol=1e-3)


@pytest.mark.parametrize("steepness", [1.0, 2.0])
def test_pulled_logistic_modes_come_back_to_where_a_flat_prior_has_them(steepness):
    source = logistic_rows(1000, steepness)
    model = LogisticRegression()
    fit = grid_modes(model, source, np.zeros((3, 3)), BETAS)
    found = without_prior(model, source, fit.thetas, BETAS)
    flat = LogisticRegression(prior=GaussianPrior(np.zeros(()), np.asarray(1e-6)))
    expected = grid_modes(flat, source, fit.thetas, BETAS)
    assert expected.converged.all()
    pulls = np.linalg.norm(fit.thetas - expected.thetas, axis=1)
    # The more robust, the more pulled.
    assert np.all(np.diff(pulls) > 0)
    np.testing.assert_allclose(found.modes, expected.thetas, atol=0.03 * pulls.max())


def test_a_sample_counts_for_as_many_rows_as_it_stands_for():
    source, model = logistic_rows(300, 1.0), LogisticRegression()
    fit = grid_modes(model, source, np.zeros((3, 3)), BETAS, scale=10.0)
    as_many = without_prior(model, source, fit.thetas, BETAS, 10.0)
    alone = grid_modes(model, source, np.zeros((3, 3)), BETAS)
    itself = without_prior(model, source, alone.thetas, BETAS)
    np.testing.assert_allclose(as_many.modes, itself.modes, atol=0.05)
    assert np.all(np.linalg.norm(as_many.steps, axis=1) < 0.2 * np.linalg.norm(itself.steps, axis=1))


def test_classes_that_a_plane_divides_send_no_mode_to_infinity():
    x = np.random.default_rng(2).normal(size=(1000, 2))
    source = source_of(x, np.where(x[:, 0] > 0, 1.0, -1.0))
    fit = grid_modes(LogisticRegression(), source, np.zeros((3, 3)), BETAS)
    found = without_prior(LogisticRegression(), source, fit.thetas, BETAS)
    assert all(np.isfinite(part).all() for part in found)
    # Each step is at most twice the posterior's own, here towards ever steeper planes.
    assert np.all(np.linalg.norm(found.modes, axis=1) > np.linalg.norm(fit.thetas, axis=1))
    assert np.all(np.linalg.norm(found.modes, axis=1) < 100 * np.linalg.norm(fit.thetas, axis=1))


@pytest.mark.parametrize(("own", "inverse"), [(9.0, 1 / 9), (1.0, 1.0), (0.25, 1.6), (0.0, 2.0), (-0.5, 4.0)])
def test_rows_have_half_of_the_information_at_least(own, inverse):
    """Rows of precision `own`, a prior of precision one."""
    assert LEAST_SHARE == 0.5
    found = rows_inverse(np.array([[own + 1, 0.0], [0.0, 3.0]]), np.eye(2))
    np.testing.assert_allclose(found, np.diag([inverse, 0.5]), rtol=1e-12)


def test_without_a_posterior_there_is_no_inverse():
    assert np.isnan(rows_inverse(np.diag([1.0, -1.0]), np.zeros((2, 2)))).all()
