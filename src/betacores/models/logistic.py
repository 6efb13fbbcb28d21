"""Logistic regression: `y ∈ {−1, +1}`, `P(y | x, θ) = 1 / (1 + exp(−y z·θ))`, `z = (x, 1)`, Gaussian prior.

The power integral is the sum over both labels, `p^(1+β) + q^(1+β)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp

from betacores.models.base import LinearPredictor, Response, Rows
from betacores.models.prior import GaussianPrior, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@final
class LogisticRegression(LinearPredictor):
    """A binary response with log-odds linear in the covariates.

    Parameters
    ----------
    intercept
        Whether to add a constant to the linear predictor (as the last parameter).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    """

    name: ClassVar[str] = "logistic"
    response: ClassVar[Response] = "binary"
    log_concave: ClassVar[bool] = True

    def __init__(self, intercept: bool = True, prior: GaussianPrior | None = None):
        self.intercept = bool(intercept)
        self.prior = prior or gaussian_prior()

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def compact(self, rows: Rows) -> tuple[LogisticRegression, Rows]:
        """Return rows `y z` without label, and the model of them: the likelihood needs no more than `y η`."""
        return LogisticRegression(intercept=False, prior=self.prior), Rows(self.features(rows) * rows.y[:, None])

    def response_log_likelihood(self, eta: Float[Array, "..."], y: Any) -> Float[Array, "..."]:
        """Return `log sigmoid(y η)`; y = 1 if there is no label."""
        return _log_sigmoid(eta if y is None else y * eta)

    def response_power_integral(self, eta: Float[Array, "..."], beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return `p^(1+β) + q^(1+β)`."""
        log_p = _log_sigmoid(eta)
        return jnp.exp((1 + beta) * log_p) + jnp.exp((1 + beta) * (log_p - eta))

    def response_derivatives(
        self, eta: Float[Array, "..."], y: Any, beta: Float[Array, ""]
    ) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
        """Return the β-likelihood and its first two derivatives by η, with three exponentials and a logarithm.

        In `u = y η`, with `p = sigmoid(u)`, `q = 1 − p`, `a = p^β` and `b = q^β`, they are

            (a − 1)/β − (a p + b q)/(1+β) + 1,    q (a q + b p),    q (a q (β q − 2 p) + b p (q − p − β p)).
        """
        u = eta if y is None else y * eta
        small = jnp.exp(-jnp.abs(u))
        log_rest, rest = jnp.log(1 + small), 1 / (1 + small)
        low = small * rest
        p, q = jnp.where(u > 0, rest, low), jnp.where(u > 0, low, rest)
        power = beta * (jnp.minimum(u, 0) - log_rest)
        a, b = jnp.exp(power), jnp.exp(beta * (jnp.minimum(-u, 0) - log_rest))
        # Near zero the difference from one has no digits; the series has.
        series = power * (1 + power / 2 * (1 + power / 3 * (1 + power / 4)))
        lost = jnp.where(power > -0.1, series, a - 1)
        aq, bp = a * q, b * p
        value = lost * (1 / beta) - ((a * p + b * q) * (1 / (1 + beta)) - 1)
        slope = q * (aq + bp)
        curvature = q * (aq * (beta * q - 2 * p) + bp * (q - p - beta * p))
        return value, slope if y is None else y * slope, curvature


@jax.custom_jvp
def _log_sigmoid(u: Float[Array, "..."]) -> Float[Array, "..."]:
    # The plain logarithm costs half of log1p and differs from it by 1e-7 at most.
    return jnp.minimum(u, 0) - jnp.log(1 + jnp.exp(-jnp.abs(u)))


@_log_sigmoid.defjvp
def _log_sigmoid_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # By hand, since both parts have a kink at 0 that their sum has not, and 0 is where searches start.
    return _log_sigmoid(*primals), jax.nn.sigmoid(-primals[0]) * tangents[0]
