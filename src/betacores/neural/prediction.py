"""What a fit predicts: the Gaussian predictions of one network, or the mean of those of several.

A network's last layer has the posterior `θ ~ N(μ, Σ)`, and its prediction is `N(μ·z(x), σ² + z(x)ᵀ Σ z(x))`. Several
networks trained on the same rows from different beginnings agree where there are rows to learn from; elsewhere each
goes its own way. Their predictions are mixed in equal parts, of which mean and standard deviation are returned.

Reference: Lakshminarayanan, Pritzel and Blundell, "Simple and scalable predictive uncertainty estimation using deep
ensembles", NeurIPS 2017.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_triangular

from betacores.neural.network import Moments, Network, basis
from betacores.posteriors.gaussian import Gaussian
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float, Int


class Member(NamedTuple):
    """A network, the moments its layers are normalised by, the posterior of its last layer and the weights it is of."""

    network: Network
    moments: tuple[Moments, ...]
    last_layer: Gaussian
    weights: Float[np.ndarray, " m"]

    def predict(
        self, x: Float[np.ndarray, "n columns"], noise: float
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return the mean and the variance of new responses."""
        with single_precision():
            z = np.asarray(basis(self.network, self.moments, jnp.asarray(x, jnp.float32)), np.float64)
        z = np.column_stack([z, np.ones(len(z))])
        half = solve_triangular(np.asarray(self.last_layer.factor, np.float64), z.T, lower=True)
        return z @ np.asarray(self.last_layer.mean, np.float64), noise**2 + (half**2).sum(0)


class NeuralFit(NamedTuple):
    """Networks, each with the posterior of its last layer, and the coreset they were learnt from.

    Weights are those of the rows in training; members hold those of their last layers.
    """

    members: tuple[Member, ...]
    noise: float
    indices: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    batches: list[Any]
    scores: Float[np.ndarray, " rows"] | None
    trust: Float[np.ndarray, " rows"] | None

    def predict(self, x: Float[np.ndarray, "n columns"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return the mean and the standard deviation of new responses."""
        each = np.array([member.predict(x, self.noise) for member in self.members])
        means, variances = each[:, 0], each[:, 1]
        return means.mean(0), np.sqrt(variances.mean(0) + means.var(0))
