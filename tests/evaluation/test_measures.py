"""Measures against plain loops in double precision, scikit-learn and closed forms."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error

from betacores.evaluation import calibration_error, gaussian_divergence, measures
from betacores.evaluation.measures import BLOCK_ROWS, _block
from betacores.inputs import encode_rows
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Model, Rows

LANES, DRAWS, ROWS = 3, 20, 37


def labelled(seed=0, rows=ROWS):
    """Rows with two columns, words for labels, draws, and the linear predictors of every lane, row and draw."""
    rng = np.random.default_rng(seed)
    x, thetas = rng.normal(size=(rows, 2)), rng.normal(size=(LANES, DRAWS, 3))
    y = np.where(rng.random(rows) < special.expit(x @ [2.0, -1.0]), "yes", "no")
    eta = np.column_stack([x, np.ones(rows)]) @ thetas.transpose(0, 2, 1)
    return x, y, thetas, eta


def test_binary_measures_are_those_of_plain_loops():
    x, y, thetas, eta = labelled()
    found = measures(LogisticRegression(), thetas, encode_rows(x, y, np.array(["no", "yes"])))
    assert set(found) == {"accuracy", "log_density", "calibration_error"}
    for lane in range(LANES):
        right, log_density, bins = 0.0, 0.0, [[] for _ in range(15)]
        for n in range(ROWS):
            positive = [1 / (1 + math.exp(-eta[lane, n, s])) for s in range(DRAWS)]
            own = positive if y[n] == "yes" else [1 - p for p in positive]
            right += sum(p > 0.5 for p in own)
            log_density += math.log(sum(own) / DRAWS)
            mean = sum(positive) / DRAWS
            bins[min(int(mean * 15), 14)].append((mean, y[n] == "yes"))
        error = sum(len(b) / ROWS * abs(np.mean([m for m, _ in b]) - np.mean([o for _, o in b])) for b in bins if b)
        assert found["accuracy"][lane] == pytest.approx(right / DRAWS / ROWS, rel=1e-6)
        assert found["log_density"][lane] == pytest.approx(log_density / ROWS, rel=1e-5)
        assert found["calibration_error"][lane] == pytest.approx(error, rel=1e-4)


def test_a_single_draw_agrees_with_scikit_learn():
    x, y, thetas, eta = labelled(1)
    found = measures(LogisticRegression(), thetas[0, :1], encode_rows(x, y, np.array(["no", "yes"])))
    assert all(values.shape == (1,) for values in found.values())
    positive = special.expit(eta[0, :, 0])
    assert found["accuracy"][0] == pytest.approx(accuracy_score(y == "yes", positive > 0.5))
    assert found["log_density"][0] == pytest.approx(-log_loss(y == "yes", positive), rel=1e-5)


def test_a_tie_counts_half():
    found = measures(LogisticRegression(), np.zeros((2, 5, 3)), Rows(np.ones((4, 2)), np.array([1.0, 1.0, 1.0, -1.0])))
    np.testing.assert_allclose(found["accuracy"], 0.5)
    np.testing.assert_allclose(found["log_density"], -math.log(2), rtol=1e-6)
    np.testing.assert_allclose(found["calibration_error"], 0.25, rtol=1e-5)


def test_hopeless_predictions_have_a_finite_log_density():
    """Probabilities of exp(−300) are nothing in single precision, their logarithms are not."""
    found = measures(LogisticRegression(), np.array([[300.0, 0.0], [310.0, 0.0]]), Rows(np.ones((2, 1)), -np.ones(2)))
    assert found["log_density"][0] == pytest.approx(-300 - math.log(2), rel=1e-5)
    assert found["accuracy"][0] == 0.0
    assert found["calibration_error"][0] == pytest.approx(1.0)


def test_real_measures_agree_with_scikit_learn_and_scipy():
    x, _, thetas, eta = labelled(2)
    y = eta[0].mean(1) + np.random.default_rng(3).normal(size=ROWS)
    found = measures(LinearRegression(0.7), thetas, Rows(x, y))
    assert set(found) == {"rmse", "log_density"}
    for lane in range(LANES):
        density = stats.norm.pdf(y[:, None], eta[lane], 0.7).mean(1)
        assert found["rmse"][lane] == pytest.approx(root_mean_squared_error(y, eta[lane].mean(1)), rel=1e-5)
        assert found["log_density"][lane] == pytest.approx(np.log(density).mean(), rel=1e-5)


def test_models_of_rows_have_a_log_density_alone():
    x, _, thetas, _ = labelled(4)
    covariance = np.array([[2.0, 0.7], [0.7, 0.5]])
    found = measures(GaussianMean(covariance), thetas[..., :2], Rows(x))
    assert set(found) == {"log_density"}
    for lane in range(LANES):
        density = np.array([stats.multivariate_normal(at, covariance).pdf(x) for at in thetas[lane, :, :2]])
        assert found["log_density"][lane] == pytest.approx(np.log(density.mean(0)).mean(), rel=1e-5)


class Probit(Model):
    """A binary response without a linear predictor or a matrix form."""

    name: ClassVar[str] = "probit"
    response: ClassVar = "binary"

    def parameter_count(self, columns):
        return columns

    def log_likelihood(self, theta, row):
        # A logistic approximation of the normal distribution function.
        return -jnp.log1p(jnp.exp(-1.702 * row.y * (row.x @ theta)))

    def log_prior(self, theta):
        return -0.5 * theta @ theta


def test_any_binary_model_will_do():
    """Only the likelihood of one row is needed."""
    x, y, thetas, _ = labelled(5)
    rows = encode_rows(x, y, np.array(["no", "yes"]))
    found = measures(Probit(), thetas[..., :2], rows)
    same = measures(LogisticRegression(intercept=False), 1.702 * thetas[..., :2], rows)
    assert set(found) == set(same)
    for name, values in found.items():
        np.testing.assert_allclose(values, same[name], rtol=1e-4)


def test_blocks_change_nothing_and_lengths_share_programs():
    """Rows that fill two blocks and a bit are measured as the mean over their parts."""
    rows = 2 * BLOCK_ROWS + 100
    x, y, thetas, eta = labelled(6, rows)
    encoded = encode_rows(x, y, np.array(["no", "yes"]))
    found = measures(LogisticRegression(), thetas, encoded)
    sign = np.where(y == "yes", 1, -1)[:, None]
    np.testing.assert_allclose(found["accuracy"], (sign * eta > 0).mean((1, 2)), atol=1e-6)
    np.testing.assert_allclose(found["log_density"], np.log(special.expit(sign * eta).mean(2)).mean(1), rtol=1e-5)
    programs = _block._cache_size()
    measures(LogisticRegression(), thetas[:1], Rows(encoded.x[:-7], encoded.y[:-7]))
    measures(LogisticRegression(), thetas[0], Rows(encoded.x[:-4000], encoded.y[:-4000]))
    assert _block._cache_size() == programs


def test_calibration_error_is_small_for_the_truth_and_large_for_the_over_confident():
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=200_000)
    positive = rng.random(len(truth)) < truth
    # A bin's mean is off by a standard error of at most 0.5 / √(n / 15).
    assert calibration_error(truth, positive) < 4 * 0.5 / math.sqrt(len(truth) / 15)
    assert calibration_error(np.where(truth > 0.5, 1.0, 0.0), positive) == pytest.approx(0.25, abs=0.01)
    sharp = special.expit(3 * special.logit(truth))
    assert calibration_error(sharp, positive) > 0.1
    assert calibration_error(np.full(len(truth), 0.5), positive) < 0.01, "it says nothing, but that truly"


def test_a_calibrated_model_is_found_calibrated_and_one_with_larger_coefficients_is_not():
    rng = np.random.default_rng(1)
    x, theta = rng.normal(size=(20_000, 2)), np.array([1.0, -1.0, 0.3])
    y = np.where(rng.random(len(x)) < special.expit(x @ theta[:2] + theta[2]), 1.0, -1.0)
    found = measures(LogisticRegression(), np.stack([theta, 4 * theta])[:, None], Rows(x, y))
    assert found["calibration_error"][0] < 0.02
    assert found["calibration_error"][1] > 0.1
    assert found["accuracy"][0] == found["accuracy"][1]
    assert found["log_density"][0] > found["log_density"][1]


def gaussians(p=3, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(2, p, p))
    return rng.normal(size=(2, p)), roots @ roots.transpose(0, 2, 1) + np.eye(p)


def with_moments(mean, covariance, draws=200, seed=0):
    """Draws whose mean and covariance are exactly these."""
    noise = np.random.default_rng(seed).normal(size=(draws, len(mean)))
    noise -= noise.mean(0)
    noise = np.linalg.solve(np.linalg.cholesky(np.atleast_2d(np.cov(noise.T))), noise.T)
    return mean + (np.linalg.cholesky(covariance) @ noise).T


def test_divergence_is_zero_for_the_same_moments_and_the_closed_form_otherwise():
    (mean, other), (covariance, wider) = gaussians()
    draws = np.stack([with_moments(mean, covariance), with_moments(other, wider), with_moments(mean, wider)])
    found = gaussian_divergence(draws, mean, covariance)
    assert found.shape == (3,)
    assert found[0] == pytest.approx(0.0, abs=1e-10)
    assert found[2] < found[1]
    # The same by the log-densities' mean over a quadrature that is exact for squares.
    points, weights = np.polynomial.hermite_e.hermegauss(5)
    grid = np.stack(np.meshgrid(points, points, points), -1).reshape(-1, 3)
    at = other + grid @ np.linalg.cholesky(wider).T
    ratio = stats.multivariate_normal(other, wider).logpdf(at) - stats.multivariate_normal(mean, covariance).logpdf(at)
    mass = np.stack(np.meshgrid(weights, weights, weights), -1).reshape(-1, 3).prod(1)
    assert found[1] == pytest.approx(ratio @ mass / mass.sum(), rel=1e-8)
    assert gaussian_divergence(draws[1], mean, covariance) == pytest.approx(found[1])


def test_divergence_of_independent_draws_is_what_the_docstring_says():
    rng = np.random.default_rng(2)
    p, draws = 3, 500
    found = gaussian_divergence(rng.normal(size=(400, draws, p)), np.zeros(p), np.eye(p))
    assert found.mean() == pytest.approx(p * (p + 3) / (4 * draws), rel=0.15)


def test_divergence_of_one_parameter():
    draws = with_moments(np.array([1.0]), np.array([[4.0]]))
    assert gaussian_divergence(draws, np.zeros(1), np.eye(1))[0] == pytest.approx(0.5 * (4 + 1 - 1 - math.log(4)))


@pytest.mark.parametrize(
    ("model", "draws", "rows", "message"),
    [
        (LogisticRegression(), np.zeros((4, 2)), Rows(np.zeros((2, 1)), np.array([0.0, 1.0])), "labels must be -1"),
        (LogisticRegression(), np.zeros((4, 2)), Rows(np.zeros((2, 1))), "takes a response"),
        (GaussianMean(), np.zeros((4, 1)), Rows(np.zeros((2, 1)), np.ones(2)), "takes no response"),
        (GaussianMean(), np.zeros((4, 1)), Rows(np.zeros((0, 1))), "at least one test row"),
        (GaussianMean(), np.zeros(4), Rows(np.zeros((2, 1))), "draws: expected"),
        (GaussianMean(), np.zeros((0, 1)), Rows(np.zeros((2, 1))), "draws: expected"),
    ],
)
def test_what_is_wrong_is_said(model, draws, rows, message):
    with pytest.raises(ValueError, match=message):
        measures(model, draws, rows)


def test_too_few_draws_have_no_divergence():
    with pytest.raises(ValueError, match="take more than 3"):
        gaussian_divergence(np.zeros((3, 3)), np.zeros(3), np.eye(3))
