"""The β-likelihood against its formula in double precision, its limit β → 0, and its behaviour far from the model."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from betacores.divergence import (
    FLOOR,
    SMALLEST_BETA,
    as_beta,
    has_power_integral,
    likelihood,
    likelihoods,
    response_likelihood,
)
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Model, Rows

COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])
NOISE = 0.6
MODELS = {
    "gaussian": GaussianMean(COVARIANCE),
    "linear": LinearRegression(NOISE),
    "logistic": LogisticRegression(),
}
LOCATION = ("gaussian", "linear")
BETAS = (0.01, 0.1, 0.5, 1.0, 2.0)
EPS = float(np.finfo(np.float32).eps)

every_model = pytest.mark.parametrize("name", MODELS)


def problem(name, count=12, draws=5, seed=0):
    """Rows and draws in single precision: the numbers both sides of a comparison start from."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 2)).astype(np.float32)
    y = {"gaussian": None, "linear": rng.normal(size=count), "logistic": np.where(rng.random(count) < 0.5, 1.0, -1.0)}
    p = 2 if name == "gaussian" else 3
    thetas = rng.normal(size=(draws, p)).astype(np.float32)
    response = y[name]
    return Rows(jnp.asarray(x), None if response is None else jnp.asarray(response, jnp.float32)), jnp.asarray(thetas)


def predictor(rows, thetas):
    x, thetas = np.asarray(rows.x, np.float64), np.asarray(thetas, np.float64)
    return np.column_stack([x, np.ones(len(x))]) @ thetas.T


def log_likelihood_64(name, rows, thetas):
    """`ℓ` of rows (down) and draws (across), by SciPy in double precision."""
    if name == "gaussian":
        x, thetas = np.asarray(rows.x, np.float64), np.asarray(thetas, np.float64)
        return np.stack([stats.multivariate_normal(theta, COVARIANCE).logpdf(x) for theta in thetas], axis=1)
    eta, y = predictor(rows, thetas), np.asarray(rows.y, np.float64)[:, None]
    return stats.norm.logpdf(y, eta, NOISE) if name == "linear" else -np.logaddexp(0.0, -y * eta)


def integral_64(name, rows, thetas, beta):
    """`I = ∫ p^(1+β)`, the same shape."""
    if name == "logistic":
        eta = predictor(rows, thetas)
        return special.expit(eta) ** (1 + beta) + special.expit(-eta) ** (1 + beta)
    determinant, d = (np.linalg.det(COVARIANCE), 2) if name == "gaussian" else (NOISE**2, 1)
    constant = ((2 * np.pi) ** d * determinant) ** (-beta / 2) * (1 + beta) ** (-d / 2)
    return np.full((len(rows.x), len(thetas)), constant)


def beta_likelihood_64(name, rows, thetas, beta):
    """The formula of DESIGN 2.1; for location families less the constant that only matters to the limit."""
    integral = integral_64(name, rows, thetas, beta)
    f = np.expm1(beta * log_likelihood_64(name, rows, thetas)) / beta - (integral / (1 + beta) - 1)
    return f / integral if name in LOCATION else f


@jax.jit
def one_row_matrix(model, thetas, rows, beta):
    over_draws = jax.vmap(likelihood, (None, 0, None, None))
    return jax.vmap(over_draws, (None, None, 0, None))(model, thetas, rows, beta)


@jax.jit
def everything(model, theta, rows, beta):
    """Value, gradient and Hessian of every row."""

    def one(row):
        def f(at):
            return likelihood(model, at, row, beta)

        return f(theta), jax.grad(f)(theta), jax.hessian(f)(theta)

    return jax.vmap(one)(rows)


matrix = jax.jit(likelihoods)


@every_model
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("path", [matrix, one_row_matrix])
def test_likelihoods_follow_the_formula(name, beta, path):
    rows, thetas = problem(name)
    actual = np.asarray(path(MODELS[name], thetas, rows, as_beta(beta)), np.float64)
    expected = beta_likelihood_64(name, rows, thetas, beta)
    if name in LOCATION:
        # One constant is free, the same for every row and draw.
        expected = expected + (actual - expected)[0, 0]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6 * scale)


@every_model
def test_matrix_fast_paths_give_the_one_row_function(name):
    rows, thetas = problem(name)
    # Far from the origin too: squares must not swallow the difference between draws.
    for shift in (0.0, 300.0):
        if name == "gaussian":
            rows, thetas = Rows(rows.x + shift), thetas + shift
        for beta in (0.0, 1e-6, 0.1, 2.0):
            fast = np.asarray(matrix(MODELS[name], thetas, rows, as_beta(beta)))
            slow = np.asarray(one_row_matrix(MODELS[name], thetas, rows, as_beta(beta)))
            size = np.abs(np.asarray(one_row_matrix(MODELS[name], thetas, rows, None))).max()
            tolerance = 1e-4 if shift else 20 * EPS
            np.testing.assert_allclose(fast, slow, rtol=tolerance, atol=tolerance * size)


def test_a_model_without_fast_path_is_evaluated_row_by_row():
    class Laplacian(Model):
        name = "laplacian"

        def parameter_count(self, columns):
            return columns

        def log_likelihood(self, theta, row):
            return -jnp.abs(row.x - theta).sum()

        def log_prior(self, theta):
            return -0.5 * theta @ theta

    rows, thetas = problem("gaussian")
    model = Laplacian()
    expected = -np.abs(np.asarray(rows.x)[:, None] - np.asarray(thetas)).sum(-1)
    np.testing.assert_allclose(likelihoods(model, thetas, rows, None), expected, rtol=1e-5)
    assert not has_power_integral(model)
    assert all(has_power_integral(known) for known in MODELS.values())


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_response_likelihood_is_the_same_function_of_the_linear_predictor(name):
    rows, thetas = problem(name)
    for beta in (0.0, 0.5):
        expected = one_row_matrix(MODELS[name], thetas, rows, as_beta(beta))
        eta = jnp.asarray(predictor(rows, thetas), jnp.float32)
        actual = jax.jit(response_likelihood)(MODELS[name], eta, rows.y[:, None], as_beta(beta))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 1e-6, 0.5, 2.0])
def test_logistic_rows_without_label_are_an_equivalent_problem(beta):
    """Rows `y z`, a model without intercept: the same matrix."""
    rows, thetas = problem("logistic")
    model, compact = MODELS["logistic"].compact(rows)
    assert compact.y is None
    actual = matrix(model, thetas, compact, as_beta(beta))
    np.testing.assert_allclose(actual, matrix(MODELS["logistic"], thetas, rows, as_beta(beta)), rtol=1e-5, atol=1e-6)


@every_model
def test_zero_beta_is_the_log_likelihood_to_the_last_bit(name):
    assert as_beta(0.0) is None
    assert as_beta(0) is None
    rows, thetas = problem(name)
    model = MODELS[name]
    for n in range(4):
        row = jax.tree.map(lambda a, n=n: a[n], rows)
        assert likelihood(model, thetas[0], row, as_beta(0.0)) == model.log_likelihood(thetas[0], row)
    np.testing.assert_allclose(matrix(model, thetas, rows, None), log_likelihood_64(name, rows, thetas), rtol=1e-5)


@every_model
def test_values_and_gradients_tend_to_the_log_likelihood(name):
    """`|f − ℓ| ≤ β (ℓ² + c)` for `β |ℓ| ≤ 1`, and the gradients follow at rate `β |ℓ| |∇ℓ|`."""
    rows, thetas = problem(name)
    exact, slope, _ = (np.asarray(part, np.float64) for part in everything(MODELS[name], thetas[0], rows, None))
    length = np.linalg.norm(slope, axis=-1)
    # ℓ may be positive, and c is what I can be away from 1 over β: the entropy and one half a dimension.
    depth = np.abs(exact) + 5.0
    errors = []
    for beta in 10.0 ** -np.arange(2.0, 13.0):
        f, gradient, hessian = everything(MODELS[name], thetas[0], rows, as_beta(beta))
        away = np.abs(f - exact)
        assert (away <= beta * depth**2 + 4 * EPS * depth).all()
        assert (
            np.linalg.norm(gradient - slope, axis=-1) <= 2 * beta * depth * (1 + length) + 8 * EPS * (1 + length)
        ).all()
        assert np.isfinite(hessian).all()
        errors.append(away.max())
    noise = 4 * EPS * depth.max()
    assert all(later <= earlier + noise for earlier, later in pairwise(errors))
    assert errors[0] > 10 * errors[2], "β = 0.01 is far enough from the limit to see it approached"


@every_model
def test_beta_below_the_smallest_changes_nothing(name):
    rows, thetas = problem(name)
    exact = np.asarray(matrix(MODELS[name], thetas, rows, None))
    for beta in (SMALLEST_BETA, 1e-20, 1e-37):
        actual = matrix(MODELS[name], thetas, rows, as_beta(beta))
        np.testing.assert_allclose(actual, exact, rtol=1e-5, atol=1e-5)


@every_model
@pytest.mark.parametrize("beta", [0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0, 5.0])
def test_rows_far_from_the_model_stay_finite(name, beta):
    """Log-likelihoods of −1e2, −1e6 and far beyond: value by the formula, no NaN anywhere, and in the end no slope."""
    distances = np.array([1e1, 1e2, 1e3, 1e6, 1e9, 1e12], np.float32)
    distances = np.concatenate([distances, -distances])
    x = np.stack([distances, np.ones_like(distances)], axis=1)
    y = {"gaussian": None, "linear": jnp.asarray(distances), "logistic": jnp.ones(12)}[name]
    if name == "linear":
        x = np.ones_like(x)
    rows, theta = Rows(jnp.asarray(x), y), jnp.asarray([0.5, -0.25, 0.1], jnp.float32)
    theta = theta[:2] if name == "gaussian" else theta
    value, gradient, hessian = everything(MODELS[name], theta, rows, as_beta(beta))
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert np.isfinite(matrix(MODELS[name], jnp.linspace(-1, 1, 5)[:, None] * theta, rows, as_beta(beta))).all()
    if beta == 0:
        expected = np.maximum(log_likelihood_64(name, rows, theta[None])[:, 0], FLOOR)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)
        return
    expected = beta_likelihood_64(name, rows, theta[None], beta)[:, 0]
    if name in LOCATION:
        expected = expected + (np.asarray(value, np.float64) - expected)[5]
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    if beta >= 1e-3:
        np.testing.assert_array_equal(np.asarray(gradient)[[5, 11]], 0.0)
        np.testing.assert_array_equal(np.asarray(hessian)[[5, 11]], 0.0)


@pytest.mark.parametrize("beta", [0.1, 0.5, 2.0])
def test_the_true_parameter_is_stationary_on_average(beta):
    """Over both labels of a row `Σ_y p(y) ∇f = 0`: with a wrong sign or scale of the integral it is not."""
    rows, thetas = problem("logistic")
    both = Rows(jnp.repeat(rows.x[:6], 2, axis=0), jnp.tile(jnp.asarray([1.0, -1.0]), 6))
    _, slopes, _ = everything(MODELS["logistic"], thetas[0], both, as_beta(beta))
    chance = special.expit(np.asarray(both.y) * predictor(both, thetas[:1])[:, 0])
    terms = chance[:, None] * np.asarray(slopes, np.float64)
    np.testing.assert_allclose(terms[::2] + terms[1::2], 0.0, atol=1e-6)
    assert np.abs(terms).max() > 0.05


@pytest.mark.parametrize("beta", [1e-12, 1e-4, *BETAS, 20.0])
def test_derivatives_of_labels_by_hand(beta):
    """Logistic regression's own derivatives against differences in double precision."""
    eta = np.concatenate([np.linspace(-30, 30, 241), [-1e12, -1e4, -90.0, 90.0, 1e4, 1e12]])
    at = jnp.asarray(eta, jnp.float32)
    exact = np.asarray(at, np.float64)
    small = max(beta, 1e-12)

    def f(u):
        log_p, log_q = special.log_expit(u), special.log_expit(-u)
        integral = np.exp((1 + small) * log_p) + np.exp((1 + small) * log_q)
        return np.expm1(small * log_p) / small - (integral / (1 + small) - 1)

    for y in (1.0, -1.0):
        value, slope, curvature = (
            np.asarray(part)
            for part in LogisticRegression().response_derivatives(at, np.float32(y), jnp.float32(small))
        )
        np.testing.assert_allclose(value, f(y * exact), rtol=3e-6, atol=1e-6)
        near = np.abs(exact) < 80
        h = 1e-4
        first = (f(y * (exact[near] + h)) - f(y * (exact[near] - h))) / (2 * h)
        second = (f(y * (exact[near] + h)) - 2 * f(y * exact[near]) + f(y * (exact[near] - h))) / h**2
        np.testing.assert_allclose(slope[near], first, rtol=1e-5, atol=2e-6)
        np.testing.assert_allclose(curvature[near], second, rtol=1e-4, atol=5e-6)
        # Far rows of the wrong label say nothing once β is more than next to nothing.
        far = y * exact < -1e3
        if beta >= 0.01:
            assert np.abs(slope[far]).max() < 1e-4
        assert np.isfinite(slope).all()
        assert np.isfinite(curvature).all()
