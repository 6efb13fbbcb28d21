"""Quasi-Newton refinement of a uniform subset against exact divergences and SciPy's minimiser of them."""

import functools

import jax
import numpy as np
import pytest
from closed_forms import mean_divergence
from scipy.optimize import minimize
from scipy.special import expit

import betacores as bc
from betacores.constructions.quasi_newton import quasi_newton
from betacores.models import GaussianMean, LogisticRegression
from betacores.sources import ArraySource
from betacores.target import direct_target

ROWS, COLUMNS, SIZE = 400, 3, 30
SIZES = (1, 2, 3, 8, 30)


@functools.cache
def gaussian_rows():
    return np.random.default_rng(0).normal(0.5, 1, (ROWS, COLUMNS)).astype(np.float32)


@functools.cache
def gaussian_path(seed, sizes=SIZES):
    source = ArraySource(gaussian_rows())
    model = GaussianMean()
    target = direct_target(model, source, 0.0)
    key = jax.random.key(seed)
    return quasi_newton(model, source, key, size=SIZE, beta=0.0, target=target, sizes=sizes)


def divergence(weights, rows):
    """`KL(π_w ‖ π)` between conjugate posteriors of a mean, prior N(0, I), in double precision."""
    x = gaussian_rows().astype(np.float64)
    return mean_divergence(x[rows], weights, x)


def gradient(weights, rows):
    """Derivative of the divergence: `−Cov_w[f_m, Σ_n f_n − Σ_m w_m f_m]`, in closed form."""
    x, own = gaussian_rows().astype(np.float64), 1 + weights.sum()
    mean = weights @ x[rows] / own
    residual = (x - mean).sum(0) - weights @ (x[rows] - mean)
    surplus = ROWS - weights.sum()
    return -((x[rows] - mean) @ residual / own + COLUMNS / 2 * surplus / own**2)


def least(rows):
    """The smallest divergence any weights of these rows reach, by SciPy from several starts."""
    rng = np.random.default_rng(0)
    plain = np.full(len(rows), ROWS / len(rows))
    starts = [plain, *(plain * rng.uniform(0, 2, len(rows)) for _ in range(4))]
    found = [
        minimize(
            divergence, w, (rows,), jac=gradient, bounds=[(0, None)] * len(w), method="L-BFGS-B",
            options={"maxiter": 3000, "ftol": 1e-14, "gtol": 1e-9},
        ).fun
        for w in starts
    ]  # fmt: skip
    return min(found)


def columns_at(path, size):
    """The subset of a size, rows of weight zero included, and its weights."""
    return path.indices[:size], path.weights[size - 1, :size]


def test_gradient_of_these_tests_is_that_of_the_divergence():
    rows, w = np.arange(5), np.array([50.0, 20.0, 0.5, 100.0, 70.0])
    steps = 1e-4 * np.eye(5)
    slopes = [(divergence(w + e, rows) - divergence(w - e, rows)) / 2e-4 for e in steps]
    np.testing.assert_allclose(gradient(w, rows), slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_sizes_are_nested_subsets_of_weights_at_least_zero(seed):
    path = gaussian_path(seed)
    assert path.weights.shape == (SIZE, SIZE)
    assert len(set(path.indices.tolist())) == SIZE
    assert np.isfinite(path.weights).all()
    assert np.all(path.weights >= 0)
    for m in range(1, SIZE + 1):
        assert not path.weights[m - 1, m:].any(), "a size uses a row that is not among its first"
    assert all(path.weights[m - 1].any() for m in SIZES)


def test_sizes_between_repeat_the_next_smaller_one():
    path = gaussian_path(0)
    for m in range(1, SIZE + 1):
        made = max(size for size in SIZES if size <= m)
        assert np.array_equal(path.weights[m - 1], path.weights[made - 1])


def test_sizes_by_default_are_halves_of_halves():
    path = gaussian_path(0, sizes=None)
    assert path.weights.shape == (SIZE, SIZE)
    made = [m for m in range(2, SIZE + 1) if not np.array_equal(path.weights[m - 1], path.weights[m - 2])]
    assert made[-1] == SIZE
    assert set(made) <= {2, 3, 4, 7, 8, 15, 30}
    assert {15, 30} <= set(made)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", SIZES)
def test_weights_are_never_worse_than_those_they_started_from(seed, size):
    rows, weights = columns_at(gaussian_path(seed), size)
    # Of a single row: where the divergence is all but flat in its weight, no step is taken.
    assert divergence(weights, rows) <= (1 + 1e-6) * divergence(np.full(size, ROWS / size), rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", SIZES[1:])
def test_divergence_is_the_least_that_weights_of_these_rows_reach(seed, size):
    rows, weights = columns_at(gaussian_path(seed), size)
    # Gradients are estimated from 500 draws: the minimum is met up to a share of about m/S.
    assert divergence(weights, rows) <= 1.1 * least(rows) + 0.02


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", SIZES[1:])
def test_no_single_weight_is_worth_changing(seed, size):
    """Downhill along every weight alone, as far as zero allows, by search."""
    rows, weights = columns_at(gaussian_path(seed), size)
    slopes = gradient(weights, rows)
    here = divergence(weights, rows)
    for k in range(size):
        ends = weights[k] - np.sign(slopes[k]) * np.geomspace(1e-3, 1, 30) * max(weights.max(), 1)
        moved = [divergence(np.where(np.arange(size) == k, max(end, 0.0), weights), rows) for end in ends]
        assert min(moved) > 0.9 * here - 0.02


def test_more_rows_than_the_likelihoods_have_dimensions_are_exact():
    """The likelihoods of a mean span four dimensions: with rows on all sides, weights give the posterior itself."""
    exact = []
    for seed in range(3):
        for size in (8, 30):
            rows, weights = columns_at(gaussian_path(seed), size)
            if least(rows) < 1e-6:
                assert divergence(weights, rows) < 1e-2
                assert divergence(np.full(size, ROWS / size), rows) > 1
                exact.append(size)
    assert sorted(exact)[-3:] == [30] * 3
    assert 8 in exact


def test_some_weights_are_held_at_zero():
    """The bound is reached somewhere: the tests above cover it."""
    assert any((columns_at(gaussian_path(seed), size)[1] == 0).any() for seed in range(3) for size in SIZES)


def test_same_key_same_weights_and_another_key_another_subset():
    again = gaussian_path.__wrapped__(0)
    assert np.array_equal(again.weights, gaussian_path(0).weights)
    assert gaussian_path(0).indices.tolist() != gaussian_path(1).indices.tolist()


LOGISTIC_ROWS, LOGISTIC_SIZE = 2000, 60


@functools.cache
def logistic_rows():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(LOGISTIC_ROWS, 3)).astype(np.float32)
    y = np.where(rng.random(LOGISTIC_ROWS) < expit(x @ [1.5, -1.0, 0.5] + 0.3), 1.0, -1.0)
    return x, y.astype(np.float32)


def laplace(rows, weights, beta):
    """Mode and precision of the weighted posterior, prior N(0, I), β-likelihood for β > 0, by Newton's method."""
    x, y = (part.astype(np.float64)[rows] for part in logistic_rows())
    z = np.column_stack([x, np.ones(len(x))])

    def slope(theta):
        eta = z @ theta
        p, q = expit(eta), expit(-eta)
        each = y * expit(-y * eta)
        if beta:
            each = expit(y * eta) ** beta * each - p * q * (p**beta - q**beta)
        return theta - z.T @ (weights * each)

    def curvature(theta):
        steps = 1e-5 * np.eye(4)
        found = np.array([(slope(theta + e) - slope(theta - e)) / 2e-5 for e in steps])
        return (found + found.T) / 2

    theta = np.zeros(4)
    for _ in range(100):
        step = np.linalg.solve(curvature(theta), slope(theta))
        theta = theta - step * min(1, 1 / np.linalg.norm(step))
        if np.linalg.norm(step) < 1e-9:
            break
    return theta, curvature(theta)


def laplace_divergence(rows, weights, beta):
    """Divergence between the Laplace approximations of the weighted posterior and of that of all rows."""
    mean, precision = laplace(rows, weights, beta)
    full_mean, full = laplace(slice(None), np.ones(LOGISTIC_ROWS), beta)
    away = mean - full_mean
    _, own_log = np.linalg.slogdet(precision)
    _, full_log = np.linalg.slogdet(full)
    return 0.5 * (np.trace(np.linalg.solve(precision, full)) - 4 + away @ full @ away + own_log - full_log)


@pytest.mark.parametrize("beta", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_logistic_posterior_is_far_closer_than_that_of_the_plain_subset(beta):
    x, y = logistic_rows()
    model, source = LogisticRegression(), ArraySource(x, y)
    target = direct_target(model, source, beta)
    path = quasi_newton(
        model, source, jax.random.key(0), size=LOGISTIC_SIZE, beta=beta, target=target, sizes=(15, LOGISTIC_SIZE)
    )
    rows, weights = path.at(LOGISTIC_SIZE)
    plain = laplace_divergence(path.indices, np.full(LOGISTIC_SIZE, LOGISTIC_ROWS / LOGISTIC_SIZE), beta)
    assert plain > 1
    assert laplace_divergence(rows, weights, beta) < min(0.1 * plain, 0.5)
    few, few_weights = path.at(15)
    few_plain = laplace_divergence(path.indices[:15], np.full(15, LOGISTIC_ROWS / 15), beta)
    assert laplace_divergence(few, few_weights, beta) < 0.5 * few_plain


def test_front_door():
    x = gaussian_rows()
    coreset = bc.summarize(x, method="quasi-newton", size=SIZE, sizes=SIZES)
    assert (coreset.method, coreset.beta) == ("quasi-newton", 0)
    assert 4 <= len(coreset) <= SIZE
    assert np.array_equal(coreset.X, x[coreset.indices])
    assert divergence(coreset.weights, coreset.indices) < 1e-2
