"""Small problems for the three models, each with its log-posterior written out in double precision."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

from betacores.models import GaussianMean, LinearRegression, LogisticRegression, Model, Rows, gaussian_prior

ROWS = 40
COVARIANCE = np.array([[2.0, 0.7], [0.7, 0.5]])
NOISE = 0.6
TRUTH = {"gaussian": np.array([0.8, -0.5]), "line": np.array([0.8, -0.5, 0.3])}


@dataclass(frozen=True)
class Case:
    """A model with rows, weights and a prior that is neither centred nor independent."""

    name: str
    model: Model
    rows: Rows
    weights: jnp.ndarray
    prior_mean: np.ndarray
    prior_covariance: np.ndarray

    @property
    def z(self):
        """What multiplies θ: the rows' covariates, followed by a one."""
        x = np.asarray(self.rows.x, np.float64)
        return x if self.name == "gaussian" else np.column_stack([x, np.ones(len(x))])

    @property
    def y(self):
        return np.asarray(self.rows.y, np.float64)

    def likelihood(self, theta, beta):
        """`f` of every row; a constant is left out for location families."""
        if self.name == "logistic":
            up, down = -np.logaddexp(0, -self.z @ theta), -np.logaddexp(0, self.z @ theta)
            own = np.where(self.y > 0, up, down)
            if beta == 0:
                return own
            integral = np.exp((1 + beta) * up) + np.exp((1 + beta) * down)
            return np.expm1(beta * own) / beta - (integral / (1 + beta) - 1)
        if self.name == "gaussian":
            own, d, det = stats.multivariate_normal(theta, COVARIANCE).logpdf(self.z), 2, np.linalg.det(COVARIANCE)
        else:
            own, d, det = stats.norm.logpdf(self.y, self.z @ theta, NOISE), 1, NOISE**2
        if beta == 0:
            return own
        integral = ((2 * np.pi) ** d * det) ** (-beta / 2) * (1 + beta) ** (-d / 2)
        return np.expm1(beta * own) / (beta * integral)

    def log_posterior(self, theta, weights, beta):
        """`Σ_n w_n f_n + log π0`."""
        away = np.asarray(theta, np.float64) - self.prior_mean
        prior = -0.5 * away @ np.linalg.solve(self.prior_covariance, away)
        return np.asarray(weights, np.float64) @ self.likelihood(theta, beta) + prior

    def mode(self, weights, beta, start):
        """The mode by SciPy, polished by Newton steps on finite differences."""
        found = optimize.minimize(lambda at: -self.log_posterior(at, weights, beta), start, method="BFGS").x
        for _ in range(3):
            gradient, hessian = self.derivatives(found, weights, beta)
            found = found - np.linalg.solve(hessian, gradient)
        return found

    def derivatives(self, theta, weights, beta):
        """Gradient and Hessian by central differences."""
        return differences(lambda at: self.log_posterior(at, weights, beta), theta)

    def exact(self, weights):
        """Mean and covariance of the classical posterior, where it is Gaussian."""
        weights = np.asarray(weights, np.float64)
        prior = np.linalg.inv(self.prior_covariance)
        if self.name == "gaussian":
            row = np.linalg.inv(COVARIANCE)
            precision, shift = weights.sum() * row, row @ (weights @ self.z)
        else:
            precision = (self.z.T * weights) @ self.z / NOISE**2
            shift = self.z.T @ (weights * self.y) / NOISE**2
        covariance = np.linalg.inv(prior + precision)
        return covariance @ (prior @ self.prior_mean + shift), covariance


def differences(function, theta):
    theta = np.asarray(theta, np.float64)
    units = np.eye(len(theta))
    small, large = 1e-5, 2e-4
    gradient = [(function(theta + small * u) - function(theta - small * u)) / (2 * small) for u in units]
    hessian = [
        [
            sum(s * t * function(theta + large * (s * u + t * v)) for s in (1, -1) for t in (1, -1)) / (4 * large**2)
            for u in units
        ]
        for v in units
    ]
    return np.array(gradient), np.array(hessian)


def _make_case(name, seed=0, outliers=4):
    """Rows of the model, the last few of them far off, and weights between 0 and 3."""
    rng = np.random.default_rng(seed)
    p = 2 if name == "gaussian" else 3
    mean, spread = np.array([0.5, -1.0, 0.25])[:p], np.linalg.cholesky(COVARIANCE)
    root = rng.normal(size=(p, p))
    covariance = np.eye(p) + 0.3 * root @ root.T
    prior = gaussian_prior(mean, covariance)
    noise = rng.normal(size=(ROWS, 2))
    if name == "gaussian":
        x, y, model = TRUTH["gaussian"] + noise @ spread.T, None, GaussianMean(COVARIANCE, prior)
        x[ROWS - outliers :] += 9.0
    else:
        x, eta = noise, noise @ TRUTH["line"][:2] + TRUTH["line"][2]
        if name == "linear":
            y, model = eta + NOISE * rng.normal(size=ROWS), LinearRegression(NOISE, prior=prior)
            y[ROWS - outliers :] += 8.0
        else:
            y = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-2 * eta)), 1.0, -1.0)
            model = LogisticRegression(prior=prior)
    weights = rng.uniform(0.0, 3.0, ROWS) * (rng.random(ROWS) < 0.8)
    rows = Rows(jnp.asarray(x, jnp.float32), None if y is None else jnp.asarray(y, jnp.float32))
    return Case(name, model, rows, jnp.asarray(weights, jnp.float32), mean, covariance)


@pytest.fixture(scope="session")
def make_case():
    """How to make a case: by the model's name, seed and number of outliers."""
    return _make_case


@pytest.fixture(params=["gaussian", "linear", "logistic"])
def case(request):
    """Each model in turn."""
    return _make_case(request.param)


@pytest.fixture(params=["gaussian", "linear"])
def conjugate_case(request):
    """Each model whose classical posterior is Gaussian."""
    return _make_case(request.param)


@pytest.fixture
def logistic():
    """Logistic regression alone."""
    return _make_case("logistic")
