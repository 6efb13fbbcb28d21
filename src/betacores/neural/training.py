"""Training rounds of the network: AdaGrad on minibatches of the coreset, in one compiled program for every size.

The loss of a row is its weight times the squared error of the network's linear head, to which the squares of all
matrices are added as weight decay. A round goes on with the network of the last one; AdaGrad starts anew. What a
round returns is the average over its second half, which is steadier than the last step. The rows of the coreset are
given by their numbers, padded to the number of all rows, so that growing changes no shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from betacores.models.base import Rows
from betacores.neural.network import Network

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray


class Training(NamedTuple):
    """How the network is trained: steps of a round, AdaGrad's rate, weight decay, rows of a minibatch."""

    steps: int = 1000
    learning_rate: float = 0.01
    weight_decay: float = 1e-2
    minibatch: int = 32


def training_round(
    network: Network,
    rows: Rows,
    ids: Int[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
    key: PRNGKeyArray,
    training: Training,
) -> Network:
    """Train a network on some of the rows for one round.

    Parameters
    ----------
    network
        The network.
    rows
        All rows, on the device.
    ids, weights
        Those to train on, and how much each counts; those of weight zero are left out.
    key
        Random key.
    training
        How.
    """
    ids, weights = ids[weights > 0], weights[weights > 0]
    if not len(ids):
        return network
    missing = len(rows.x) - len(ids)
    relative = weights / weights.mean()
    return _round(
        network,
        rows,
        jnp.asarray(np.pad(ids, (0, missing)), jnp.int32),
        jnp.asarray(np.pad(relative, (0, missing)), jnp.float32),
        jnp.asarray(len(ids)),
        key,
        training,
    )


@eqx.filter_jit
def _round(
    network: Network,
    rows: Rows,
    ids: Int[Array, " n"],
    weights: Float[Array, " n"],
    count: Int[Array, ""],
    key: PRNGKeyArray,
    training: Training,
) -> Network:
    optimiser = optax.adagrad(training.learning_rate)

    def loss(network: Network, x: Array, y: Array, weight: Array) -> Array:
        decay = sum(jnp.sum(matrix**2) for matrix in network.matrices())
        return jnp.mean(weight * (network.responses(x) - y) ** 2) + training.weight_decay * decay

    def step(carry: tuple[Network, Any], key: PRNGKeyArray) -> tuple[tuple[Network, Any], None]:
        network, memory = carry
        places = jax.random.randint(key, (training.minibatch,), 0, count)
        some = ids[places]
        gradient = jax.grad(loss)(network, rows.x[some], rows.y[some], weights[places])
        updates, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(network, updates), memory), None

    def averaged(carry: tuple, key: PRNGKeyArray) -> tuple[tuple, None]:
        inner, _ = step(carry[0], key)
        return (inner, jax.tree.map(jnp.add, carry[1], inner[0])), None

    keys = jax.random.split(key, training.steps)
    first = training.steps // 2
    start, _ = jax.lax.scan(step, (network, optimiser.init(network)), keys[:first])
    nothing = jax.tree.map(jnp.zeros_like, network)
    (_, total), _ = jax.lax.scan(averaged, (start, nothing), keys[first:])
    return jax.tree.map(lambda value: value / (training.steps - first), total)
