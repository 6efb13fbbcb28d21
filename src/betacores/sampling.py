"""Random subsets of row numbers without replacement, at a cost that does not depend on how many rows there are.

Shuffling all N rows to take B of them costs N for every minibatch. Instead the numbers 0..B−1 are sent through a keyed
random permutation of 0..N−1, built as a Feistel network over a rectangle just larger than N: each round adds to one
coordinate a pseudo-random function of the other, which is invertible whatever the function. A number that lands
outside 0..N−1 is sent through again until it lands inside, which keeps the whole a permutation.

Reference: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.randomness import generator

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

# A network of this many rounds over a smaller rectangle is too regular; shuffling so few numbers costs little.
ROUNDS, SMALL = 6, 1024
LARGEST = 2**31 - 1


def random_subset(key: PRNGKeyArray, population: int, size: int) -> Int[Array, " size"]:
    """Return `size` distinct numbers below `population`, every subset equally likely, in random order."""
    if population > LARGEST:
        raise ValueError(f"population: at most {LARGEST} rows can be numbered, got {population}.")
    if size >= population or population <= SMALL:
        return jax.random.permutation(key, population)[:size]
    height = math.isqrt(population - 1) + 1
    width = -(-population // height)
    round_keys = jax.random.bits(key, (ROUNDS,), jnp.uint32)

    def permute(number: UInt32[Array, " size"]) -> UInt32[Array, " size"]:
        left, right = number // jnp.uint32(width), number % jnp.uint32(width)
        for i in range(0, ROUNDS, 2):
            left = _add(left, mixed(right ^ round_keys[i]), height)
            right = _add(right, mixed(left ^ round_keys[i + 1]), width)
        return left * jnp.uint32(width) + right

    def outside(number: UInt32[Array, " size"]) -> Array:
        return jnp.any(number >= population)

    def again(number: UInt32[Array, " size"]) -> UInt32[Array, " size"]:
        return jnp.where(number >= population, permute(number), number)

    return jax.lax.while_loop(outside, again, permute(jnp.arange(size, dtype=jnp.uint32))).astype(jnp.int32)


def sample_rows(key: PRNGKeyArray, population: int, size: int) -> Int[np.ndarray, " size"]:
    """Return `size` distinct numbers below `population`, in order.

    On the host, for what is drawn once: compiling for every population would take longer than drawing.
    """
    return np.sort(generator(key).choice(population, min(size, population), replace=False, shuffle=False))


def shuffled_rows(key: PRNGKeyArray, population: int, size: int) -> Int[np.ndarray, " size"]:
    """Return `size` distinct numbers below `population`, or all of them, in random order, drawn on the host."""
    return generator(key).choice(population, min(size, population), replace=False)


def sample_of(key: PRNGKeyArray, eligible: Bool[np.ndarray, " rows"], size: int) -> Int[np.ndarray, " size"]:
    """Return the numbers of a uniform sample of eligible rows, or of all of them, in order."""
    count = int(np.count_nonzero(eligible))
    if count <= size:
        return np.flatnonzero(eligible)
    # The k-th eligible row is where the count of eligible rows reaches k.
    return np.searchsorted(np.cumsum(eligible, dtype=np.int32), 1 + sample_rows(key, count, size))


def sample_by(
    key: PRNGKeyArray, eligible: Bool[np.ndarray, " rows"], importance: Float[np.ndarray, " rows"], size: int
) -> Int[np.ndarray, " size"]:
    """Return the numbers of eligible rows, or of all of them, in order, half of them by chance and half by importance.

    Rows enter one by one, without replacement, with a chance that is the mean of equal shares and of shares
    proportional to importance: where that is much the same for all rows, the sample is uniform.
    """
    ids = np.flatnonzero(eligible)
    total = importance[ids].sum()
    if len(ids) <= size or not (np.isfinite(total) and total > 0):
        return sample_of(key, eligible, size)
    chance = 0.5 / len(ids) + 0.5 * importance[ids] / total
    # The largest of log-chances with Gumbel noise are such a sample.
    noise = generator(key).gumbel(size=len(ids))
    return np.sort(ids[np.argpartition(np.log(chance) + noise, -size)[-size:]])


def _add(coordinate: UInt32[Array, " n"], random: UInt32[Array, " n"], modulus: int) -> UInt32[Array, " n"]:
    # Scaling the upper 16 bits to the modulus is a product and a shift, where a remainder would be a division.
    moved = coordinate + ((random >> 16) * jnp.uint32(modulus) >> 16)
    return jnp.where(moved >= modulus, moved - jnp.uint32(modulus), moved)


def mixed(x: UInt32[Array, " n"]) -> UInt32[Array, " n"]:
    """Return words in which every bit depends on all bits of the words given."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
