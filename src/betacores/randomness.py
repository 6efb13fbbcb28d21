"""Random numbers on the host, by JAX's keys.

What is drawn once a run costs far more to compile than to draw: a program for normal numbers takes a second, and there
is one for every shape. Compiled programs that draw again and again have JAX's own numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float, PRNGKeyArray

# A key is divided into so many at once: one program for all numbers.
MOST_KEYS = 8


def split(key: PRNGKeyArray, count: int) -> list[PRNGKeyArray]:
    """Return new keys, at most 8, as one would take them from an array of them."""
    if count > MOST_KEYS:
        raise ValueError(f"count: at most {MOST_KEYS} keys, got {count}.")
    return [jax.random.wrap_key_data(words) for words in np.asarray(_split(key))[:count]]


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """Return NumPy's generator for a key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())


def normals(key: PRNGKeyArray, shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """Return standard normal numbers in single precision."""
    return generator(key).standard_normal(shape, np.float32)


@jax.jit
def _split(key: PRNGKeyArray) -> jax.Array:
    return jax.random.key_data(jax.random.split(key, MOST_KEYS))
