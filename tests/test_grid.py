"""Modes for many β side by side, against SciPy in double precision and against the equations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closed_forms import NOISE, exact_posterior, likelihood, source_of
from scipy import optimize, special

from betacores.grid import (
    GridFit,
    _newton_steps,
    _packed_derivatives,
    _plain_derivatives,
    grid_modes,
    last_step,
    priors_at,
)
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows
from betacores.models.base import Model
from betacores.posteriors.derivatives import Derivatives

COUNT = 300
BETAS = np.array([0.0, 0.1, 0.4, 1.0])
MODELS = {"gaussian": GaussianMean(), "linear": LinearRegression(NOISE), "logistic": LogisticRegression()}


class Exponential(Model):
    """Counts of intensity `exp(x·θ)`, standard normal prior, no power integral."""

    name = "exponential"
    response = "real"

    def parameter_count(self, columns):
        return columns

    def log_likelihood(self, theta, row):
        eta = row.x @ theta
        return row.y * eta - jnp.exp(eta)

    def log_prior(self, theta):
        return -0.5 * theta @ theta


class Slope(Exponential):
    """A log-likelihood that grows without end, and a flat prior."""

    def log_likelihood(self, theta, row):
        return row.x @ theta

    def log_prior(self, theta):
        return 0.0 * theta.sum()


class Undefined(Exponential):
    def log_likelihood(self, theta, row):
        return row.x @ theta + jnp.nan


def table(name, count=COUNT, columns=3, seed=0, dirty=0.1):
    """Rows of a model, some of them off, in single precision."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, columns))
    off = np.arange(count) < dirty * count
    if name == "gaussian":
        x = x + np.linspace(-1, 1, columns)
        x[off] += 6.0
        return x.astype(np.float32), None
    eta = x @ np.linspace(1.5, -1.0, columns) + 0.4
    y = np.where(rng.random(count) < special.expit(eta), 1.0, -1.0)
    y[off] = -np.sign(eta[off])
    if name == "linear":
        y = eta + NOISE * rng.normal(size=count)
        y[off] += 5.0
    return x.astype(np.float32), y.astype(np.float32)


def reference(name, x, y, beta, start, weights=None):
    """Mode by BFGS from a start, and posterior standard deviations there."""
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)

    def loss(theta):
        value, slope = likelihood(name, theta, x, y, beta)
        return 0.5 * theta @ theta - weights @ value, theta - weights @ slope

    found = optimize.minimize(loss, np.asarray(start, np.float64), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert np.abs(found.jac).max() < 1e-4
    return found.x, np.sqrt(np.diag(np.linalg.inv(hessian(loss, found.x))))


def hessian(loss, at, step=1e-5):
    """Second derivatives of a loss by central differences of its gradient."""
    rows = [(loss(at + e)[1] - loss(at - e)[1]) / (2 * step) for e in step * np.eye(len(at))]
    return 0.5 * (np.array(rows) + np.array(rows).T)


def starts_for(name, betas=BETAS, columns=3):
    """Start near the clean rows, so that both searches climb the same hill."""
    theta = np.linspace(-1, 1, columns) if name == "gaussian" else np.append(np.linspace(1.5, -1.0, columns), 0.4)
    return np.tile(0.8 * theta, (len(betas), 1)).astype(np.float32)


@pytest.fixture(scope="module", params=MODELS)
def grid(request):
    name = request.param
    x, y = table(name)
    return name, x, y, grid_modes(MODELS[name], source_of(x, y), starts_for(name), BETAS)


def test_every_lane_is_the_mode_that_scipy_finds(grid):
    name, x, y, fit = grid
    assert isinstance(fit, GridFit)
    assert fit.converged.all()
    for theta, beta, start in zip(fit.thetas, BETAS, starts_for(name), strict=True):
        mode, error = reference(name, x, y, beta, start)
        assert np.abs((theta - mode) / error).max() < 0.005, beta


def test_the_lane_of_beta_zero_is_the_classical_mode(grid):
    name, x, y, fit = grid
    mode, _ = reference(name, x, y, 0.0, np.zeros(4)) if name == "logistic" else exact_posterior(x, y)
    np.testing.assert_allclose(fit.thetas[0], mode, atol=2e-4)


def test_derivatives_that_come_along_are_those_of_the_likelihood_where_it_was_looked_at(grid):
    name, x, y, fit = grid
    for k, beta in enumerate(BETAS):
        at = fit.looked_at[k].astype(np.float64)
        _, slopes = likelihood(name, at, x, y, beta)
        bend = -hessian(lambda t, b=beta: (0.0, -likelihood(name, t, x, y, b)[1].sum(0)), at)
        size = np.abs(bend).max()
        np.testing.assert_allclose(fit.likelihood.gradient[k], slopes.sum(0), atol=1e-4 * size)
        np.testing.assert_allclose(fit.likelihood.hessian[k], bend, atol=1e-4 * size)


def test_the_modes_are_one_newton_step_after_where_it_was_looked_at(grid):
    _, _, _, fit = grid
    for k in range(len(BETAS)):
        gradient = fit.likelihood.gradient[k] - fit.looked_at[k]
        step = np.linalg.solve(np.eye(len(gradient)) - fit.likelihood.hessian[k], gradient)
        np.testing.assert_allclose(fit.thetas[k], fit.looked_at[k] + step, atol=1e-6)


def test_many_lanes_are_each_lane_alone(grid):
    name, x, y, fit = grid
    for k, beta in enumerate(BETAS):
        alone = grid_modes(MODELS[name], source_of(x, y), starts_for(name)[:1], np.array([beta]))
        np.testing.assert_allclose(alone.thetas[0], fit.thetas[k], atol=3e-4)
        np.testing.assert_allclose(
            alone.likelihood.hessian[0], fit.likelihood.hessian[k], atol=1e-3 * np.abs(fit.likelihood.hessian[k]).max()
        )


def test_block_length_changes_nothing(grid, monkeypatch):
    name, x, y, fit = grid
    monkeypatch.setattr("betacores.sources.arrays.BLOCK_ROWS", 64)
    parts = grid_modes(MODELS[name], source_of(x, y), starts_for(name), BETAS)
    np.testing.assert_allclose(parts.thetas, fit.thetas, atol=3e-4)
    np.testing.assert_allclose(parts.likelihood.value, fit.likelihood.value, rtol=1e-4)


def test_a_row_of_weight_zero_is_absent_and_one_of_weight_two_is_there_twice(grid):
    name, x, y, _ = grid
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 1.0, 2.0], COUNT).astype(np.float32)
    twice = np.repeat(np.arange(COUNT), weights.astype(int))
    weighted = grid_modes(MODELS[name], source_of(x, y, weights), starts_for(name), BETAS)
    repeated = source_of(x[twice], None if y is None else y[twice])
    listed = grid_modes(MODELS[name], repeated, starts_for(name), BETAS)
    np.testing.assert_allclose(weighted.thetas, listed.thetas, atol=3e-4)
    np.testing.assert_allclose(weighted.likelihood.value, listed.likelihood.value, rtol=1e-4)


def test_fractional_weights_are_those_of_the_weighted_posterior(grid):
    name, x, y, _ = grid
    weights = np.random.default_rng(2).random(COUNT).astype(np.float32)
    fit = grid_modes(MODELS[name], source_of(x, y, weights), starts_for(name), BETAS)
    for theta, beta, start in zip(fit.thetas, BETAS, starts_for(name), strict=True):
        mode, error = reference(name, x, y, beta, start, weights)
        assert np.abs((theta - mode) / error).max() < 0.005, beta


def test_scale_counts_every_row_so_many_times(grid):
    name, x, y, _ = grid
    scaled = grid_modes(MODELS[name], source_of(x, y), starts_for(name), BETAS, scale=3.0)
    tripled = source_of(x, y, np.full(COUNT, 3.0))
    thrice = grid_modes(MODELS[name], tripled, starts_for(name), BETAS)
    np.testing.assert_allclose(scaled.thetas, thrice.thetas, atol=2e-4)
    np.testing.assert_allclose(scaled.likelihood.value, thrice.likelihood.value, rtol=1e-5)


def test_no_further_steps_is_exactly_one_newton_step(grid):
    name, x, y, fit = grid
    starts = (fit.thetas + 0.02).astype(np.float32)
    one = grid_modes(MODELS[name], source_of(x, y), starts, BETAS, steps=0)
    np.testing.assert_array_equal(one.looked_at, starts)
    for k, beta in enumerate(BETAS):

        def loss(theta, beta=beta):
            value, slope = likelihood(name, theta, x, y, beta)
            return 0.5 * theta @ theta - value.sum(), theta - slope.sum(0)

        at = starts[k].astype(np.float64)
        step = -np.linalg.solve(hessian(loss, at), loss(at)[1])
        np.testing.assert_allclose(one.thetas[k], at + step, atol=1e-5)


def test_steps_of_lanes_side_by_side_are_those_of_each_lane_alone():
    """Sound lanes, one bent the wrong way, one that is no number."""
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 3, 3)) * np.array([1e-4, 1.0, 1e4])
    hessians, gradients = -(roots.swapaxes(1, 2) @ roots), rng.normal(size=(5, 3))
    hessians[2], hessians[4, 0, 0] = np.diag([-4.0, 2.0, -1e-12]), np.nan
    priors, damping = np.tile(-0.5 * np.eye(3), (5, 1, 1)), np.array([0.0, 0.1, 0.0, 10.0, 0.0])
    at = Derivatives(np.zeros(5), gradients, hessians)
    steps, decrements = _newton_steps(at, priors, damping)
    for k in range(5):
        lane = slice(k, k + 1)
        alone = _newton_steps(Derivatives(*(part[lane] for part in at)), priors[lane], damping[lane])
        np.testing.assert_allclose(steps[k], alone[0][0], rtol=1e-12)
        np.testing.assert_allclose(decrements[k], alone[1][0], rtol=1e-12)
    damped = -hessians[1] + 0.1 * np.diag(np.maximum(-hessians[1].diagonal(), 0.5))
    np.testing.assert_allclose(steps[1], np.linalg.solve(damped, gradients[1]), rtol=1e-6)
    # Uphill along a direction bent the wrong way, as far as its sharpness says; no flatter than the prior.
    np.testing.assert_allclose(steps[2], gradients[2] / [4.0, 2.0, 0.5], rtol=1e-12)
    assert np.array_equal(steps[4], np.zeros(3))
    assert np.isinf(decrements[4])


@pytest.mark.parametrize("name", ["linear", "logistic"])
def test_packed_and_plain_derivatives_agree(name):
    x, y = table(name, columns=5)
    rng = np.random.default_rng(3)
    thetas = jnp.asarray(rng.normal(0, 0.5, (4, 6)), jnp.float32)
    weights, rows = jnp.asarray(rng.random(COUNT), jnp.float32), Rows(jnp.asarray(x), jnp.asarray(y))
    for betas in (jnp.asarray(BETAS, jnp.float32), None):
        packed = jax.jit(_packed_derivatives)(MODELS[name], thetas, rows, weights, betas)
        plain = jax.jit(_plain_derivatives)(MODELS[name], thetas, rows, weights, betas)
        for one, other in zip(packed, plain, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * np.abs(other).max())


@pytest.mark.parametrize("columns", [23, 24, 40])
def test_modes_are_right_on_either_side_of_the_number_of_parameters_that_are_packed(columns):
    x, y = table("linear", columns=columns, count=400)
    starts = starts_for("linear", BETAS[:2], columns)
    fit = grid_modes(MODELS["linear"], source_of(x, y), starts, BETAS[:2])
    for theta, beta, start in zip(fit.thetas, BETAS, starts, strict=False):
        mode, error = reference("linear", x, y, beta, start)
        assert np.abs((theta - mode) / error).max() < 0.01


@pytest.mark.parametrize("name", MODELS)
def test_one_step_over_all_rows_leads_from_a_samples_modes_to_theirs(name):
    x, y = table(name, count=20_000)
    some = np.random.default_rng(1).permutation(len(x))[:4000]
    part = grid_modes(
        MODELS[name], source_of(x[some], None if y is None else y[some]), starts_for(name), BETAS, scale=5
    )
    stepped = last_step(MODELS[name], source_of(x, y), part, BETAS)
    for k, beta in enumerate(BETAS):
        mode, error = reference(name, x, y, beta, stepped.thetas[k])
        before, after = (np.linalg.norm((at[k] - mode) / error) for at in (part.thetas, stepped.thetas))
        assert before > 0.5
        assert after < 0.1 * before, beta
    later = last_step(MODELS[name], source_of(x, y), part, BETAS, first=2)
    np.testing.assert_array_equal(later.thetas[:2], part.thetas[:2])
    np.testing.assert_allclose(later.thetas[2:], stepped.thetas[2:], rtol=1e-5, atol=1e-6)


def test_a_lane_that_cannot_converge_says_so_and_holds_up_no_other():
    x, y = table("logistic")
    starts = starts_for("logistic")
    starts[2] = np.nan
    fit = grid_modes(MODELS["logistic"], source_of(x, y), starts, BETAS)
    assert fit.converged.tolist() == [True, True, False, True]
    mode, error = reference("logistic", x, y, 1.0, starts[3])
    assert np.abs((fit.thetas[3] - mode) / error).max() < 0.005


def test_a_likelihood_without_a_mode_does_not_converge():
    x, _ = table("gaussian")
    fit = grid_modes(Slope(), source_of(x, np.ones(COUNT, np.float32)), np.zeros((2, 3)), np.zeros(2))
    assert not fit.converged.any()


def test_a_likelihood_that_is_no_number_does_not_converge():
    x, _ = table("gaussian")
    fit = grid_modes(Undefined(), source_of(x, np.ones(COUNT, np.float32)), np.zeros((2, 3)), np.zeros(2))
    assert not fit.converged.any()


def test_a_search_cut_short_says_that_it_has_not_arrived():
    x, y = table("logistic")
    far = np.full((1, 4), 4.0)
    assert not grid_modes(MODELS["logistic"], source_of(x, y), far, np.zeros(1), steps=1).converged.any()
    assert grid_modes(MODELS["logistic"], source_of(x, y), far, np.zeros(1)).converged.all()


def test_a_model_without_power_integral_has_its_classical_mode():
    rng = np.random.default_rng(4)
    x = rng.normal(0, 0.5, (COUNT, 2)).astype(np.float32)
    y = rng.poisson(np.exp(x @ np.array([0.8, -0.5]))).astype(np.float32)
    fit = grid_modes(Exponential(), source_of(x, y), np.zeros((2, 2)), np.zeros(2))

    def loss(theta):
        eta = x.astype(float) @ theta
        return 0.5 * theta @ theta - (y * eta - np.exp(eta)).sum()

    mode = optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-7}).x
    assert fit.converged.all()
    np.testing.assert_allclose(fit.thetas, np.tile(mode, (2, 1)), atol=1e-3)


def test_derivatives_of_the_prior_are_those_of_its_equation():
    at = np.random.default_rng(5).normal(size=(3, 4))
    prior = priors_at(LogisticRegression(), at)
    np.testing.assert_allclose(prior.value, -0.5 * (at**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(prior.gradient, -at, rtol=1e-5)
    np.testing.assert_allclose(prior.hessian, np.tile(-np.eye(4), (3, 1, 1)), atol=1e-6)


class Rough(Exponential):
    """A log-likelihood that is off by a little, in every row by the same, as a numerical power integral can be."""

    def log_likelihood(self, theta, row):
        return super().log_likelihood(theta, row) + jax.lax.stop_gradient(3e-5 * jnp.sin(1e6 * theta[0]))


def test_values_that_are_off_by_a_little_do_not_keep_a_lane_from_arriving():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(COUNT, 2)).astype(np.float32)
    source = source_of(x, rng.poisson(np.exp(x @ [0.5, -0.3])).astype(np.float32))
    mode = grid_modes(Exponential(), source, np.zeros((1, 2)), np.zeros(1)).thetas
    starts = mode + 3e-4 * rng.normal(size=(20, 2))
    fit = grid_modes(Rough(), source, starts, np.zeros(20))
    assert fit.converged.all()
    np.testing.assert_allclose(fit.thetas, np.tile(mode, (20, 1)), atol=1e-5)
