"""Positive rows: independent exponential columns with rates `exp(θ_j)`.

The likelihood is the density of the cells' logarithms, `p = Π_j u_j e^(−u_j)` with `u_j = x_j exp(θ_j)`, in which `θ`
is a location. The power integral is then a constant, `∫ p^(1+β) = (Γ(1+β) / (1+β)^(1+β))^d`, whatever the units. It
differs from the density of the cells by a factor that no ordinary likelihood feels; with that density the power
integral would be `Π_j exp(β θ_j) / (1+β)`, a table in hours would be read otherwise than one in seconds, and cells that
are absurdly small would count like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, final

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from betacores.models.base import Model, Rows
from betacores.models.cells import refuse
from betacores.models.family import ExponentialFamily
from betacores.models.prior import GaussianPrior, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# The logarithm of less is not finite in single precision; no such cell passes the door.
SMALLEST = 1e-30
# Rates are held within `exp(±40)`.
REACH = 40.0


@final
class ExponentialDensity(ExponentialFamily):
    """Rows of positive numbers, every column exponential with a rate of its own.

    Parameters
    ----------
    prior
        Prior of the logarithms of the rates; independent N(0, 10²) if not given.
    """

    name: ClassVar[str] = "exponential"
    movable: ClassVar[bool] = False

    def __init__(self, prior: GaussianPrior | None = None):
        self.prior = prior or gaussian_prior(0.0, 100.0)

    def parameter_count(self, columns: int) -> int:
        """One rate a column."""
        return columns

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Rates carry their column's name."""
        return [f"log_rate {column}" for column in columns]

    def check_rows(self, x: np.ndarray, columns: list[str]) -> Model:
        """Refuse cells that are not above zero."""
        refuse(x, columns, x <= 0, "numbers above 0", "drop these rows, or choose model='gaussian-density'")
        return self

    def statistics(self, rows: Rows) -> Float[Array, "*n q"]:
        """Return one, the cells, and the sum of their logarithms."""
        x = jnp.maximum(rows.x, SMALLEST)
        return jnp.concatenate([jnp.ones_like(x[..., :1]), x, jnp.log(x).sum(-1, keepdims=True)], axis=-1)

    def natural(self, theta: Float[Array, " p"], columns: int) -> Float[Array, " q"]:
        """Return the natural parameters."""
        del columns
        held = jnp.clip(theta, -REACH, REACH)
        return jnp.concatenate([held.sum()[None], -jnp.exp(held), jnp.ones_like(held[:1])])

    def log_integral(self, theta: Any, columns: int, beta: Any) -> Float[Array, ""]:
        """Return the log of the power integral, a constant."""
        del theta
        return self.log_temperature(columns, beta)

    def log_temperature(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        # It vanishes with β, but for its rounding, which would be divided by next to nothing.
        return jnp.where(beta < 1e-6, 0.0, columns * (gammaln(1.0 + beta) - (1 + beta) * jnp.log1p(beta)))

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        return self.prior.log_density(theta)

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from the rates whose medians are those of the columns."""
        return np.log(np.log(2.0) / np.maximum(np.median(rows.x, axis=0), SMALLEST))
