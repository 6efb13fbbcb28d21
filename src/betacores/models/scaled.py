"""Regressions with an unknown scale: `θ = (coefficients, a)`, where `a` is the logarithm of a scale or of a shape.

A response is distributed around its linear predictor `η = z·coefficients` with a spread that `a` sets, and the power
integral depends on `a` alone, `I = I(a)`. This is where β-posteriors misbehave. Take Gaussian noise σ = exp(a):

    f_n = (σ^−β / β) [κ exp(−β e_n² / 2σ²) − κ' ] + constant,     κ = (2π)^(−β/2),  κ' = τ κ β (1+β)^(−3/2),

where τ is the share of clean rows (`betacores.clean_share`), without which σ would come out too large.

- **Escape.** As σ → ∞ every `f_n` tends to a constant, not to −∞: the log-posterior falls no further, and with a flat
  prior of `a` it has infinite mass out there, whatever the rows say. The mode, at which a share τ of N rows counts one
  each, is higher by `A = N τ / (β (1+β))`, so that with a proper prior the mass out there is

      at most  exp(−A) (N/2π)^(p/2) √|H/N| / π0(mode)  times that of the mode

  (`escape_bound`): less than e^−20 of it from a hundred rows and a few parameters on, for the default prior and β up
  to 1. (Were τ taken for 1 with a share ε > 1/(1+β) of dirty rows, A would be negative, and the mass at infinity all
  there is.) A mode or draws out there are warned of (`escaped`).
- **Units.** `p^β`, and so A, is multiplied by `σ^−β`. In units in which σ is 10⁴, a thousand rows at β = 0.5 count for
  ten. The typical scale, a rough robust one, is therefore made the unit: `f` is divided by `c = I(typical)`
  (`log_reference`), and the numbers above hold whatever the units.
- **Collapse.** As σ → 0, `f` grows like `σ^−β` if more than a share `τ β (1+β)^(−3/2)` of the rows lie on one line
  exactly, and for small β the line through as many rows as there are parameters has that share. No Gaussian prior of
  `a` stops that. So σ is held within a factor `e^10` of the typical one: `f` is bounded, and every proper prior gives a
  proper posterior.

The default prior of `a` is normal around that of the typical scale with standard deviation 1: proper, worth half a row,
and no help to a second mode far out.
"""

from __future__ import annotations

import abc
import math
import numbers
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Rows
from betacores.models.prior import GaussianPrior, check_length, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# The logarithm of a scale is held within so much of the typical one's: f stays bounded, and single precision suffices.
REACH = 10.0
# A scale twenty times the typical one describes no row.
ESCAPE = 3.0
ESCAPED = (
    "where the scale is so large that no row counts, and does not describe the rows. Choose a smaller β, or give the "
    "scale a prior that knows its size."
)


class ScaledPredictor(Model):
    """A model whose row enters through `η = z·coefficients`, with one further parameter that sets the spread.

    A subclass says how a response is distributed given `η` and the logarithm `a` of its scale or shape. When that is
    given, there is no such parameter, and the power integral is a constant.
    """

    intercept: bool
    known: float | None
    typical: float | str
    clean: float | str
    coefficient_prior: GaussianPrior
    scale_prior: GaussianPrior | None
    auxiliary: ClassVar[str]
    # Whether rows count less and less as the parameter grows (a scale), or as it falls (a shape).
    escapes_upwards: ClassVar[bool] = True

    def _set(
        self,
        known: float | None,
        typical: float | Literal["auto"],
        intercept: bool,
        prior: GaussianPrior | None,
        scale_prior: GaussianPrior | None,
        clean: float | Literal["auto"],
    ) -> None:
        name = self.auxiliary.removeprefix("log_")
        self.known = None if known is None else positive(known, name)
        self.typical = "auto" if typical == "auto" else positive(typical, "typical")
        # With a known scale the power integral is a constant, and the share of clean rows no matter.
        self.clean = 1.0 if known is not None else clean_share(clean)
        self.intercept = bool(intercept)
        self.coefficient_prior = prior or gaussian_prior()
        if scale_prior is not None and np.ndim(scale_prior.mean) + np.ndim(scale_prior.precision):
            raise ValueError(f"{name}_prior: it is of one number, log {name}; give one mean and one variance.")
        self.scale_prior = scale_prior

    @abc.abstractmethod
    def response_log_likelihood(self, eta: Any, a: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-likelihood of responses, elementwise."""

    @abc.abstractmethod
    def log_integral(self, a: Any, beta: Any) -> Float[Array, "..."]:
        """Return `log I(a)`."""

    @abc.abstractmethod
    def _robust_fit(self, rows: Rows) -> tuple[np.ndarray, float]:
        """Return coefficients that dirty rows do not move, and the scale or shape around them."""

    def features(self, rows: Rows) -> Float[Array, "*rows p"]:
        """Return `z`: the covariates, and a one for the intercept."""
        if not self.intercept:
            return rows.x
        return jnp.concatenate([rows.x, jnp.ones_like(rows.x[..., :1])], axis=-1)

    def split(self, theta: Float[Array, "*s p"]) -> tuple[Float[Array, "*s q"], Float[Array, "*s"]]:
        """Return the coefficients, and the logarithm of the scale, held within reach of the typical one."""
        if self.known is not None:
            return theta, jnp.broadcast_to(jnp.log(self.known), theta.shape[:-1])
        return theta[..., :-1], held(theta[..., -1], self.log_typical())

    def log_typical(self) -> Any:
        """Return the logarithm of the typical scale; 0 where it is not settled yet."""
        return 0.0 if isinstance(self.typical, str) else jnp.log(self.typical)

    def parameter_count(self, columns: int) -> int:
        """One coefficient a column, the intercept, and the logarithm of the scale if it is not known."""
        return columns + int(self.intercept) + int(self.known is None)

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name."""
        return [*columns, *["intercept"] * self.intercept, *[self.auxiliary] * (self.known is None)]

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Check that the prior is one for these columns."""
        del labels
        count = len(columns) + int(self.intercept)
        check_length(self.coefficient_prior, count, "coefficients", "; the scale has a prior of its own")
        return self

    def settled(self, rows: Rows) -> Model:
        """Return the model with the typical scale taken from dirty rows, unless it or the scale itself was given."""
        if self.known is not None or self.typical != "auto":
            return self
        return self.replaced(typical=self._robust_fit(rows)[1])

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row."""
        coefficients, a = self.split(theta)
        return self.response_log_likelihood(self.features(row) @ coefficients, a, row.y)

    def log_likelihoods(self, thetas: Float[Array, "s p"], rows: Rows) -> Float[Array, "n s"]:
        """Return the log-likelihoods of rows (down) under draws (across), by one matrix product."""
        coefficients, a = self.split(thetas)
        # Rows across: their number, a batch or a capacity, fills vector registers better than the number of draws.
        return self.response_log_likelihood(coefficients @ self.features(rows).T, a[:, None], rows.y).T

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        if self.known is not None:
            return self.coefficient_prior.log_density(theta)
        mean, precision = self.scale_prior or (self.log_typical(), 1.0)
        return self.coefficient_prior.log_density(theta[:-1]) - 0.5 * precision * (theta[-1] - mean) ** 2

    def prior_mean(self, parameters: int) -> Float[Array, " p"]:
        """Return where the prior is centred."""
        if self.known is not None:
            return self.coefficient_prior.mean_vector(parameters)
        mean = self.log_typical() if self.scale_prior is None else self.scale_prior.mean
        return jnp.append(self.coefficient_prior.mean_vector(parameters - 1), mean)

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin at the prior's coefficients with the typical scale."""
        guess = self.prior_mean(self.parameter_count(columns))
        return guess if self.known is not None else guess.at[-1].set(self.log_typical())

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral, the same for every row."""
        return jnp.exp(self.log_power_integral(theta, row, beta))

    def log_power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        del row
        return self.log_integral(self.split(theta)[1], beta)

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral at the typical scale."""
        del columns
        return self.log_integral(self.log_typical(), beta)

    @property
    def log_temperature(self) -> Any:
        """The log of the power integral as a function of columns and β, if the scale is known."""
        if self.known is None:
            raise AttributeError("log_temperature: the power integral is no constant, since the scale is unknown.")
        # It vanishes with β, but for its rounding, which would be divided by next to nothing.
        return lambda columns, beta: jnp.where(beta < 1e-6, 0.0, self.log_integral(jnp.log(self.known), beta))

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from a line that dirty rows do not move, and the noise around it."""
        coefficients, scale = self._robust_fit(rows)
        return coefficients if self.known is not None else np.append(coefficients, math.log(scale))

    def escaped(self, thetas: Float[np.ndarray, "s p"]) -> np.ndarray:
        """Tell the parameters whose scale is so large that no row counts."""
        if self.known is not None:
            return np.zeros(len(thetas), bool)
        away = np.asarray(thetas)[:, -1] - np.asarray(self.log_typical())
        return (away if self.escapes_upwards else -away) > ESCAPE


def held(a: Float[Array, "..."], middle: Any) -> Float[Array, "..."]:
    """Return the logarithm of a scale, brought smoothly within reach of a typical one: a mode may stand at the end."""
    # Far from both ends nothing changes: half of e^−20.
    a = 0.5 * jnp.logaddexp(2 * a, 2 * (middle - REACH))
    return -0.5 * jnp.logaddexp(-2 * a, -2 * (middle + REACH))


def escape_bound(
    rows: float, beta: float, clean: float, log_prior_at_mode: float, half_log_determinant: float, parameters: int
) -> float:
    """Return an upper bound of the log-odds of the mass at infinite scale against that at the mode.

    Parameters
    ----------
    rows, beta, clean
        Number of rows (the total weight of a coreset), β, and the share of them that is clean.
    log_prior_at_mode
        Of the normalised prior.
    half_log_determinant
        Half the log-determinant of the negative Hessian of the log-posterior at the mode.
    parameters
        Their number.
    """
    depth = rows * clean / (beta * (1 + beta))
    return -depth + half_log_determinant - 0.5 * parameters * math.log(2 * math.pi) - log_prior_at_mode


def clean_share(value: Any) -> float | str:
    """Return a setting that must be a share of rows, or left to the data."""
    if value == "auto":
        return "auto"
    if not (isinstance(value, numbers.Real) and 0 < float(value) <= 1):
        raise ValueError(f"clean: expected the share of clean rows, above 0 and at most 1, or 'auto', got {value!r}.")
    return float(value)


def positive(value: Any, name: str) -> float:
    """Return a setting that must be a positive number."""
    if isinstance(value, jax.Array) or not (
        isinstance(value, numbers.Real) and math.isfinite(value) and float(value) > 0
    ):
        raise ValueError(f"{name}: expected a positive number, got {value!r}.")
    return float(value)
