"""Where the search for a mixture's mode starts on dirty rows: trimmed k-means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.mixture_density import FARTHEST, Components, log_density, log_integral

if TYPE_CHECKING:
    from jaxtyping import Float

# Rows looked at, runs and steps of each, the shares of the rows that are kept, and γ.
SEARCH_ROWS, STARTS, STEPS, KEPT_SHARES, GAMMA = 3000, 20, 15, (0.97, 0.85, 0.7), 0.5


def clustered(x: Float[np.ndarray, "n d"], count: int) -> Float[np.ndarray, " p"]:
    """Return the components of trimmed k-means, in order of the first column.

    A cluster of few rows is a component or dirt, depending on how many are trimmed: of several shares that with the
    smallest γ-divergence is taken, `log I(γ) / (1+γ) − log mean(m(x)^γ) / γ`.
    """
    from betacores.robust import robust_location_scale

    x = x[:: max(len(x) // SEARCH_ROWS, 1)]
    centre, unit = robust_location_scale(x)
    u = np.clip((x - centre) / unit, -FARTHEST, FARTHEST)
    found = [_trimmed(u, count, max(int(share * len(u)), min(count, len(u)))) for share in KEPT_SHARES]
    log_weight, means, log_scale = min(found, key=lambda parts: _divergence(parts, u))
    flat = ((centre + unit * means).ravel(), (log_scale + np.log(unit)).ravel())
    return np.concatenate([log_weight[1:] - log_weight[0], *flat])


def _trimmed(u: Float[np.ndarray, "n d"], count: int, kept: int) -> Components:
    """Return the best of several runs of k-means on so many rows as are nearest to a centre."""
    rng = np.random.default_rng(0)
    best, best_cost = u[:count], np.inf
    for _ in range(STARTS):
        means = u[rng.choice(len(u), count, replace=len(u) < count)]
        for _ in range(STEPS):
            own, near, cost = _assigned(u, means, kept)
            members = [near & (own == k) for k in range(count)]
            means = np.stack([u[m].mean(0) if m.any() else means[k] for k, m in enumerate(members)])
        if cost < best_cost:
            best, best_cost = means, cost
    best = best[np.argsort(best[:, 0], kind="stable")]
    own, near, _ = _assigned(u, best, kept)
    members = [near & (own == k) for k in range(count)]
    sizes = np.array([m.sum() + 1.0 for m in members])
    spread = [u[m].std(0) if m.sum() > u.shape[1] + 5 else np.ones(u.shape[1]) for m in members]
    return Components(np.log(sizes / sizes.sum()), best, np.log(np.maximum(np.stack(spread), 1e-2)))


def _assigned(u: np.ndarray, means: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return every row's nearest centre, which rows are near to theirs, and the sum of their squared distances."""
    squares = np.square(u[:, None] - means).sum(-1)
    nearest = squares.min(1)
    near = nearest <= np.partition(nearest, kept - 1)[kept - 1]
    return squares.argmin(1), near, float(nearest[near].sum())


def _divergence(parts: Components, u: Float[np.ndarray, "n d"]) -> float:
    parts = Components(*(jnp.asarray(part, jnp.result_type(float)) for part in parts))
    powers = GAMMA * log_density(parts, jnp.asarray(u, jnp.result_type(float)))
    mean = jax.nn.logsumexp(powers) - np.log(len(u))
    return float(log_integral(parts, jnp.asarray(GAMMA)) / (1 + GAMMA) - mean / GAMMA)
