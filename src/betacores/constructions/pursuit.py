"""Robust pursuit: a coreset by sparse non-negative regression in the tangent space of the β-posterior.

Problem: find few rows and weights `v ≥ 0` such that `Σ_m v_m g_m ≈ Σ_n f_n` as functions of θ, up to a constant, where
the β-posterior has its mass. `f` is the β-likelihood, which lets go of outliers; `g` is the likelihood that will *read*
the coreset, the classical one by default: whoever then does ordinary inference on the weighted rows gets the robust
posterior.

Update: at the mode and curvature of the β-posterior over all rows draw S parameters from its Laplace approximation;
sum `f` over all rows at the draws, one pass, and centre: the target `t`. Centre `g` of the candidates, rows whose score
is not near zero, or a uniform sample of them: the vectors. Regress `t` on the vectors by orthogonal matching pursuit
with exact non-negative refits. `‖t − Σ v ḡ‖²/2S` estimates the KL divergence that remains, for small divergences.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from betacores.constructions.nnls import sparse_nonnegative
from betacores.constructions.path import Path
from betacores.divergence import Beta, as_beta, likelihoods
from betacores.models.base import Model, Rows
from betacores.pilot import curvature
from betacores.posteriors.gaussian import Gaussian, factorise
from betacores.sampling import random_subset
from betacores.sources import Source
from betacores.tangent import centred, target_over


def pursuit(
    model: Model,
    source: Source,
    key: PRNGKeyArray,
    *,
    size: int,
    beta: float,
    mode: Float[np.ndarray, " p"],
    readout: str = "classical",
    draws: int = 500,
    candidates: int = 5000,
    eligible: Bool[np.ndarray, " rows"] | None = None,
) -> Path:
    """Return the path of pursuit.

    Parameters
    ----------
    model, source
        The model, and the rows.
    key
        Random key.
    size
        The largest number of rows to keep.
    beta
        Of the β-likelihood.
    mode
        Mode of the β-posterior over all rows.
    readout
        The likelihood the coreset is built for: ``"classical"`` or ``"beta"``.
    draws
        Parameters drawn; more than rows asked for.
    candidates
        Rows to choose from: all that are eligible, or a uniform sample of so many.
    eligible
        Which rows may be chosen; all if not given.
    """
    draw_key, candidate_key = jax.random.split(key)
    factor, _ = factorise(jnp.asarray(curvature(model, source, mode, beta), jnp.float32), jnp.float32(1e-6))
    thetas = Gaussian(jnp.asarray(mode, jnp.float32), factor).draw(draw_key, max(draws, 2 * size))
    target = target_over(source, model, thetas, as_beta(beta))
    target -= target.mean()

    order = np.asarray(random_subset(candidate_key, source.row_count, source.row_count))
    ids = np.sort((order if eligible is None else order[eligible[order]])[:candidates])
    read_beta = as_beta(beta if readout == "beta" else 0.0)
    vectors = np.asarray(_candidate_vectors(model, thetas, source.take(ids), read_beta), np.float64)
    path = sparse_nonnegative(vectors, target, size)
    warnings: tuple[str, ...] = ()
    if not path:
        warnings = ("No row was selected: no candidate says anything about the parameters that the target says.",)
        path = [(np.zeros(0, int), np.zeros(0))]
    # Once nothing points towards the residual, further steps would change nothing.
    path += [path[-1]] * (size - len(path))
    return _as_path(path, ids, warnings)


def _as_path(path: list[tuple[np.ndarray, np.ndarray]], ids: np.ndarray, warnings: tuple[str, ...]) -> Path:
    """Return the steps of the regression as rows in order of first insertion and their weights."""
    ever = list(dict.fromkeys(int(place) for places, _ in path for place in places))
    column = {place: k for k, place in enumerate(ever)}
    weights = np.zeros((len(path), len(ever)))
    for m, (places, values) in enumerate(path):
        weights[m, [column[int(place)] for place in places]] = values
    return Path(ids[np.array(ever, int)], weights, warnings)


@jax.jit
def _candidate_vectors(model: Model, thetas: Array, rows: Rows, beta: Beta) -> Float[Array, "n s"]:
    return centred(likelihoods(model, thetas, rows, beta))
