"""Models whose row enters through a few numbers `u`, each linear in the parameters.

The parameters are `θ = (C, a)`: m vectors of coefficients, one after the other, then further parameters that are the
same for every row, a dispersion say. With `z` the row's covariates, followed by a one when ``intercept`` is true,

    u = (C_1·z, ..., C_m·z, a_1, ..., a_q),      ℓ(θ) = ℓ(u; y).

Gradients and Hessians by θ are then sums of products of `z` with those by `u`, of which there are few.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from betacores.models.base import Model, Rows

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class SeveralPredictors(Model):
    """A model whose row enters through `u` alone.

    A subclass says how many vectors of coefficients and how many further parameters there are, and how a response is
    distributed given `u`, a sequence of arrays that go together elementwise.
    """

    intercept: bool

    @property
    @abc.abstractmethod
    def vectors(self) -> int:
        """Number of vectors of coefficients."""

    @property
    def further(self) -> int:
        """Number of further parameters."""
        return 0

    @abc.abstractmethod
    def response_log_likelihood(self, u: Any, y: Any) -> Float[Array, "..."]:
        """Return the log-likelihood of one response given `u`."""

    @abc.abstractmethod
    def response_power_integral(self, u: Any, beta: Float[Array, ""]) -> Float[Array, "..."]:
        """Return `∫ p(ψ | u)^(1+β) dψ`."""

    def covariates(self, x: Any) -> Any:
        """Return the columns that have coefficients: all, unless the model keeps one for itself."""
        return x

    def with_offset(self, eta: Any, x: Any) -> Any:
        """Return a linear predictor with what columns add to it without a coefficient: nothing, as a rule."""
        del x
        return eta

    def features(self, rows: Rows) -> Float[Array, "*rows q"]:
        """Return `z`: the covariates, and a one for the intercept."""
        x = self.covariates(rows.x)
        return jnp.concatenate([x, jnp.ones_like(rows.x[..., :1])], axis=-1) if self.intercept else x

    def split(self, theta: Float[Array, "*s p"]) -> tuple[Float[Array, "*s m q"], Float[Array, "*s r"]]:
        """Return the vectors of coefficients and the further parameters of one θ, or of several."""
        last = theta.shape[-1] - self.further
        return theta[..., :last].reshape(*theta.shape[:-1], self.vectors, -1), theta[..., last:]

    def predictors(self, thetas: Float[Array, "s p"], rows: Rows) -> Any:
        """Return `u` of rows (across) at draws (down); further parameters as columns."""
        coefficients, further = self.split(thetas)
        # One product for all vectors, and rows across: their number fills vector registers better.
        eta = self.with_offset(jnp.moveaxis(coefficients, 1, 0) @ self.features(rows).T, rows.x)
        return [*eta, *(further[:, j, None] for j in range(self.further))] if self.further else eta

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row."""
        return self.response_log_likelihood(self._of_row(theta, row), row.y)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return `∫ p(ψ | x, θ)^(1+β) dψ` of one row."""
        return self.response_power_integral(self._of_row(theta, row), beta)

    def _of_row(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, " d"]:
        coefficients, further = self.split(theta)
        return jnp.concatenate([self.with_offset(coefficients @ self.features(row), row.x), further])


def row_derivatives(
    model: SeveralPredictors, function: Callable[[Any, Any], Array], theta: Float[Array, " p"], rows: Rows
) -> tuple[Float[Array, " n"], Float[Array, "n d"], Float[Array, "n d d"]]:
    """Return an elementwise function of `u` and the response, its gradients and its Hessians by `u`, row by row."""
    coefficients, further = model.split(theta)
    eta = model.with_offset(coefficients @ model.features(rows).T, rows.x)
    u = jnp.concatenate([eta.T, jnp.broadcast_to(further, (eta.shape[1], model.further))], axis=1)
    return derivatives_by_u(function, u, rows.y)


def derivatives_by_u(
    function: Callable[[Any, Any], Array], u: Float[Array, "n d"], y: Float[Array, " n"]
) -> tuple[Float[Array, " n"], Float[Array, "n d"], Float[Array, "n d d"]]:
    """Return an elementwise function of `u` and the response, its gradients and its Hessians by `u`, row by row."""

    def gradient(at: Float[Array, " d"], y: Array) -> tuple[Array, tuple[Array, Array]]:
        value, slope = jax.value_and_grad(lambda own: function(own, y))(at)
        return slope, (value, slope)

    hessian, (value, slope) = jax.vmap(jax.jacfwd(gradient, has_aux=True))(u, y)
    return value, slope, hessian


def gradients_of(model: SeveralPredictors, slope: Float[Array, "n d"], z: Float[Array, "n q"]) -> Float[Array, "n p"]:
    """Return the gradients by θ from those by `u`."""
    own = slope[:, : model.vectors, None] * z[:, None, :]
    return jnp.concatenate([own.reshape(len(z), -1), slope[:, model.vectors :]], axis=1)


def total_hessian(
    model: SeveralPredictors, hessian: Float[Array, "n d d"], z: Float[Array, "n q"]
) -> Float[Array, "p p"]:
    """Return the sum over rows of the Hessians by θ from those by `u`."""
    m, q = model.vectors, z.shape[1]

    def against_all(own: Float[Array, "n m"]) -> Float[Array, "m q q"]:
        return ((own[:, :, None] * z[:, None, :]).reshape(len(z), m * q).T @ z).reshape(m, q, q)

    # One vector of coefficients at a time: for all of them at once every row would be a table.
    bent = jax.lax.map(against_all, jnp.moveaxis(hessian[:, :m, :m], 1, 0))
    bent = jnp.moveaxis(bent, 3, 1).reshape(m * q, m * q)
    mixed = jnp.einsum("nkf,ni->kif", hessian[:, :m, m:], z).reshape(m * q, model.further)
    own = hessian[:, m:, m:].sum(0)
    return jnp.block([[bent, mixed], [mixed.T, own]]) if model.further else bent
