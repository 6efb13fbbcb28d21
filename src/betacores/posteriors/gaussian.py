"""Gaussian distributions by mean and Cholesky factor of the precision: what conjugate and Laplace posteriors are."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, PRNGKeyArray


class Gaussian(NamedTuple):
    """`N(mean, (L Lᵀ)⁻¹)`, with L lower triangular."""

    mean: Float[Array, "*k p"]
    factor: Float[Array, "*k p p"]

    def draw(self, key: PRNGKeyArray, draws: int) -> Float[Array, "s p"]:
        """Return independent draws."""
        return self.transform(jax.random.normal(key, (draws, self.mean.shape[-1]), self.mean.dtype))

    def transform(self, noise: Float[Array, "s p"]) -> Float[Array, "s p"]:
        """Return standard normal draws turned into draws of this distribution."""
        return self.mean + solve_triangular(self.factor, noise.T, lower=True, trans="T").T

    def covariance(self) -> Float[Array, "p p"]:
        """Return the covariance matrix."""
        inverse = solve_triangular(self.factor, jnp.eye(self.mean.shape[-1], dtype=self.mean.dtype), lower=True)
        return inverse.T @ inverse


def factorise(precision: Float[Array, "p p"], floor: Float[Array, ""]) -> tuple[Float[Array, "p p"], Bool[Array, ""]]:
    """Factorise a precision matrix, lifting it to a positive definite one if need be.

    Parameters
    ----------
    precision
        A symmetric matrix.
    floor
        When the matrix is not positive definite, every eigenvalue becomes its absolute value, and at least this.

    Returns
    -------
    factor
        Its lower Cholesky factor.
    lifted
        Whether eigenvalues had to be raised.
    """
    # Equal diagonals first: columns of very different scale would otherwise fail for want of digits alone.
    scale = jnp.sqrt(jnp.maximum(jnp.diagonal(precision), jnp.finfo(precision.dtype).tiny))
    factor = scale[:, None] * jnp.linalg.cholesky(precision / scale / scale[:, None])
    definite = jnp.all(jnp.isfinite(factor))
    factor = jax.lax.cond(definite, lambda: factor, lambda: _lifted_factor(precision, floor))
    return factor, ~definite


def _lifted_factor(precision: Float[Array, "p p"], floor: Float[Array, ""]) -> Float[Array, "p p"]:
    values, vectors = jnp.linalg.eigh(jnp.nan_to_num(precision, posinf=0.0, neginf=0.0))
    # A direction bent the wrong way keeps its sharpness, so that a Newton step along it keeps its length.
    sharpness = jnp.abs(values)
    # The small share of the largest eigenvalue is what rounding can have taken away.
    rounding = sharpness.max() * precision.shape[-1] * jnp.finfo(precision.dtype).eps
    lifted = jnp.sqrt(jnp.maximum(sharpness, jnp.maximum(floor, rounding)))
    # QR of the square root gives the triangular factor without squaring the condition number.
    upper = jnp.linalg.qr(lifted[:, None] * vectors.T, mode="r")
    return upper.T * jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0)


def gaussian_kl(
    mean: np.ndarray, covariance: np.ndarray, other_mean: np.ndarray, other_covariance: np.ndarray
) -> float:
    """Return `KL(N(mean, covariance) ‖ N(other_mean, other_covariance))` in double precision."""
    covariance, other = np.asarray(covariance, np.float64), np.asarray(other_covariance, np.float64)
    away = np.asarray(other_mean, np.float64) - np.asarray(mean, np.float64)
    precision = np.linalg.inv(other)
    log_det = np.linalg.slogdet(other)[1] - np.linalg.slogdet(covariance)[1]
    return float(0.5 * (np.trace(precision @ covariance) + away @ precision @ away - len(away) + log_det))
