"""The prior's pull on a mode, taken out: what the rows alone say.

The prior pulls the mode `θ` of a posterior, and the more, the less the rows say. The mode `m` of the likelihood alone
is where they would be without it. With `H = A + P`, the curvatures of the posterior, the likelihood and the prior,
Newton's steps of the likelihood alone lead there,

    m ← m + A⁻¹ Σ_n w_n ∇f_n(m),   from m = θ,

the first of which is `−A⁻¹ ∇log π0(θ)`, since the two gradients cancel at a mode. If both are quadratic that is all:
then `θ = H⁻¹ (A m + P μ)`. A step is made only if the likelihood grows by it.

`A` may be singular, as with more columns than rows or with classes that a plane divides, or bent the wrong way. So in
every direction `v` with `A v = λ H v` the share `λ` of the information that comes from the rows is taken to be one half
at least: where the prior says more than the rows, a step is no longer than twice that of the posterior, and the pull
is taken out in part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from betacores.grid import chosen, grid_derivatives, priors_at
from betacores.models.base import Model
from betacores.sources import Source

if TYPE_CHECKING:
    from jaxtyping import Float

# The share of the information that rows are taken to give at least.
LEAST_SHARE = 0.5
# Steps at most, and the squared length, in posterior standard deviations, of one that is the last.
STEPS, TOLERANCE = 8, 1e-3


class Alone(NamedTuple):
    """What the rows say without the prior, one entry a lane.

    ``steps`` leads from the posterior's modes to ``modes``, where ``curvatures`` are `H` and ``inverses`` `A⁻¹`.
    """

    steps: Float[np.ndarray, "k p"]
    modes: Float[np.ndarray, "k p"]
    curvatures: Float[np.ndarray, "k p p"]
    inverses: Float[np.ndarray, "k p p"]


def without_prior(
    model: Model, source: Source, thetas: Float[np.ndarray, "k p"], betas: Float[np.ndarray, " k"], scale: float = 1.0
) -> Alone:
    """Take the prior's pull out of modes.

    Parameters
    ----------
    model, source
        The model, and the rows.
    thetas, betas
        The modes of the posterior, and the β of each.
    scale
        By which the sums over the source are multiplied, when it is a sample of the rows.
    """
    modes = np.asarray(thetas, np.float32)
    bends = -priors_at(model, modes).hessian

    def look(at: np.ndarray) -> list[np.ndarray]:
        value, gradient, hessian = grid_derivatives(model, source, at, betas, scale=scale)
        curvatures = bends - hessian
        inverses = np.stack([rows_inverse(h, bend) for h, bend in zip(curvatures, bends, strict=True)])
        return [value, gradient, curvatures, inverses]

    here = look(modes)
    for _ in range(STEPS):
        _, gradient, _, inverse = here
        step = np.einsum("kpq,kq->kp", inverse, gradient)
        # Where the posterior has no curvature to speak of, the mode stays.
        step = np.where(np.isfinite(step).all(1)[:, None], step, 0.0)
        beyond = (modes + step).astype(np.float32)
        there = look(beyond)
        better = (there[0] >= here[0]) & np.isfinite(there[3]).all((1, 2))
        modes, *here = chosen(better, [beyond, *there], [modes, *here])
        if np.all(~better | ((step * gradient).sum(1) <= TOLERANCE)):
            break
    return Alone(modes - np.asarray(thetas, np.float64), modes, here[2], here[3])


def rows_inverse(curvature: Float[np.ndarray, "p p"], bend: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Return `A⁻¹` with rows that have their share in every direction; not a number if `H` is not positive.

    Parameters
    ----------
    curvature, bend
        The negative Hessians `H` of the log-posterior and `P` of the log-prior.
    """
    try:
        whitening = np.linalg.inv(np.linalg.cholesky(curvature))
        share, directions = np.linalg.eigh(whitening @ (curvature - bend) @ whitening.T)
    except np.linalg.LinAlgError:
        return np.full_like(curvature, np.nan)
    directions = whitening.T @ directions
    return (directions / np.maximum(share, LEAST_SHARE)) @ directions.T
