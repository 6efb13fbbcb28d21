"""Gaussian distributions by mean and Cholesky factor of the precision: what conjugate and Laplace posteriors are."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from scipy import linalg

from betacores.randomness import normals

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, PRNGKeyArray


class Gaussian(NamedTuple):
    """`N(mean, (L Lᵀ)⁻¹)`, with L lower triangular."""

    mean: Float[Array, "*k p"]
    factor: Float[Array, "*k p p"]

    def draw(self, key: PRNGKeyArray, draws: int) -> Float[Array, "s p"]:
        """Return independent draws, made on the host."""
        mean, noise = np.asarray(self.mean), normals(key, (draws, self.mean.shape[-1]))
        away = linalg.solve_triangular(np.asarray(self.factor, np.float64), noise.T, lower=True, trans="T").T
        return jnp.asarray((mean + away).astype(mean.dtype))

    def transform(self, noise: Float[Array, "s p"]) -> Float[Array, "s p"]:
        """Return standard normal draws turned into draws of this distribution."""
        return self.mean + solve_triangular(self.factor, noise.T, lower=True, trans="T").T

    def covariance(self) -> Float[Array, "p p"]:
        """Return the covariance matrix."""
        inverse = solve_triangular(self.factor, jnp.eye(self.mean.shape[-1], dtype=self.mean.dtype), lower=True)
        return inverse.T @ inverse


@jax.custom_batching.custom_vmap
def factorise(
    precision: Float[Array, "*k p p"], floor: Float[Array, "*k"]
) -> tuple[Float[Array, "*k p p"], Bool[Array, "*k"]]:
    """Factorise a precision matrix, or several, lifting it to a positive definite one if need be.

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
    diagonal = jnp.diagonal(precision, axis1=-2, axis2=-1)
    scale = jnp.sqrt(jnp.maximum(diagonal, jnp.finfo(precision.dtype).tiny))
    factor = scale[..., None] * jnp.linalg.cholesky(precision / scale[..., None, :] / scale[..., None])
    definite = jnp.all(jnp.isfinite(factor), axis=(-2, -1))

    def lifted() -> Float[Array, "*k p p"]:
        return jnp.where(definite[..., None, None], factor, _lifted_factor(precision, floor))

    # Eigenvalues cost many times a Cholesky factor, and are rarely asked for.
    return jax.lax.cond(jnp.all(definite), lambda: factor, lifted), ~definite


@factorise.def_vmap
def _factorise_many(axis_size, in_batched, precision, floor):
    # A plain vmap would turn the condition into a choice between two factors, both computed for every matrix.
    given = zip((precision, floor), in_batched, strict=True)
    many = [a if batched else jnp.broadcast_to(a, (axis_size, *a.shape)) for a, batched in given]
    return factorise(*many), (True, True)


def _lifted_factor(precision: Float[Array, "*k p p"], floor: Float[Array, "*k"]) -> Float[Array, "*k p p"]:
    values, vectors = jnp.linalg.eigh(jnp.nan_to_num(precision, posinf=0.0, neginf=0.0))
    # A direction bent the wrong way keeps its sharpness, so that a Newton step along it keeps its length.
    sharpness = jnp.abs(values)
    # The small share of the largest eigenvalue is what rounding can have taken away.
    rounding = sharpness.max(-1) * precision.shape[-1] * jnp.finfo(precision.dtype).eps
    lifted = jnp.sqrt(jnp.maximum(sharpness, jnp.maximum(floor, rounding)[..., None]))
    # QR of the square root gives the triangular factor without squaring the condition number.
    upper = jnp.linalg.qr(lifted[..., None] * jnp.swapaxes(vectors, -1, -2), mode="r")
    signs = jnp.where(jnp.diagonal(upper, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return jnp.swapaxes(upper, -1, -2) * signs[..., None, :]


def scaled_cholesky(
    matrix: Float[np.ndarray, "*k p p"],
) -> tuple[Float[np.ndarray, "*k p"], Float[np.ndarray, "*k p p"]]:
    """Return the scales `s` that make a diagonal one, and the lower Cholesky factor of `matrix / s / sᵀ`, on the host.

    Equal diagonals first: columns of very different scale would otherwise fail for want of digits alone. A matrix that
    is not positive definite is NumPy's error.
    """
    scale = np.sqrt(np.maximum(np.einsum("...pp->...p", matrix), np.finfo(np.float32).tiny))
    return scale, np.linalg.cholesky(matrix / scale[..., None, :] / scale[..., None])


def gaussian_kl(
    mean: np.ndarray, covariance: np.ndarray, other_mean: np.ndarray, other_covariance: np.ndarray
) -> float:
    """Return `KL(N(mean, covariance) ‖ N(other_mean, other_covariance))` in double precision."""
    covariance, other = np.asarray(covariance, np.float64), np.asarray(other_covariance, np.float64)
    away = np.asarray(other_mean, np.float64) - np.asarray(mean, np.float64)
    precision = np.linalg.inv(other)
    log_det = np.linalg.slogdet(other)[1] - np.linalg.slogdet(covariance)[1]
    return float(0.5 * (np.trace(precision @ covariance) + away @ precision @ away - len(away) + log_det))
