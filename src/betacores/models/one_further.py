"""Regressions with one parameter beside the coefficients, such as a dispersion: known, or with a prior of its own."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.prior import GaussianPrior, gaussian_prior

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class OneFurther(SeveralPredictors):
    """A model with one vector of coefficients and one further parameter, the last unless it is known.

    A subclass names it. The attribute of that name is its value, or None, and the one with ``_prior`` behind it is the
    prior of the parameter.
    """

    further_name: ClassVar[str]
    coefficient_prior: GaussianPrior

    def _take(
        self,
        value: float | None,
        prior: GaussianPrior | None,
        usual: tuple[float, float],
        expected: str,
        may_be: Callable[[float], bool],
    ) -> None:
        """Keep what is known of the further parameter, or complain: its value, or a prior, `N(usual)` if not given."""
        name = self.further_name
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if not (value is None or (number and may_be(float(value)))):
            raise ValueError(f"{name}: expected {expected}, or None to estimate it, got {value!r}.")
        if value is not None and prior is not None:
            raise ValueError(f"{name}_prior: the {name} was given as a number; leave one of them out.")
        prior = prior or gaussian_prior(*usual)
        if any(np.size(part) != 1 for part in prior):
            raise ValueError(f"{name}_prior: expected a prior of one number, such as gaussian_prior{usual}.")
        setattr(self, name, None if value is None else float(value))
        setattr(self, f"{name}_prior", prior)

    def moved(self, prior: GaussianPrior, way: Float[np.ndarray, "q q"]) -> Self:
        """Return the model for columns in other units, with the prior there; `way` turns coefficients into theirs."""
        del way
        return self.replaced(coefficient_prior=prior)

    def without_intercept(self) -> Self:
        """Return the same model without a constant in its linear predictor."""
        return self.replaced(intercept=False)

    @property
    def vectors(self) -> int:
        """One vector of coefficients."""
        return 1

    @property
    def further(self) -> int:
        """One, unless it is known."""
        return int(getattr(self, self.further_name) is None)

    @property
    def further_prior(self) -> GaussianPrior:
        """The prior of the further parameter."""
        prior: GaussianPrior = getattr(self, f"{self.further_name}_prior")
        return prior

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        last = theta.shape[-1] - self.further
        known = self.coefficient_prior.log_density(theta[:last])
        return known + self.further_prior.log_density(theta[last:]) if self.further else known
