"""Models of `reference_numpy`: what is assumed of a row, and how the coreset posterior is drawn from.

Of each there is a plain version, as a researcher writes it, and a tuned one, the strict yardstick.

The β-likelihood ``f = p^β / β - ∫p^(1+β) / (1 + β)``, θ-free terms aside, has the sign and the scale with which it
tends to the log-likelihood as β → 0. Where the power integral is the same for all θ, as for the mean of a Gaussian, it
is a constant and ``f`` is divided by it, so that a typical clean row counts as about one observation for any β.
"""

import numpy as np
from scipy import linalg, optimize


def signed_rows(x, y):
    """Rows ``y [x, 1]`` of a logistic regression, whose likelihood needs ``row·θ`` alone."""
    y = np.asarray(y, dtype=float)
    if not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError(f"labels must be -1 or +1, got {np.unique(y)[:5]}; try 2 * y - 1")
    return y[:, None] * np.column_stack([x, np.ones(len(x))])


def unlabelled_rows(x, y=None):
    """Rows of a Gaussian as they are, shape (N, d)."""
    if y is not None:
        raise ValueError("the Gaussian mean has no outcome; pass y=None")
    return np.asarray(x, dtype=float)


def logistic_hessian(theta, rows, weights, beta):
    """Hessian of the objective of both logistic models."""
    a, b = _inverse_chances(rows @ theta)
    curvature = a**-beta / b / b * (beta / b - 2.0 / a)
    curvature += b ** -(1.0 + beta) / a * (1.0 / b - (1.0 + beta) / a)
    return np.eye(len(theta)) - (rows.T * (weights * curvature)) @ rows


class Logistic:
    """Logistic regression, labels in {-1, +1}, intercept last, prior N(0, I): the plain yardstick.

    The formula of the paper's appendix, and a search from the prior mean every time, as in the published code. Below
    log-odds of -709 a label gets probability 0: no loss if β >= 0.05.
    """

    rows = staticmethod(signed_rows)
    hessian = staticmethod(logistic_hessian)

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
        return laplace(self, rng, rows, weights, count, beta, np.zeros(rows.shape[1]))


class TunedLogistic:
    """The model of `Logistic` tuned by hand, the strict yardstick: shared powers, warm searches."""

    rows = staticmethod(signed_rows)
    hessian = staticmethod(logistic_hessian)

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
        return laplace(self, rng, rows, weights, count, beta, mode, {"hess_inv0": covariance})


class GaussianMean:
    """Mean of a Gaussian with known covariance Σ, prior N(μ0, Σ0): the plain yardstick.

    What is not given is N(0, I), or the identity for Σ, in as many dimensions as the rows have.
    """

    rows = staticmethod(unlabelled_rows)

    def __init__(self, covariance=None, prior_mean=None, prior_covariance=None):
        self.given = covariance, prior_mean, prior_covariance
        self.inverted = None

    def known(self, dim):
        """``Σ⁻¹``, ``μ0`` and ``Σ0⁻¹``, inverted once."""
        if self.inverted is None or len(self.inverted[1]) != dim:
            pairs = zip(self.given, (np.eye(dim), np.zeros(dim), np.eye(dim)), strict=True)
            covariance, mean, prior = (default if given is None else np.asarray(given) for given, default in pairs)
            if not covariance.shape == prior.shape == (dim, dim) or mean.shape != (dim,):
                raise ValueError(f"rows have {dim} columns: give (d, d) covariances and a (d,) mean with d = {dim}")
            self.inverted = np.linalg.inv(covariance), mean, np.linalg.inv(prior)
        return self.inverted

    def likelihood(self, theta, rows, beta):
        """β-likelihood divided by its power integral, without θ-free terms, (rows, draws)."""
        precision, _, _ = self.known(rows.shape[1])
        scaled = rows @ precision
        row_square, theta_square = (rows * scaled).sum(axis=1), (theta * (theta @ precision)).sum(axis=1)
        log_density = -0.5 * (row_square[:, None] + theta_square - 2.0 * scaled @ theta.T)
        return log_density if beta == 0.0 else _ratio(log_density, beta, rows.shape[1]) / beta

    def objective(self, theta, rows, weights, beta):
        """Negative log density of the weighted posterior and its gradient."""
        precision, prior_mean, prior_precision = self.known(len(theta))
        shift, gap = theta - prior_mean, rows - theta
        log_density = -0.5 * (gap * (gap @ precision)).sum(axis=1)
        ratio = _ratio(log_density, beta, len(theta))
        value = 0.5 * shift @ prior_precision @ shift - weights @ (ratio / beta if beta > 0.0 else log_density)
        return value, prior_precision @ shift - precision @ ((weights * ratio) @ gap)

    def hessian(self, theta, rows, weights, beta):
        """Hessian of the objective."""
        precision, _, prior_precision = self.known(len(theta))
        gap = rows - theta
        pull = gap @ precision
        mass = weights * _ratio(-0.5 * (gap * pull).sum(axis=1), beta, len(theta))
        return prior_precision + mass.sum() * precision - beta * (pull.T * mass) @ pull

    def draw(self, rng, rows, weights, count, beta, start=None):
        """Exact draws if `beta` is 0, else Laplace draws, mode and covariance; `start` is unused."""
        precision, prior_mean, prior_precision = self.known(rows.shape[1])
        if beta > 0.0:
            return laplace(self, rng, rows, weights, count, beta, prior_mean)
        inverse = inverse_factor(prior_precision + weights.sum() * precision)
        mean = inverse.T @ (inverse @ (prior_precision @ prior_mean + precision @ (weights @ rows)))
        return mean + rng.standard_normal((count, len(mean))) @ inverse, None


class TunedGaussianMean:
    """`GaussianMean` for Σ = I and prior N(0, I), the strict yardstick: no matrix but the rows."""

    rows = staticmethod(unlabelled_rows)

    def likelihood(self, theta, rows, beta):
        """β-likelihood divided by its power integral, without θ-free terms, (rows, draws)."""
        log_density = rows @ theta.T
        log_density -= 0.5 * np.einsum("nd,nd->n", rows, rows)[:, None]
        log_density -= 0.5 * np.einsum("sd,sd->s", theta, theta)
        return log_density if beta == 0.0 else _ratio(log_density, beta, rows.shape[1]) / beta

    def draw(self, rng, rows, weights, count, beta, start=None):
        """Exact draws from the classical weighted posterior; nothing to start from."""
        precision = 1.0 + weights.sum()
        mean = weights @ rows / precision
        return mean + rng.standard_normal((count, rows.shape[1])) / np.sqrt(precision), None


def laplace(model, rng, rows, weights, count, beta, start, options=None):
    """Draws from the Laplace approximation of a weighted posterior; also its mode and covariance."""
    args = rows, weights, beta
    mode = optimize.minimize(model.objective, start, args, "BFGS", jac=True, options=options).x
    inverse = inverse_factor(model.hessian(mode, *args))
    theta = mode + rng.standard_normal((count, len(mode))) @ inverse
    return theta, (mode, inverse.T @ inverse)


def inverse_factor(precision):
    """``L⁻¹`` of ``precision = L Lᵀ``: a standard normal row times it has that precision."""
    return linalg.solve_triangular(cholesky(precision), np.eye(len(precision)), lower=True, check_finite=False)


def cholesky(precision):
    """Lower Cholesky factor; an indefinite matrix gets eigenvalues of at least 1, as N(0, I) has."""
    try:
        return np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        value, vector = np.linalg.eigh(precision)
        return np.linalg.cholesky((vector * np.maximum(value, 1.0)) @ vector.T)


def _ratio(log_density, beta, dim):
    """``p^β`` of a Gaussian over its power integral: the powers of 2π and of |Σ| cancel."""
    return np.exp(beta * log_density + 0.5 * dim * np.log1p(beta))


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
