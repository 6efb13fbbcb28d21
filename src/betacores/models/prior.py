"""Gaussian priors `N(μ0, Σ0)`, kept by their precision, which is what posteriors need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from jaxtyping import Array, Float


class GaussianPrior(NamedTuple):
    """A Gaussian prior. Make one with `gaussian_prior`.

    ``mean`` is a number or a vector, ``precision`` a number or a vector when the parameters are independent, else a
    matrix.
    """

    mean: Any
    precision: Any

    def log_density(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density up to a constant."""
        away = theta - self.mean
        weighted = self.precision @ away if jnp.ndim(self.precision) == 2 else self.precision * away
        return -0.5 * away @ weighted

    def mean_vector(self, p: int) -> Float[Array, " p"]:
        """Return the mean of p parameters."""
        return jnp.broadcast_to(jnp.asarray(self.mean, jnp.result_type(float)), (p,))

    def precision_matrix(self, p: int) -> Float[Array, "p p"]:
        """Return the precision of p parameters as a matrix."""
        if jnp.ndim(self.precision) == 2:
            return jnp.asarray(self.precision)
        return jnp.diag(jnp.broadcast_to(jnp.asarray(self.precision, jnp.result_type(float)), (p,)))


def gaussian_prior(mean: ArrayLike = 0.0, covariance: ArrayLike = 1.0) -> GaussianPrior:
    """Make the prior `N(mean, covariance)`.

    Parameters
    ----------
    mean
        A number, or one for each parameter.
    covariance
        A number or one for each parameter (variances of independent parameters), or a covariance matrix.
    """
    mean = np.asarray(mean, np.float64)
    covariance = np.asarray(covariance, np.float64)
    if mean.ndim > 1:
        raise ValueError(f"prior mean: expected a number or vector, got shape {mean.shape}.")
    if not np.all(np.isfinite(mean)):
        raise ValueError(f"prior mean: expected finite numbers, got {mean[~np.isfinite(mean)][0]}.")
    return GaussianPrior(mean, precision_of(covariance, "prior covariance"))


def check_length(prior: GaussianPrior | None, count: int, what: str = "parameters", more: str = "") -> None:
    """Refuse a prior for another number of parameters."""
    for part in prior or ():
        if np.ndim(part) and len(part) != count:
            raise ValueError(f"prior: it is for {len(part)} {what}, the model has {count} for these columns{more}.")


def precision_of(covariance: np.ndarray, what: str) -> np.ndarray:
    """Return the inverse of a covariance given as variance(s) or a matrix, or say what is wrong with it."""
    if covariance.ndim > 2:
        raise ValueError(f"{what}: expected a number, vector or matrix, got shape {covariance.shape}.")
    if not np.all(np.isfinite(covariance)):
        raise ValueError(f"{what}: expected finite numbers, got {covariance[~np.isfinite(covariance)][0]}.")
    if covariance.ndim < 2:
        if np.any(covariance <= 0):
            raise ValueError(f"{what}: variances must be positive, got {covariance.min():g}.")
        return np.asarray(1.0 / covariance)
    if covariance.shape[0] != covariance.shape[1] or not np.allclose(covariance, covariance.T):
        raise ValueError(f"{what}: expected a symmetric matrix, got shape {covariance.shape}.")
    smallest = np.linalg.eigvalsh(covariance).min()
    if smallest <= 0:
        raise ValueError(f"{what}: must be positive definite, its smallest eigenvalue is {smallest:.3g}.")
    return np.linalg.inv(covariance)
