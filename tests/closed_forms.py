"""What the package computes, written out in double precision: likelihoods, posteriors and divergences.

The prior is standard normal, the intercept the last parameter, and the noise of a line `NOISE`.
"""

import numpy as np
from scipy import special

from betacores.sources import ArraySource

NOISE = 0.7


def source_of(x, y=None, weights=None):
    x = np.asarray(x, np.float32)
    return ArraySource(x, None if y is None else np.asarray(y, np.float32), weights=weights)


def linear_table(seed, count, columns):
    """Rows around a line."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, columns))
    return x, x @ np.linspace(1, -1, columns) + 0.3 + NOISE * rng.normal(size=count)


def features(name, x):
    """What multiplies θ, of rows as single precision has them."""
    x = np.asarray(x, np.float32).astype(np.float64)
    return x if name == "gaussian" else np.column_stack([x, np.ones(len(x))])


def likelihood(name, theta, x, y, beta):
    """`f_n` of every row up to a constant, and its gradient."""
    z = features(name, x)
    if name == "gaussian":
        away, d = z - theta, z.shape[1]
        square, slope = (away**2).sum(1), away
    else:
        eta, y, d = z @ theta, np.asarray(y, np.float64), 1
    if name == "linear":
        square, slope = ((y - eta) / NOISE) ** 2, ((y - eta) / NOISE**2)[:, None] * z
    if name == "logistic":
        p, own = special.expit(eta), special.expit(y * eta)
        if beta == 0:
            return np.log(own), (y * (1 - own))[:, None] * z
        # Both labels' p^(1+β) by η: (1+β) (p^(1+β) q − q^(1+β) p).
        value = np.expm1(beta * np.log(own)) / beta - (p ** (1 + beta) + (1 - p) ** (1 + beta)) / (1 + beta)
        bend = own**beta * y * (1 - own) - (p ** (1 + beta) * (1 - p) - (1 - p) ** (1 + beta) * p)
        return value, bend[:, None] * z
    if beta == 0:
        return -0.5 * square, slope
    # p^β / c: the normalising constants cancel.
    score = (1 + beta) ** (d / 2) * np.exp(-0.5 * beta * square)
    return score / beta, score[:, None] * slope


def exact_posterior(x, y=None, weights=None, noise=NOISE):
    """Mean and precision of the weighted classical posterior of a line, or of a mean where there is no response."""
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    if y is None:
        precision = 1 + weights.sum()
        return weights @ features("gaussian", x) / precision, precision * np.eye(np.shape(x)[1])
    z = features("linear", x)
    precision = np.eye(z.shape[1]) + (z.T * weights) @ z / noise**2
    return np.linalg.solve(precision, z.T @ (weights * np.asarray(y, np.float32)) / noise**2), precision


def gaussian_divergence(mean, precision, other_mean, other_precision):
    """KL divergence between Gaussians given by mean and precision."""
    away = mean - other_mean
    _, log_own = np.linalg.slogdet(precision)
    _, log_other = np.linalg.slogdet(other_precision)
    return 0.5 * (
        np.trace(np.linalg.solve(precision, other_precision))
        + away @ other_precision @ away
        - len(mean)
        + log_own
        - log_other
    )


def exact_kl(coreset, x, y=None, weights=None):
    """Divergence from a coreset's classical posterior to that of weighted rows, of a line or of a mean."""
    own = exact_posterior(coreset.X, coreset.y, coreset.weights)
    return gaussian_divergence(*own, *exact_posterior(x, y, weights))


def mean_divergence(points, weights, x):
    """`KL(π_w ‖ π)` between the posteriors of a Gaussian's mean given weighted points and all rows, prior N(0, I)."""
    points, weights = np.asarray(points, np.float64), np.asarray(weights, np.float64)
    own, full = 1 + weights.sum(), 1 + len(x)
    away = weights @ points / own - x.sum(0) / full
    return 0.5 * (x.shape[1] * (full / own - 1 - np.log(full / own)) + full * away @ away)
