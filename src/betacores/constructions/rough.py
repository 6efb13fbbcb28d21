"""The posterior that gradient steps draw from: in closed form where there is one, else a mode found roughly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from betacores.divergence import Beta
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import conjugate
from betacores.posteriors.gaussian import Gaussian
from betacores.posteriors.laplace import laplace

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Draws need the mode to a few per cent of a standard deviation only, and the last Newton step comes on top.
MODE_TOLERANCE = 1e-3
MODE_STEPS = 30


def rough_posterior(
    model: Model, rows: Rows, weights: Float[Array, " m"], beta: Beta, start: Float[Array, " p"] | None, exact: bool
) -> Gaussian:
    """Return the posterior of weighted rows, the search for its mode begun at the one of the step before."""
    if exact:
        return conjugate(model, rows, weights)
    return laplace(model, rows, weights, beta, start, tolerance=MODE_TOLERANCE, max_steps=MODE_STEPS)[0]
