"""Whole runs of Algorithm 1 against a plain float64 re-implementation that is handed the same random numbers.

Selection, residual, Monte-Carlo gradient, Adam or SGD, and the projection are written out again below from the paper;
only the random numbers (keys, minibatches) come from the package.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from betacores.constructions.incremental import incremental
from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Rows
from betacores.sampling import random_subset

ROWS, COLUMNS, SIZE = 300, 3, 6
subset = jax.jit(random_subset, static_argnums=(1, 2))
QUICK = {"draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}


class Gaussian:
    """Rows N(θ, I), prior N(0, I)."""

    model = GaussianMean()

    def __init__(self, x, y):
        self.x = x

    def log_likelihood(self, ids, thetas):
        away = self.x[ids][:, None, :] - thetas[None]
        return -0.5 * (away**2).sum(-1) - 0.5 * COLUMNS * np.log(2 * np.pi)

    def beta_likelihood(self, ids, thetas, beta):
        # Location family: f divided by the power integral, which is constant.
        integral = (2 * np.pi) ** (-COLUMNS * beta / 2) * (1 + beta) ** (-COLUMNS / 2)
        return np.exp(beta * self.log_likelihood(ids, thetas)) / beta / integral

    def posterior(self, ids, weights, beta, start):
        if beta == 0:
            precision = (1 + weights.sum()) * np.eye(COLUMNS)
            return np.linalg.solve(precision, weights @ self.x[ids]), precision

        def slope_and_precision(theta):
            away = self.x[ids] - theta
            belief = weights * beta * self.beta_likelihood(ids, theta[None], beta)[:, 0]
            return belief @ away - theta, (1 + belief.sum()) * np.eye(COLUMNS) - beta * (away.T * belief) @ away

        return newton(slope_and_precision, start)


class Linear:
    """Responses N(z·θ, 0.7²) with z = (x, 1), prior N(0, I)."""

    noise = 0.7
    model = LinearRegression(noise=noise)

    def __init__(self, x, y):
        self.z, self.y = np.column_stack([x, np.ones(len(x))]), y

    def log_likelihood(self, ids, thetas):
        away = (self.y[ids, None] - self.z[ids] @ thetas.T) / self.noise
        return -0.5 * away**2 - np.log(self.noise * np.sqrt(2 * np.pi))

    def beta_likelihood(self, ids, thetas, beta):
        integral = (2 * np.pi * self.noise**2) ** (-beta / 2) * (1 + beta) ** -0.5
        return np.exp(beta * self.log_likelihood(ids, thetas)) / beta / integral

    def posterior(self, ids, weights, beta, start):
        assert beta == 0
        z = self.z[ids]
        precision = np.eye(COLUMNS + 1) + (z.T * weights) @ z / self.noise**2
        return np.linalg.solve(precision, (z.T * weights) @ self.y[ids] / self.noise**2), precision


class Logistic:
    """Labels ±1 with log-odds z·θ, prior N(0, I)."""

    model = LogisticRegression()

    def __init__(self, x, y):
        self.z, self.y = np.column_stack([x, np.ones(len(x))]), y

    def log_likelihood(self, ids, thetas):
        return -np.logaddexp(0, -self.y[ids, None] * (self.z[ids] @ thetas.T))

    def beta_likelihood(self, ids, thetas, beta):
        return self._beta_likelihood(self.y[ids, None] * (self.z[ids] @ thetas.T), beta)

    @staticmethod
    def _beta_likelihood(margin, beta):
        p = 1 / (1 + np.exp(-margin))
        return p**beta / beta - (p ** (1 + beta) + (1 - p) ** (1 + beta)) / (1 + beta)

    def posterior(self, ids, weights, beta, start):
        z = self.y[ids, None] * self.z[ids]

        def slope(margin):
            if beta == 0:
                return 1 / (1 + np.exp(margin))
            # The derivative of an analytic function by a step into the complex plane.
            return self._beta_likelihood(margin + 1e-20j, beta).imag / 1e-20

        def slope_and_precision(theta):
            margin = z @ theta
            curvature = (slope(margin + 1e-5) - slope(margin - 1e-5)) / 2e-5
            return z.T @ (weights * slope(margin)) - theta, np.eye(COLUMNS + 1) - (z.T * (weights * curvature)) @ z

        return newton(slope_and_precision, start)


def newton(slope_and_precision, theta):
    """Return a mode near `theta` and the precision there."""
    for _ in range(30):
        slope, precision = slope_and_precision(theta)
        theta = theta + np.linalg.solve(precision, slope)
    assert np.abs(slope).max() < 1e-6
    return theta, precision


class Adam:
    def __init__(self, places):
        self.first, self.second, self.time = np.zeros(places), np.zeros(places), 0

    def __call__(self, gradient):
        self.time += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        return self.first / (1 - 0.9**self.time) / (np.sqrt(self.second / (1 - 0.999**self.time)) + 1e-8)


def by_hand(problem, key, *, beta, target, optimiser, rate, draws, steps, batch_select, batch_optimise):
    """Return the indices in order of insertion and the list of weights after every outer iteration."""

    def centred(ids, thetas):
        f = problem.log_likelihood(ids, thetas) if beta == 0 else problem.beta_likelihood(ids, thetas, beta)
        return f - f.mean(1, keepdims=True)

    def draw(noise):
        nonlocal mode
        mode, precision = problem.posterior(members, weights, target, mode)
        return mode + np.linalg.solve(np.linalg.cholesky(precision).T, noise.T).T

    p = problem.model.parameter_count(COLUMNS)
    members, weights, mode, path = np.array([], int), np.array([]), np.zeros(p), []
    for m in range(1, SIZE + 1):
        select_key, steps_key, noise_key = jax.random.split(jax.random.fold_in(key, m), 3)
        noise = np.asarray(jax.random.normal(noise_key, ((1 + steps) * draws * p,)), np.float64)
        noise = noise.reshape(1 + steps, draws, p)

        thetas = draw(noise[0])
        batch = np.asarray(subset(select_key, ROWS, batch_select))
        candidates, kept = centred(batch, thetas), centred(members, thetas)
        residual = ROWS / batch_select * candidates.sum(0) - weights @ kept
        gains = candidates @ residual / np.linalg.norm(candidates, axis=1)
        gains[np.isin(batch, members)] = -np.inf
        member_gains = np.abs(kept @ residual / np.linalg.norm(kept, axis=1))
        if gains.max() > member_gains.max(initial=-np.inf):
            members, weights = np.append(members, batch[gains.argmax()]), np.append(weights, 0.0)

        direction = Adam(len(members)) if optimiser == "adam" else lambda gradient: gradient
        for t, step_key in enumerate(jax.random.split(steps_key, steps), start=1):
            thetas = draw(noise[t])
            batch = np.asarray(subset(step_key, ROWS, batch_optimise))
            kept = centred(members, thetas)
            residual = ROWS / batch_optimise * centred(batch, thetas).sum(0) - weights @ kept
            weights = np.maximum(weights - rate(t) * direction(-kept @ residual / draws), 0)
        path.append(weights)
    return members, path


CASES = [
    pytest.param(Gaussian, 0.1, "beta", "adam", 1.0, 2e-2, id="gaussian, β = 0.1, β-posterior, Adam"),
    pytest.param(Logistic, 0.5, "beta", "adam", 1.0, 2e-2, id="logistic, β = 0.5, β-posterior, Adam"),
    pytest.param(Gaussian, 0.0, "classical", "adam", 1.0, 2e-3, id="gaussian, SparseVI, Adam"),
    pytest.param(Gaussian, 0.3, "classical", "adam", 1.0, 2e-3, id="gaussian, β = 0.3, Adam"),
    pytest.param(Gaussian, 0.3, "classical", "sgd", 0.05, 2e-3, id="gaussian, β = 0.3, SGD"),
    pytest.param(Linear, 0.4, "classical", "adam", 1.0, 2e-3, id="linear, β = 0.4, Adam"),
    pytest.param(Logistic, 0.5, "classical", "adam", 1.0, 2e-2, id="logistic, β = 0.5, Adam"),
]


@pytest.mark.parametrize(("kind", "beta", "target", "optimiser", "c0", "tolerance"), CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_run_equals_the_paper_written_out_in_numpy(kind, beta, target, optimiser, c0, tolerance, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 1, (ROWS, COLUMNS)).astype(np.float32).astype(np.float64)
    y = (x @ [1.0, -2.0, 0.5] + rng.normal(size=ROWS)).astype(np.float32).astype(np.float64)
    if kind is Logistic:
        y = np.sign(y)
    rows = Rows(jnp.asarray(x, jnp.float32), None if kind is Gaussian else jnp.asarray(y, jnp.float32))
    key = jax.random.key(seed)
    found = incremental(
        kind.model,
        rows,
        key,
        size=SIZE,
        beta=beta,
        sampler_target=target,
        optimiser=optimiser,
        learning_rate=c0,
        **QUICK,
    )
    drawn_with = beta if target == "beta" else 0.0
    members, path = by_hand(
        kind(x, y), key, beta=beta, target=drawn_with, optimiser=optimiser, rate=lambda t: c0 / t, **QUICK
    )

    assert found.indices.tolist() == members.tolist()
    assert found.weights.shape == (SIZE, len(members))
    for weights, expected in zip(found.weights, path, strict=True):
        padded = np.pad(expected, (0, len(members) - len(expected)))
        np.testing.assert_allclose(weights, padded, rtol=tolerance, atol=tolerance * expected.max())
