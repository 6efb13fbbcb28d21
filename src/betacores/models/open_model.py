"""What models made of a person's own functions have in common, `BlackBox` and models from NumPyro.

Single precision overflows at rows that are wild enough: the log-likelihood is then not a finite number, and its
gradient is none either. A row whose log-likelihood is below `FLOOR`, or is no number, therefore counts as `FLOOR` and
has gradient zero, exactly. For the derivative to see nothing of such a row it must be left out twice: of what comes
out, and of what goes in, as zero times infinity is no number.

**Units.** The density of a real outcome has units: with `y` in metres in place of kilometres `p` is a thousand times
smaller, and a row counts `1000^β` times less under the β-likelihood. The `unit` of a model is what a typical density
is one over: `ℓ + log unit` takes the place of `ℓ`, and `unit^β I` that of `I`, which multiplies `f` by `unit^β` and
changes nothing else. With `unit = Ī^(−1/β)`, where `Ī` is the power integral of a typical row, a typical clean row
counts as one observation, as it does in the models of this package; `betacores.units` finds it.
"""

from __future__ import annotations

import abc
import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_number
from betacores.models.base import Model, Rows
from betacores.models.power_rules import Outcomes

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# As in `betacores.divergence`.
FLOOR = -1e10
HIGHEST = 1e10
# Responses of these kinds have probabilities, not densities.
WITHOUT_UNIT = ("binary", "classes")


class OpenModel(Model):
    """A model whose likelihood, prior and power integral are a person's own functions.

    A subclass gives them of the vector of free parameters, and of rows as the person sees them.
    """

    log_unit: Any  # a number, or None while it is left to the rows
    start: Any

    @abc.abstractmethod
    def raw_log_likelihood(self, theta: Float[Array, " p"], seen: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row as it is seen."""

    @abc.abstractmethod
    def integral_and_outcomes(
        self, theta: Float[Array, " p"], seen: Rows, beta: Float[Array, ""], over: Outcomes | None = None
    ) -> tuple[Float[Array, ""], Outcomes | None]:
        """Return the power integral of one row as it is seen, and the outcomes it was summed over, if it was.

        They may be handed over, as the search for them is most of the work.
        """

    def raw_power_integral(self, theta: Float[Array, " p"], seen: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral of one row as it is seen."""
        return self.integral_and_outcomes(theta, seen, beta)[0]

    @abc.abstractmethod
    def has_integral(self) -> bool:
        """Tell whether there is a power integral."""

    @abc.abstractmethod
    def named(self, draws: Any) -> dict[str, np.ndarray]:
        """Return draws of the free numbers as draws of the parameters."""

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row, the density taken relative to the unit."""
        seen = self.seen(row)
        value = jax.lax.stop_gradient(self.raw_log_likelihood(theta, seen))
        good = (value > FLOOR) & (value < HIGHEST)
        inside = jnp.where(good, theta, jax.lax.stop_gradient(theta))
        return jnp.where(good, self.raw_log_likelihood(inside, seen) + self._unit(), FLOOR)

    @property
    def power_integral(self) -> Any:
        """The function `∫ p^(1+β)` of one row; models without one do not have this attribute."""
        if not self.has_integral():
            raise AttributeError("the model has no power integral")
        return self._power_integral

    def _power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        seen, relative = self.seen(row), jnp.exp(beta * self._unit())
        raw, over = self.integral_and_outcomes(theta, seen, beta)
        value = jax.lax.stop_gradient(relative * raw)
        good = (value > 1e-30) & (value < 1e30)
        inside = jnp.where(good, theta, jax.lax.stop_gradient(theta))
        # One, for a row that has no number: with its log-likelihood at the floor it scores nothing.
        return jnp.where(good, relative * self.integral_and_outcomes(inside, seen, beta, over)[0], 1.0)

    def _unit(self) -> Any:
        return 0.0 if self.log_unit is None else self.log_unit

    def with_unit(self, log_unit: float) -> OpenModel:
        """Return the same model with a known unit."""
        return self.replaced(log_unit=float(log_unit))

    def restored(self, settings: dict[str, Any]) -> Model:
        """Return the model with what had been estimated when it was saved."""
        unit = settings.get("log_unit")
        return self.with_unit(unit) if self.log_unit is None and unit is not None else self

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start where the model says."""
        del rows
        return np.asarray(self.start, np.float32)

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin where the model says, or at zero."""
        return jnp.zeros(self.parameter_count(columns)) if self.start is None else jnp.asarray(self.start)

    def seen(self, row: Rows) -> Rows:
        """Return a row as the person's functions see it: labels are numbers from 0, classes whole numbers."""
        if self.response == "binary":
            return Rows(row.x, 0.5 * (row.y + 1))
        if self.response == "classes":
            # Two classes arrive as the two labels of a binary response do.
            place = jnp.where(row.y < 0, 0.0, row.y)
            return Rows(row.x, place.astype(jnp.int32))
        return row


def checked_log_unit(unit: Any, response: str) -> float | None:
    """Return the logarithm of a unit, None if it is to be found."""
    if unit == "auto":
        return 0.0 if response in WITHOUT_UNIT else None
    return math.log(check_number("unit", unit, above=0))
