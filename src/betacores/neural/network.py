"""The network of neural linear regression: two hidden layers, each normalised over the batch and cut off at zero.

Its last hidden layer is the basis `z(x)` on which the response is linear. While the network is trained it ends in a
linear head; afterwards Bayesian linear regression on `z` takes the head's place. In training, batches are normalised by
their own means and variances; afterwards rows are normalised by those of the rows it was trained on, so that the basis
of a row does not depend on the company it is in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

# Covariates are expected in units of their spread; cells further out than this count as being there.
FARTHEST_CELL = 30.0
# Added to variances, for units that are the same for all rows.
SMALLEST_VARIANCE = 1e-5


class Moments(NamedTuple):
    """Means and variances of the units of a layer."""

    mean: Float[Array, " hidden"]
    variance: Float[Array, " hidden"]


class Normalised(eqx.Module):
    """A linear layer whose units are brought to zero mean and unit variance, then scaled, shifted and cut off at 0."""

    linear: eqx.nn.Linear
    scale: Float[Array, " hidden"]
    shift: Float[Array, " hidden"]

    def __init__(self, columns: int, hidden: int, key: PRNGKeyArray):
        # The mean is taken out again at once, so a bias would be of no use.
        self.linear = eqx.nn.Linear(columns, hidden, use_bias=False, key=key)
        self.scale, self.shift = jnp.ones(hidden), jnp.zeros(hidden)

    def __call__(
        self, x: Float[Array, "n columns"], weights: Float[Array, " n"], moments: Moments | None
    ) -> tuple[Float[Array, "n hidden"], Moments]:
        """Return the units of rows, and the moments by which they were normalised; by default those of the rows."""
        units = jax.vmap(self.linear)(x)
        if moments is None:
            share = weights / weights.sum()
            mean = share @ units
            moments = Moments(mean, share @ (units - mean) ** 2)
        scaled = (units - moments.mean) * jax.lax.rsqrt(moments.variance + SMALLEST_VARIANCE)
        return jax.nn.relu(scaled * self.scale + self.shift), moments


class Network(eqx.Module):
    """Two hidden layers of the same width, and a linear head."""

    layers: tuple[Normalised, Normalised]
    head: eqx.nn.Linear

    def __init__(self, columns: int, hidden: int, key: PRNGKeyArray):
        first, second, last = jax.random.split(key, 3)
        self.layers = (Normalised(columns, hidden, first), Normalised(hidden, hidden, second))
        self.head = eqx.nn.Linear(hidden, 1, key=last)

    def basis(
        self, x: Float[Array, "n columns"], weights: Float[Array, " n"], moments: tuple[Moments, ...] | None = None
    ) -> tuple[Float[Array, "n hidden"], tuple[Moments, ...]]:
        """Return the last hidden layer of rows, and the moments by which the layers were normalised."""
        z, seen = jnp.clip(x, -FARTHEST_CELL, FARTHEST_CELL), []
        for place, layer in enumerate(self.layers):
            z, own = layer(z, weights, None if moments is None else moments[place])
            seen.append(own)
        return z, tuple(seen)

    def responses(self, x: Float[Array, "n columns"]) -> Float[Array, " n"]:
        """Return the head's responses for the rows of a training batch."""
        z, _ = self.basis(x, jnp.ones(len(x)))
        return jax.vmap(self.head)(z)[:, 0]

    def matrices(self) -> list[Float[Array, "_ _"]]:
        """Return what weight decay applies to."""
        return [*(layer.linear.weight for layer in self.layers), self.head.weight]


@eqx.filter_jit
def moments_of(network: Network, x: Float[Array, "n columns"], weights: Float[Array, " n"]) -> tuple[Moments, ...]:
    """Return the moments of the layers over weighted rows; rows of weight zero do not matter."""
    return network.basis(x, weights)[1]


@eqx.filter_jit
def basis(network: Network, moments: tuple[Moments, ...], x: Float[Array, "n columns"]) -> Float[Array, "n hidden"]:
    """Return `z(x)` of rows, normalised by moments of other rows."""
    return network.basis(x, jnp.ones(len(x)), moments)[0]
