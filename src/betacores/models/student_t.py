"""Regression with heavy-tailed noise: `y = z·θ + σ ε`, `ε` of Student's t with ν degrees of freedom.

With `C = Γ((ν+1)/2) / (Γ(ν/2) √(νπ))` and `m = (ν+1)(1+β)/2` the power integral is

    ∫ p^(1+β) = σ^−β C^(1+β) √(νπ) Γ(m − 1/2) / Γ(m).

What an unknown σ asks of prior and units: `betacores.models.scaled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from betacores.models.base import Response, Rows
from betacores.models.prior import GaussianPrior
from betacores.models.scaled import ScaledPredictor, positive

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Fourth powers of residuals stay finite; no response is farther out in earnest.
FARTHEST = 1e8


@final
class StudentTRegression(ScaledPredictor):
    """A real response linear in the covariates, with Student-t noise.

    Parameters
    ----------
    degrees
        Degrees of freedom ν.
    scale
        σ if it is known.
    intercept
        Whether to add a constant to the linear predictor (after the coefficients of the columns).
    prior
        Prior of the coefficients; independent N(0, 1) if not given.
    scale_prior
        Prior of log σ; N(log typical, 1) if not given.
    typical
        A rough σ, which sets how much a row counts when β > 0 and where the default prior is; ``"auto"`` leaves it
        to `summarize` to estimate it robustly.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "student-t"
    response: ClassVar[Response] = "real"
    auxiliary: ClassVar[str] = "log_scale"

    def __init__(
        self,
        degrees: float = 4.0,
        scale: float | None = None,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        scale_prior: GaussianPrior | None = None,
        typical: float | Literal["auto"] = "auto",
        clean: float | Literal["auto"] = "auto",
    ):
        self.degrees = positive(degrees, "degrees")
        self._set(scale, typical, intercept, prior, scale_prior, clean)

    def response_log_likelihood(self, eta: Any, a: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-density of responses."""
        z = jnp.clip((y - eta) * jnp.exp(-a), -FARTHEST, FARTHEST)
        return self._log_constant() - a - 0.5 * (self.degrees + 1) * jnp.log1p(z**2 / self.degrees)

    def log_integral(self, a: Any, beta: Any) -> Float[Array, "..."]:
        """Return the log of the power integral."""
        m = 0.5 * (self.degrees + 1) * (1 + beta)
        tails = 0.5 * jnp.log(jnp.pi * self.degrees) + gammaln(m - 0.5) - gammaln(m)
        return -beta * a + (1 + beta) * self._log_constant() + tails

    def _log_constant(self) -> Float[Array, ""]:
        nu = jnp.asarray(self.degrees, jnp.result_type(float))
        return gammaln(0.5 * (nu + 1)) - gammaln(0.5 * nu) - 0.5 * jnp.log(nu * jnp.pi)

    def _robust_fit(self, rows: Rows) -> tuple[np.ndarray, float]:
        from scipy import stats

        from betacores.noise import robust_line

        line, noise = robust_line(rows.x, rows.y, self.intercept)
        # The noise found is that of a Gaussian with the same middle.
        return line, noise * float(stats.norm.ppf(0.75) / stats.t.ppf(0.75, float(self.degrees)))
