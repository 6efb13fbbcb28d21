"""Quasi-Newton refinement: the weights of a uniform subset, optimised.

Problem: rows drawn uniformly; weights `w ≥ 0` with `KL(π_w ‖ π)` small, where `π_w ∝ exp(Σ_m w_m f_m) π0`.

Update: draw S parameters from `π_w`, centre the members' likelihoods over them (`ḡ`, m × S) and what the sum over all
rows has beyond the weighted sum (`R`). The gradient of the KL divergence is `−ḡR/S`, and near the optimum its Hessian
is about `ḡḡᵀ/S`: step by `(ḡḡᵀ/S + λI)⁻¹ ḡR/S`, with λ a share of the mean of the diagonal. Members of weight zero that
the gradient would push below zero are left out of the system, then weights below zero are put to zero. A step that
does not lower the divergence, up to a constant `E[Σ w f − Σ_n f_n] − log Z` with the evidence `Z` in closed form or by
Laplace's method, is halved. All steps of one size use the same standard normal draws, carried to each posterior, so
that near the optimum steps are not lost in the noise; they end when the next one promises next to nothing.

The subsets are nested, and every size on the ladder is optimised on its own.

Reference: Naik, Rousseau and Campbell, "Fast Bayesian coresets via subsampling and quasi-Newton refinement",
NeurIPS 2022; Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM J. Control
Optim. 20 (1982), for the members left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.constructions.ladder import ladder, rung_of_every_size
from betacores.constructions.path import Path
from betacores.divergence import Beta, as_beta, likelihoods
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import conjugate, has_conjugate
from betacores.posteriors.laplace import laplace
from betacores.randomness import normals, split
from betacores.sampling import shuffled_rows
from betacores.sources import Source
from betacores.tangent import anchored, centred
from betacores.target import Target

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

HALVINGS = 12
# A step must keep this share of what it promises.
KEPT_PROMISE = 1e-4
# So little of the divergence is not worth another step.
NEGLIGIBLE = 1e-3


class _At(NamedTuple):
    """Where the search is: weights, the members' vectors over draws from there, the divergence and its gradient."""

    weights: Float[np.ndarray, " m"]
    members: Float[np.ndarray, "m s"]
    divergence: float
    gradient: Float[np.ndarray, " m"]


def quasi_newton(
    model: Model,
    source: Source,
    key: PRNGKeyArray,
    *,
    size: int,
    beta: float,
    target: Target,
    sizes: Iterable[int] | None = None,
    draws: int = 200,
    iterations: int = 20,
    damping: float = 1e-2,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of refined uniform subsets.

    Parameters
    ----------
    model, source
        The model, and the rows.
    key
        Random key.
    size
        Rows of the largest subset.
    beta
        Of the β-likelihood; 0 is the classical one.
    target
        The sum over all rows to be matched.
    sizes
        Sizes to optimise for; by default halvings of `size`. See `betacores.constructions.ladder`.
    draws
        Parameters drawn at every step, at least two for each row asked for.
    iterations
        The most steps for every size.
    damping
        λ as a share of the mean squared length of the members' vectors.
    progress
        Called with the number of finished sizes and their total.
    """
    subset_key, noise_key = split(key, 2)
    ids = shuffled_rows(subset_key, source.row_count, size)
    rows, rungs = source.take(ids), ladder(size, sizes)
    noise = partial(normals, shape=(max(draws, 2 * size), model.parameter_count(len(source.columns))))
    exact = has_conjugate(model) and beta == 0

    def look(weights: Float[np.ndarray, " m"], noise: Float[np.ndarray, "s p"]) -> _At:
        thetas, vectors, read = _members(model, rows, jnp.asarray(weights, jnp.float32), noise, as_beta(beta), exact)
        # Less its value at one point for all weights, so that divergences can be compared.
        total = target.over(jnp.concatenate([jnp.zeros_like(thetas[:1]), thetas]))[1:]
        members = np.asarray(vectors, np.float64)
        residual = total - total.mean() - weights @ members
        return _At(weights, members, float(read) - total.mean(), -members @ residual / len(residual))

    found: list[np.ndarray] = []
    warnings = []
    for k, rung in enumerate(rungs):
        taken = np.arange(size) < rung
        try:
            fixed = partial(look, noise=noise(jax.random.fold_in(noise_key, rung)))
            at = fixed(np.where(taken, source.row_count / rung, 0.0))
            for _ in range(iterations):
                at, promised = _advanced(at, fixed, taken, damping)
                if promised == 0:
                    break
            if progress is not None:
                progress(k + 1, len(rungs))
        except KeyboardInterrupt:
            if not found:
                raise
            warnings.append(f"Interrupted: {len(found)} of {len(rungs)} sizes were done.")
            break
        found.append(at.weights)
    rung_at = rung_of_every_size(rungs[: len(found)], size)
    weights = np.where(rung_at[:, None] >= 0, np.asarray(found)[rung_at], 0.0)
    return Path(ids, weights, tuple(warnings))


def _advanced(at: _At, look: Callable[[np.ndarray], _At], taken: np.ndarray, damping: float) -> tuple[_At, float]:
    """Return where one step leads, halved until it lowers the divergence, and what it promised to first order.

    The promise is nothing where no step is worth taking.
    """
    free = taken & ((at.weights > 0) | (at.gradient < 0))
    members = at.members[free]
    system = members @ members.T / members.shape[1]
    ridge = damping * float(np.mean(np.diagonal(system))) if free.any() else 0.0
    if not (ridge > 0 and np.isfinite(at.gradient).all()):
        return at, 0.0
    step = np.zeros_like(at.weights)
    step[free] = np.linalg.solve(system + ridge * np.eye(len(system)), -at.gradient[free])
    promised = float(-at.gradient @ step)
    if promised < NEGLIGIBLE:
        return at, 0.0
    for halving in range(HALVINGS + 1):
        there = look(np.maximum(at.weights + step / 2**halving, 0.0))
        least = KEPT_PROMISE * at.gradient @ (there.weights - at.weights)
        if np.isfinite(there.gradient).all() and there.divergence <= at.divergence + least:
            return there, promised
    return at, 0.0


@partial(jax.jit, static_argnames="exact")
def _members(
    model: Model, rows: Rows, weights: Array, noise: Array, beta: Beta, exact: bool
) -> tuple[Float[Array, "s p"], Float[Array, "m s"], Float[Array, ""]]:
    """Return draws from the posterior of weighted rows, the rows' centred likelihoods there, and `E[Σ w f] − log Z`.

    The last is up to a constant, and both its parts are differences to the mode.
    """
    posterior = conjugate(model, rows, weights) if exact else laplace(model, rows, weights, beta)[0]
    thetas = posterior.transform(noise)
    values = anchored(likelihoods(model, jnp.concatenate([posterior.mean[None], thetas]), rows, beta))[:, 1:]
    log_evidence = model.log_prior(posterior.mean) - jnp.log(jnp.diagonal(posterior.factor)).sum()
    return thetas, centred(values), weights @ values.mean(1) - log_evidence
