"""Row scores: the formula, mean 1 under the model, 0 far from it, and the contamination they estimate."""

import jax
import numpy as np
import pytest
from scipy import special, stats

from betacores.models import GaussianMean, LinearRegression, LogisticRegression
from betacores.pilot import pilot
from betacores.scores import beliefs_over, default_score_beta, row_scores
from betacores.sources import ArraySource

COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])
THETA = np.array([0.8, -0.5, 0.3], np.float32)
NOISE = 0.6
ROWS = 20_000
MODELS = {
    "gaussian": GaussianMean(COVARIANCE),
    "linear": LinearRegression(NOISE),
    "logistic": LogisticRegression(),
}


def contamination(scores, trust=None):
    return beliefs_over(scores, trust).contamination


def simulated(name, count=ROWS, seed=0):
    """Rows from the model at THETA."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2))
    if name == "gaussian":
        return ArraySource((THETA[:2] + x @ np.linalg.cholesky(COVARIANCE).T).astype(np.float32)), THETA[:2]
    eta = x @ THETA[:2] + THETA[2]
    y = eta + NOISE * rng.normal(size=count)
    if name == "logistic":
        y = np.where(rng.random(count) < special.expit(eta), 1.0, -1.0)
    return ArraySource(x.astype(np.float32), y.astype(np.float32)), THETA


def score_64(name, source, beta):
    """`p^β / I` in double precision."""
    x = np.asarray(source.x, np.float64)
    if name == "gaussian":
        density = stats.multivariate_normal(THETA[:2], COVARIANCE).pdf(x)
        return density**beta / (((2 * np.pi) ** 2 * np.linalg.det(COVARIANCE)) ** (-beta / 2) / (1 + beta))
    eta, y = x @ THETA[:2].astype(np.float64) + np.float64(THETA[2]), np.asarray(source.y, np.float64)
    if name == "linear":
        integral = (2 * np.pi * NOISE**2) ** (-beta / 2) * (1 + beta) ** -0.5
        return stats.norm.pdf(y, eta, NOISE) ** beta / integral
    integral = special.expit(eta) ** (1 + beta) + special.expit(-eta) ** (1 + beta)
    return special.expit(y * eta) ** beta / integral


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beta", [0.01, 0.1, 0.5, 1.0, 2.0])
def test_scores_follow_the_formula_and_have_mean_one_under_the_model(name, beta):
    source, theta = simulated(name)
    scores = row_scores(MODELS[name], source, theta, beta)
    assert scores.shape == (ROWS,)
    np.testing.assert_allclose(scores, score_64(name, source, beta), rtol=2e-5, atol=1e-7)
    assert abs(scores.mean(dtype=np.float64) - 1) < 4 * scores.std() / np.sqrt(ROWS)
    assert scores.std() > 1e-3, "rows are told apart"


@pytest.mark.parametrize("name", MODELS)
def test_the_wrong_parameter_lowers_the_mean(name):
    source, theta = simulated(name)
    assert row_scores(MODELS[name], source, theta + 1.0, 0.5).mean() < 0.95


@pytest.mark.parametrize("name", MODELS)
def test_scores_of_far_rows_vanish_and_others_do_not_notice(name):
    source, theta = simulated(name)
    x, y = source.x.copy(), None if source.y is None else source.y.copy()
    places = np.arange(0, ROWS, 1000)
    far = np.resize([30.0, -1e3, 1e6, -1e12], len(places))
    if name == "linear":
        y[places] = far
    else:
        x[places] = (far[:, None] * [1.0, -1.0]).astype(np.float32)
    if name == "logistic":
        y[places] = -np.sign(far)  # the label the model finds impossible
    before = row_scores(MODELS[name], source, theta, 0.5)
    after = row_scores(MODELS[name], ArraySource(x, y), theta, 0.5)
    assert (after[places] < 1e-3).all()
    assert (after >= 0).all()
    np.testing.assert_array_equal(np.delete(after, places), np.delete(before, places))


def test_scores_come_in_the_order_of_the_rows_whatever_the_blocks(monkeypatch):
    source, theta = simulated("logistic")
    whole = row_scores(MODELS["logistic"], source, theta, 0.5)
    monkeypatch.setattr("betacores.sources.arrays.BLOCK_ROWS", 7_001)
    np.testing.assert_allclose(row_scores(MODELS["logistic"], source, theta, 0.5), whole, rtol=1e-6)


def test_contamination_is_the_missing_score():
    assert contamination(np.array([1.0, 1.0, 0.0, 0.0], np.float32)) == pytest.approx(0.5)
    assert contamination(np.array([1.2, 1.1], np.float32)) == 0.0, "never negative"
    assert contamination(np.zeros(3, np.float32)) == 1.0
    many = np.full(2_000_000, 0.9, np.float32)
    assert contamination(many) == pytest.approx(0.1, abs=1e-6), "sums are taken in double precision"


def test_absurd_covariates_count_though_other_scores_are_high():
    scores, trust = np.full(1000, 1.3, np.float32), np.ones(1000, np.float32)
    trust[:50] = 0.01
    assert contamination(scores) == 0.0
    assert contamination(scores, trust) == pytest.approx(0.05)
    low, high = beliefs_over(scores, trust).interval
    assert 0.03 < low < 0.05 < high < 0.07, "as of a binomial share"
    # Where scores say more, belief is the estimate.
    assert contamination(np.full(1000, 0.9, np.float32), trust) == pytest.approx(1 - 0.9 * (0.95 + 0.05 * 0.01))


@pytest.mark.parametrize("fraction", [0.0, 0.15, 0.3, 0.45])
def test_contamination_of_the_gaussian_example_is_found(fraction):
    """20 columns, N(1, I) with a fraction from N(10, I)."""
    count, d = 2000, 20
    rng = np.random.default_rng(7)
    x = rng.normal(1.0, 1.0, (count, d))
    dirty = np.arange(count) % 100 < 100 * fraction
    x[dirty] += 9.0
    source = ArraySource(x.astype(np.float32))
    beta = default_score_beta(GaussianMean(), d, 0.01)
    found = pilot(GaussianMean(), source, beta, jax.random.key(0))
    assert found.converged
    scores = row_scores(GaussianMean(), source, found.theta, beta)
    assert scores[dirty].max(initial=0.0) < 1e-6
    # E r² = ((1+β)²/(1+2β))^(d/2) gives the standard error of the mean over clean rows; θ̂ adds 1/N a column.
    deviation = np.sqrt(((1 + beta) ** 2 / (1 + 2 * beta)) ** (d / 2) - 1)
    error = np.sqrt(1 - fraction) * deviation / np.sqrt(count)
    assert contamination(scores) == pytest.approx(fraction, abs=4 * error + d / count)


def test_default_score_beta_is_never_zero_and_falls_with_the_columns_of_whole_rows():
    rows, response = GaussianMean(), LogisticRegression()
    assert default_score_beta(rows, 20, 0.0) == pytest.approx(0.1)
    assert default_score_beta(rows, 1, 0.0) == 0.5
    assert default_score_beta(rows, 20, 0.3) == 0.3, "never below the β that was asked for"
    assert default_score_beta(response, 500, 0.0) == 0.5, "a response is one number, whatever the covariates"
