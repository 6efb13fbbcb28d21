"""What Stirling's formula leaves of the logarithm of the gamma function, without loss of digits for large arguments.

    log Γ(z) = (z − ½) log z − z + ½ log 2π + S(z),      S(z) = 1/12z − 1/360z³ + 1/1260z⁵ − ...

Log-probabilities of counts are differences of terms of size `k log k`, of which single precision keeps nothing when
counts are large. Written by `S` the large terms cancel on paper.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import jax.numpy as jnp

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# From here on three terms of the series are exact to 3e-10.
LEAST = 8
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def stirling_rest(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `S(z)` for z > 0."""
    # Γ(z) = Γ(z + 8) / (z (z+1) ... (z+7)) for small z; each branch sees only arguments that it can take.
    near = jnp.minimum(z, LEAST)
    product = near
    for i in range(1, LEAST):
        product = product * (near + i)
    beyond = near + LEAST
    shifted = (
        (beyond - 0.5) * jnp.log(beyond) - LEAST + series(beyond) - jnp.log(product) - (near - 0.5) * jnp.log(near)
    )
    return jnp.where(z < LEAST, shifted, series(jnp.maximum(z, LEAST)))


def series(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return three terms of the series, for z of 8 or more."""
    inverse = 1 / z
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square / 1260))


def psi_rests(z: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return `log z − ψ(z)` and `ψ'(z) − 1/z` for z > 0, with ψ the derivative of `log Γ`."""
    near = jnp.minimum(z, LEAST)
    beyond = jnp.maximum(z, near + jnp.where(z < LEAST, LEAST, 0))
    inverse = 1 / beyond
    square = inverse * inverse
    first = inverse * (0.5 + inverse * (1 / 12 - square * (1 / 120 - square / 252)))
    second = square * (0.5 + inverse * (1 / 6 - square * (1 / 30 - square / 42)))
    # ψ(z) = ψ(z + 8) − Σ 1/(z + i) for small z.
    steps = [1 / (near + i) for i in range(LEAST)]
    small = z < LEAST
    own = first + jnp.log(near / (near + LEAST)) + sum(steps)
    other = second + 1 / (near + LEAST) + sum(step * step for step in steps) - steps[0]
    return jnp.where(small, own, first), jnp.where(small, other, second)
