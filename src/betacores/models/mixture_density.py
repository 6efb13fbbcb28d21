"""The density of a mixture of Gaussians with independent columns, `m(x) = Σ_k π_k N_k(x)`, and its power integral.

The power integral has a closed form for whole β only. Of `m^(1+β) = Σ_k π_k N_k m^β` every part is an expectation over
one component, and the nodes `ξ_q` of one rule for the standard normal serve them all,

    I(β) ≈ R(β) = Σ_k Σ_q π_k ω_q m(μ_k + σ_k ξ_q)^β,     log I(β) := log R(β) + β [log I(1) − log R(1)],

corrected by `I(1) = Σ_kl π_k π_l N(μ_k − μ_l; 0, σ_k² + σ_l²)`, which is exact: so is the result at β = 0 and β = 1.
In one column the nodes are equidistant, which converges exponentially for smooth integrands (relative error below 1e−6
while the narrowest component has at least a fifth of the widest one's scale), in two they are a square lattice (1e−4,
half); in more, a lattice of `LATTICE` points and their mirrors (about 1e−2). For β ≤ 1 the truth is always between

    Σ_k π_k^(1+β) ∫ N_k^(1+β)   and   Σ_k π_k (Σ_l π_l N(μ_k − μ_l; 0, σ_k² + σ_l²))^β,

the first since powers above one are superadditive, the second by Jensen's inequality: `integral_bounds`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Cells farther from a component, in its scales, have the least likelihood there is.
FARTHEST = 1e5
# Nodes: equidistant to so many scales, so many in one column, in each of two, and in a lattice for more.
EDGE, LINE, SQUARE, LATTICE = 8.0, 241, 33, 512


class Components(NamedTuple):
    """Log-weights (K), means (K, d) and log-scales (K, d)."""

    log_weight: Any
    mean: Any
    log_scale: Any


def log_density(parts: Components, x: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    """Return the log-density of one row or many."""
    log_weight, mean, log_scale = parts
    away = jnp.clip((x[..., None, :] - mean) * jnp.exp(-log_scale), -FARTHEST, FARTHEST)
    norm = log_scale.sum(-1) + 0.5 * mean.shape[-1] * jnp.log(2 * jnp.pi)
    return jax.nn.logsumexp(log_weight - 0.5 * (away**2).sum(-1) - norm, axis=-1)


def log_integral(parts: Components, beta: Float[Array, ""]) -> Float[Array, ""]:
    """Return the log of the power integral."""
    nodes, log_nodes = _rule(parts.mean.shape[-1])
    nodes, log_nodes = nodes.astype(parts.mean.dtype), log_nodes.astype(parts.mean.dtype)
    at = parts.mean[:, None] + jnp.exp(parts.log_scale)[:, None] * nodes
    log_there, log_share = log_density(parts, at), parts.log_weight[:, None] + log_nodes

    def rule(power: Any) -> Float[Array, ""]:
        return jax.nn.logsumexp(log_share + power * log_there)

    exact = jax.nn.logsumexp(parts.log_weight[:, None] + log_overlaps(parts))
    return rule(beta) + beta * (exact - rule(1.0))


def integral_bounds(parts: Components, beta: float) -> tuple[Array, Array]:
    """Return a lower and an upper bound of the power integral, for β at most 1."""
    log_weight, mean, log_scale = parts
    columns = mean.shape[-1]
    log_norm = log_scale.sum(1) + 0.5 * columns * jnp.log(2 * jnp.pi)
    own = (1 + beta) * log_weight - beta * log_norm - 0.5 * columns * jnp.log1p(beta)
    others = jax.nn.logsumexp(log_overlaps(parts), axis=1)
    return jnp.exp(jax.nn.logsumexp(own)), jnp.exp(jax.nn.logsumexp(log_weight + beta * others))


def log_overlaps(parts: Components) -> Float[Array, "k k"]:
    """Return `log(π_l ∫ N_k N_l)`, k down."""
    log_weight, mean, log_scale = parts
    log_variance = jnp.logaddexp(2 * log_scale[:, None], 2 * log_scale)
    square = (mean[:, None] - mean) ** 2 * jnp.exp(-log_variance)
    return log_weight - 0.5 * (jnp.minimum(square, FARTHEST**2) + log_variance + jnp.log(2 * jnp.pi)).sum(-1)


@functools.cache
def _rule(columns: int) -> tuple[Float[np.ndarray, "q d"], Float[np.ndarray, " q"]]:
    """Return nodes for the standard normal, and the logarithms of their weights."""
    if columns <= 2:
        line = np.linspace(-EDGE, EDGE, LINE if columns == 1 else SQUARE)
        nodes = np.stack(np.meshgrid(*[line] * columns, indexing="ij"), axis=-1).reshape(-1, columns)
        nodes = nodes[(nodes**2).sum(1) <= EDGE**2]
        log_weights = -0.5 * (nodes**2).sum(1)
    else:
        # The lattice of the generalised golden ratio, the solution of `g^(d+1) = g + 1`.
        golden = 1.5
        for _ in range(60):
            golden = (1 + golden) ** (1 / (columns + 1))
        shifts = golden ** -np.arange(1.0, columns + 1)
        points = special.ndtri((0.5 + np.arange(1, LATTICE + 1)[:, None] * shifts) % 1.0)
        nodes = np.concatenate([points, -points])
        log_weights = np.zeros(len(nodes))
    return nodes, log_weights - special.logsumexp(log_weights)
