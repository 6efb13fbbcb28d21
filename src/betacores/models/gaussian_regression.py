"""Linear regression with unknown noise: `y = z·θ + σ ε`, `ε ~ N(0, 1)`, parameters `(coefficients, log σ)`.

The power integral is `(2πσ²)^(−β/2) (1+β)^(−1/2)`. What an unknown σ asks of prior and units:
`betacores.models.scaled`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Response, Rows
from betacores.models.prior import GaussianPrior
from betacores.models.scaled import ScaledPredictor

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Residuals beyond so many σ have the least log-likelihood there is; their squares stay finite.
FARTHEST = 2e5


@final
class GaussianRegression(ScaledPredictor):
    """A real response linear in the covariates, with Gaussian noise of unknown size.

    Parameters
    ----------
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

    name: ClassVar[str] = "gaussian"
    response: ClassVar[Response] = "real"
    auxiliary: ClassVar[str] = "log_scale"

    def __init__(
        self,
        intercept: bool = True,
        prior: GaussianPrior | None = None,
        scale_prior: GaussianPrior | None = None,
        typical: float | Literal["auto"] = "auto",
        clean: float | Literal["auto"] = "auto",
    ):
        self._set(None, typical, intercept, prior, scale_prior, clean)

    def response_log_likelihood(self, eta: Any, a: Any, y: Any) -> Float[Array, "..."]:
        """Return the Gaussian log-density of responses."""
        z = jnp.clip((y - eta) * jnp.exp(-a), -FARTHEST, FARTHEST)
        return -0.5 * z**2 - a - 0.5 * jnp.log(2 * jnp.pi)

    def log_integral(self, a: Any, beta: Any) -> Float[Array, "..."]:
        """Return the log of the power integral."""
        return -beta * (a + 0.5 * jnp.log(2 * jnp.pi)) - 0.5 * jnp.log1p(beta)

    def _robust_fit(self, rows: Rows) -> tuple[np.ndarray, float]:
        from betacores.noise import robust_line

        return robust_line(rows.x, rows.y, self.intercept)
