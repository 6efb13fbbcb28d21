"""What regressions of counts share: exposure, starts that wild counts do not move, and checks.

A count is often one of a time or an area: `η = z·θ + log exposure`. The exposure is a column of the table, or its
logarithm is; it has no coefficient.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, Self

import jax.numpy as jnp
import numpy as np

from betacores.models.base import Model, Rows
from betacores.robust import robust_location_scale

if TYPE_CHECKING:
    from jaxtyping import Float

# A mean beyond e^40 is floored with any count that there may be, and its powers still fit single precision.
LARGEST_ETA = 40.0
# Exposures nearer to zero than this are taken as this.
LEAST_EXPOSURE = 1e-12
# Log-counts are taken of counts and a bit, for zeros; the median of a Poisson is about a third above its mean.
BIT = 0.3
STEPS, CORE_SCALES = 20, 4.0


def check_offset(exposure: Any, offset: Any) -> None:
    """Check how an exposure was named."""
    if exposure is not None and offset is not None:
        raise ValueError("offset: it is the logarithm of the exposure; name one of them, not both.")
    for name, given in (("exposure", exposure), ("offset", offset)):
        whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
        if not (given is None or isinstance(given, str) or (whole and given >= 0)):
            raise ValueError(f"{name}: expected a column's name or its number, 0 or more, got {given!r}.")


def offset_column(exposure: str | int | None, offset: str | int | None, columns: list[str]) -> int | None:
    """Return the place of the column that holds the exposure or its logarithm."""
    what, asked = ("exposure", exposure) if offset is None else ("offset", offset)
    if asked is None:
        return None
    if isinstance(asked, str):
        if asked not in columns:
            shown = ", ".join(map(repr, columns[:10]))
            raise ValueError(f"{what}: the table has no column {asked!r} that varies; it has {shown}.")
        return columns.index(asked)
    if asked >= len(columns):
        raise ValueError(f"{what}: there is no column {asked}; the table has {len(columns)}, counted from 0.")
    return int(asked)


class Exposed(Model):
    """A regression of counts with an exposure: a column of the table that has no coefficient."""

    intercept: bool
    exposure: str | int | None
    offset: str | int | None
    column: int | None

    def _expose(self, exposure: str | int | None, offset: str | int | None) -> None:
        check_offset(exposure, offset)
        self.exposure, self.offset, self.column = exposure, offset, None

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Self:
        """Return the model with the place of its exposure in a table with these columns."""
        del labels
        return self.replaced(column=offset_column(self.exposure, self.offset, columns))

    def coefficient_count(self, columns: int) -> int:
        """One coefficient a covariate, and the intercept."""
        return columns - int(self._place() is not None) + int(self.intercept)

    def coefficient_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name."""
        own = [name for j, name in enumerate(columns) if j != self._place()]
        return [*own, "intercept"] if self.intercept else own

    def covariates(self, x: Any) -> Any:
        """Return the columns but that of the exposure."""
        at = self._place()
        if at is None:
            return x
        parts = [x[..., :at], x[..., at + 1 :]]
        return np.concatenate(parts, -1) if isinstance(x, np.ndarray) else jnp.concatenate(parts, -1)

    def with_offset(self, eta: Any, x: Any) -> Any:
        """Return the linear predictor with the logarithm of the exposure."""
        at = self._place()
        return eta if at is None else eta + self._log_exposure(x[..., at])

    def check_rows(self, x: np.ndarray, columns: list[str]) -> Self:
        """Refuse exposures that are not positive."""
        at = self._place()
        if at is None or self.offset is not None:
            return self
        wrong = x[:, at] <= 0
        if wrong.any():
            raise ValueError(
                f"exposure: expected numbers above 0 in {columns[at]!r}; row {int(wrong.argmax())} has "
                f"{x[wrong.argmax(), at]:g} ({wrong.sum()} such rows in all); drop them."
            )
        return self

    def _log_exposure(self, values: Any) -> Any:
        if self.offset is not None:
            return values
        # Points that are moved may leave the positive numbers.
        xp = np if isinstance(values, np.ndarray) else jnp
        return xp.log(xp.maximum(values, LEAST_EXPOSURE))

    def _place(self) -> int | None:
        if self.column is None and not (self.exposure is None and self.offset is None):
            raise ValueError(
                "exposure: the column is known by name only; model.bound(columns, None) finds it, as summarize() does."
            )
        return self.column


def log_line(
    z: Float[np.ndarray, "n q"], y: Float[np.ndarray, " n"], offset: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " q"]:
    """Return nearly the line of least absolute deviations through the logarithms of counts.

    Parameters
    ----------
    z, y
        Covariates, the last perhaps a one, and counts. Rows far out in the covariates are left out.
    offset
        Logarithms of the exposures.
    """
    z, seen = np.asarray(z, np.float64), np.log(np.asarray(y, np.float64) + BIT) - offset
    centre, scale = robust_location_scale(z)
    far = (np.abs(z - centre) / np.where(scale > 0, scale, 1.0)).max(axis=1, initial=0.0)
    core = far <= max(CORE_SCALES, float(np.median(far)))
    z, seen = z[core], seen[core]
    unit = np.maximum(np.abs(z).max(axis=0, initial=0.0), 1e-30)
    z = z / unit
    line = np.zeros(z.shape[1])
    for _ in range(STEPS):
        away = np.abs(seen - z @ line)
        weights = 1 / np.maximum(away, max(0.2 * float(np.median(away)), 1e-3))
        weighted = z * weights[:, None]
        gram = weighted.T @ z + 1e-6 * weights.sum() * np.eye(z.shape[1])
        line = np.linalg.solve(gram, weighted.T @ seen)
    return line / unit


def robust_line(model: Any, rows: Rows) -> Float[np.ndarray, " q"]:
    """Return coefficients to start from on dirty rows."""
    x = np.asarray(rows.x, np.float64)
    z = model.covariates(x)
    z = np.column_stack([z, np.ones(len(z))]) if model.intercept else z
    return log_line(z, np.asarray(rows.y), model.with_offset(np.zeros(len(z)), x))
