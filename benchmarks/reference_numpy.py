"""Algorithm 1 of the β-Cores paper in plain NumPy and SciPy: the yardstick of the compiled version.

Problem: choose M of N rows and weights ``w >= 0`` so that the coreset posterior
``π_w ∝ exp(Σ_m w_m f_m) π_0`` has a small reverse KL divergence to the full β-posterior.

Update: centre the rows' β-likelihoods over S draws from ``π_w`` (``ḡ``), estimate what the
coreset still misses on a minibatch of B rows (the residual ``R = N/B Σ_b ḡ_b - Σ_m w_m ḡ_m``),
add the row most correlated with ``R``, then take T projected Adam steps along ``ḡ·R / S``.

Reference: Manousakas & Mascolo, *β-Cores: Robust Large-Scale Bayesian Data Summarization in the
Presence of Outliers*, WSDM 2021. Signs and scale of the β-likelihood are those of DESIGN 2.1.
Its M is ``size``, S ``draws``, T ``steps``, B ``batch_select`` and ``batch_optimise``, c0
``learning_rate``. There are two logistic yardsticks with the same numbers: plain and tuned.
"""

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

TARGETS = ("beta", "classical")
TINY = np.sqrt(np.finfo(float).tiny)


class Path(NamedTuple):
    """Rows in order of insertion, shape (k,); weights after each iteration, shape (size, k)."""

    indices: np.ndarray
    weights: np.ndarray


class Problem(NamedTuple):
    """What stays fixed while a coreset is built; `target` is the β of the posterior drawn from."""

    model: "Logistic | TunedLogistic | GaussianMean"
    rows: np.ndarray
    beta: float
    target: float
    draws: int


def signed_rows(x, y):
    """Rows ``y [x, 1]`` of a logistic regression, whose likelihood needs ``row·θ`` alone."""
    y = np.asarray(y, dtype=float)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError(f"labels must be -1 or +1, got {np.unique(y)[:5]}; try 2 * y - 1")
    return y[:, None] * np.column_stack([x, np.ones(len(x))])


class Logistic:
    """Logistic regression, labels in {-1, +1}, intercept last, prior N(0, I): the plain yardstick.

    The formula of the paper's appendix, and a search from the prior mean every time, as in the
    published code. Below log-odds of -709 a label gets probability 0: no loss if β >= 0.05.
    """

    rows = staticmethod(signed_rows)

    def likelihood(self, theta, rows, beta):
        """β-likelihood less ``1 - 1/β`` of every row under every draw, shape (rows, draws)."""
        margin = rows @ theta.T
        if beta == 0.0:
            return _log_sigmoid(margin)
        a, b = _inverse_chances(margin)
        return a**-beta / beta - (a ** -(1.0 + beta) + b ** -(1.0 + beta)) / (1.0 + beta)

    def objective(self, theta, rows, weights, beta):
        """Negative log density of the weighted posterior and its gradient."""
        a, b = _inverse_chances(rows @ theta)
        slope = a**-beta / b / b + b ** -(1.0 + beta) / a
        value = 0.5 * theta @ theta - weights @ self.likelihood(theta, rows, beta)
        return value, theta - (weights * slope) @ rows

    def draw(self, rng, rows, weights, count, beta, start=None):
        """Laplace draws from the weighted posterior, its mode and covariance; `start` is unused."""
        prior_mean = np.zeros(rows.shape[1])
        return laplace(self.objective, rng, rows, weights, count, beta, prior_mean, {})


class TunedLogistic:
    """The model of `Logistic` tuned by hand, the strict yardstick: shared powers, warm searches."""

    rows = staticmethod(signed_rows)

    def likelihood(self, theta, rows, beta):
        """β-likelihood of every row under every draw, shape (rows, draws)."""
        margin = rows @ theta.T
        return _log_sigmoid(margin) if beta == 0.0 else _value(_powers(margin, beta), beta)

    def objective(self, theta, rows, weights, beta):
        """Negative log density of the weighted posterior and its gradient."""
        _, p, gain, q_power = powers = _powers(rows @ theta, beta)
        q = 1.0 - p
        slope = q * (q * (gain + 1.0) + p * q_power)
        value = 0.5 * theta @ theta - weights @ _value(powers, beta)
        return value, theta - (weights * slope) @ rows

    def draw(self, rng, rows, weights, count, beta, start=None):
        """Laplace draws, mode and covariance; the search starts from those of the last call."""
        mode, covariance = (np.zeros(rows.shape[1]), None) if start is None else start
        options = {"hess_inv0": covariance}
        return laplace(self.objective, rng, rows, weights, count, beta, mode, options)


class GaussianMean:
    """Mean of a Gaussian with unit covariance, prior N(0, I)."""

    def rows(self, x, y=None):
        """Rows as they are, shape (N, d)."""
        if y is not None:
            raise ValueError("the Gaussian mean has no outcome; pass y=None")
        return np.asarray(x, dtype=float)

    def likelihood(self, theta, rows, beta):
        """β-likelihood divided by its power integral, without θ-free terms, (rows, draws)."""
        log_density = rows @ theta.T
        log_density -= 0.5 * np.einsum("nd,nd->n", rows, rows)[:, None]
        log_density -= 0.5 * np.einsum("sd,sd->s", theta, theta)
        if beta == 0.0:
            return log_density
        # log(p^β / c): the powers of 2π cancel between the density and its power integral c.
        return np.exp(beta * log_density + 0.5 * rows.shape[1] * np.log1p(beta)) / beta

    def draw(self, rng, rows, weights, count, beta, start=None):
        """Exact draws from the classical weighted posterior; nothing to start from."""
        precision = 1.0 + weights.sum()
        mean = weights @ rows / precision
        return mean + rng.standard_normal((count, rows.shape[1])) / np.sqrt(precision), None


def beta_cores(
    x: np.ndarray,
    y: np.ndarray | None,
    *,
    model: Logistic | TunedLogistic | GaussianMean,
    size: int,
    beta: float,
    draws: int = 100,
    steps: int = 500,
    batch_select: int = 1000,
    batch_optimise: int = 200,
    learning_rate: float = 1.0,
    sampler_target: str = "beta",
    seed: int = 0,
) -> Path:
    """Build a coreset by Algorithm 1 and return its whole path.

    Parameters
    ----------
    x : array, shape (N, d)
        Covariates, or observations of the Gaussian.
    y : array of {-1, +1}, shape (N,), or None
        Labels; None for the Gaussian.
    model : Logistic, TunedLogistic or GaussianMean
        What is assumed of a row.
    size, draws, steps : int
        Outer iterations M, so the most rows the coreset can hold; parameter draws S for every
        estimate; weight updates T in every outer iteration.
    beta : float
        Robustness; 0 is the log-likelihood, hence SparseVI.
    batch_select, batch_optimise : int
        Minibatch rows for a selection and for a weight update, at most N.
    learning_rate : float
        c0 of the rate c0 / t.
    sampler_target : {"beta", "classical"}
        Likelihood of the coreset posterior that is drawn from. The vectors are β either way.
    seed : int
        Seed of every random choice.

    Returns
    -------
    Path
        Indices in order of insertion, fewer than `size` if a member was chosen again, and the
        weights after every outer iteration, zero before insertion.
    """
    if sampler_target not in TARGETS:
        raise ValueError(f"sampler_target must be one of {TARGETS}, got {sampler_target!r}")
    if beta < 0.0:
        raise ValueError(f"beta must be at least 0, got {beta}")
    if beta > 0.0 and sampler_target == "beta" and isinstance(model, GaussianMean):
        raise ValueError("GaussianMean cannot draw with sampler_target='beta'; use 'classical'")
    rng = np.random.default_rng(seed)
    target = beta if sampler_target == "beta" else 0.0
    problem = Problem(model, model.rows(x, y), beta, target, draws)
    members, weights, start = np.zeros(0, dtype=int), np.zeros(0), None
    path = np.zeros((size, size))
    for m in range(size):
        chosen, start = select(problem, rng, members, weights, start, batch_select)
        if chosen is not None and chosen not in members:
            members, weights = np.append(members, chosen), np.append(weights, 0.0)
        if len(members):
            weights, start = reweight(problem, rng, members, weights, start, batch_optimise, steps, learning_rate)
        path[m, : len(members)] = weights
    return Path(members, path[:, : len(members)])


def select(problem, rng, members, weights, start, batch_size):
    """Row most correlated with the residual, or None if no row can be told from a constant.

    A member wins by its absolute correlation, as both a lower and a higher weight may help.
    """
    model, rows, beta, target, draws = problem
    theta, start = model.draw(rng, rows[members], weights, draws, target, start)
    batch = rng.choice(len(rows), min(batch_size, len(rows)), replace=False, shuffle=False)
    pool, held = np.concatenate([members, batch]), len(members)
    values = model.likelihood(theta, rows[pool], beta)
    vectors = centre(values)
    residual = len(rows) / len(batch) * vectors[held:].sum(axis=0) - weights @ vectors[:held]
    norm = np.linalg.norm(vectors, axis=1)
    score = vectors @ residual / np.maximum(norm, TINY)
    score[:held] = np.abs(score[:held])
    # A row whose likelihood is the same under every draw has a centred vector of rounding errors
    # (or one whose square underflows): its direction means nothing.
    rounding = 4.0 * np.finfo(float).eps * np.sqrt(draws) * np.abs(values).max(axis=1)
    score[norm <= np.maximum(rounding, TINY)] = -np.inf
    # A member met again in the minibatch already has its score, the absolute one.
    score[held:][np.isin(batch, members)] = -np.inf
    best = np.argmax(score)
    return (pool[best] if np.isfinite(score[best]) else None), start


def reweight(problem, rng, members, weights, start, batch_size, steps, learning_rate):
    """Projected Adam steps on the weights, at rate ``learning_rate / t``, from fresh moments."""
    model, rows, beta, target, draws = problem
    inside = rows[members]
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for t in range(1, steps + 1):
        theta, start = model.draw(rng, inside, weights, draws, target, start)
        batch = rng.choice(len(rows), min(batch_size, len(rows)), replace=False, shuffle=False)
        # Centring is linear: the minibatch is summed first and centred once.
        whole = model.likelihood(theta, rows[batch], beta).sum(axis=0)
        vectors = centre(model.likelihood(theta, inside, beta))
        residual = len(rows) / len(batch) * centre(whole) - weights @ vectors
        gradient = -(vectors @ residual) / draws
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        step = (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        weights = np.maximum(weights - learning_rate / t * step, 0.0)
    return weights, start


def centre(values):
    """Subtract the mean over draws, the last axis."""
    return values - values.mean(axis=-1, keepdims=True)


def cholesky(precision):
    """Lower Cholesky factor; an indefinite matrix gets eigenvalues of at least the prior's, 1."""
    try:
        return np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        value, vector = np.linalg.eigh(precision)
        return np.linalg.cholesky((vector * np.maximum(value, 1.0)) @ vector.T)


def laplace(objective, rng, rows, weights, count, beta, start, options):
    """Draws from a logistic posterior's Laplace approximation; also its mode and covariance."""
    args, identity = (rows, weights, beta), np.eye(len(start))
    mode = optimize.minimize(objective, start, args, "BFGS", jac=True, options=options).x
    factor = cholesky(hessian(mode, *args))
    inverse = linalg.solve_triangular(factor, identity, lower=True, check_finite=False)
    theta = mode + rng.standard_normal((count, len(mode))) @ inverse
    return theta, (mode, inverse.T @ inverse)


def hessian(theta, rows, weights, beta):
    """Hessian of the objective of both logistic models."""
    a, b = _inverse_chances(rows @ theta)
    curvature = a**-beta / b / b * (beta / b - 2.0 / a)
    curvature += b ** -(1.0 + beta) / a * (1.0 / b - (1.0 + beta) / a)
    return np.eye(len(theta)) - (rows.T * (weights * curvature)) @ rows


def _inverse_chances(margin):
    """``1 + e^-m`` and ``1 + e^m``: one over the probabilities of the label and of the other."""
    with np.errstate(over="ignore"):
        return 1.0 + np.exp(-margin), 1.0 + np.exp(margin)


def _log_sigmoid(margin):
    # Several times faster than scipy.special.log_expit, and as safe at both ends.
    return np.minimum(margin, 0.0) - np.log1p(np.exp(-np.abs(margin)))


def _powers(margin, beta):
    """``log p, p, p^β - 1, q^β`` of the label's probability p and its complement q."""
    log_p = _log_sigmoid(margin)
    return log_p, np.exp(log_p), np.expm1(beta * log_p), np.exp(beta * (log_p - margin))


def _value(powers, beta):
    """β-likelihood from the `_powers` of the margin."""
    log_p, p, gain, q_power = powers
    if beta == 0.0:
        return log_p
    integral = p * (gain + 1.0) + (1.0 - p) * q_power
    return gain / beta - (integral / (1.0 + beta) - 1.0)
