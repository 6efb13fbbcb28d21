"""Densities of exponential families: `ℓ = ν(θ)·T(row)`, natural parameters times statistics of the row.

The rows have no covariates, so the power integral is the same for all of them. Sums over rows of everything that the
search for a mode needs are sums of statistics: `betacores.posteriors.structured`.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from betacores.models.base import Model, Rows

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class ExponentialFamily(Model):
    """A density of whole rows with finitely many statistics. A subclass is final.

    With ``log_temperature`` the power integral is a constant, else ``log_reference`` names a typical one.
    """

    @abc.abstractmethod
    def statistics(self, rows: Rows) -> Float[Array, "*n q"]:
        """Return `T` of rows; the first is 1."""

    @abc.abstractmethod
    def natural(self, theta: Float[Array, " p"], columns: int) -> Float[Array, " q"]:
        """Return `ν(θ)`."""

    @abc.abstractmethod
    def log_integral(self, theta: Any, columns: int, beta: Any) -> Float[Array, ""]:
        """Return the log of the power integral."""

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-density of one row."""
        return self.statistics(row) @ self.natural(theta, row.x.shape[-1])

    def log_likelihoods(self, thetas: Float[Array, "s p"], rows: Rows) -> Float[Array, "n s"]:
        """Return the log-densities of rows (down) under draws (across), by one matrix product."""
        naturals = jax.vmap(lambda theta: self.natural(theta, rows.x.shape[-1]))(thetas)
        return self.statistics(rows) @ naturals.T

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral, the same for every row."""
        return jnp.exp(self.log_integral(theta, row.x.shape[-1], beta))

    def log_power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        return self.log_integral(theta, row.x.shape[-1], beta)
