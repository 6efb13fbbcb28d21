"""The Gaussian posterior of a few weighted rows on the host: in closed form where there is one, else by Laplace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import Beta
from betacores.models.base import Model, Rows
from betacores.posteriors.conjugate import conjugate, has_conjugate
from betacores.posteriors.gaussian import Gaussian
from betacores.posteriors.laplace import laplace

if TYPE_CHECKING:
    from jaxtyping import Float

# Coresets are padded to multiples of so many rows: every number of rows would be a compilation of its own.
PAD_ROWS = 128


def weighted_posterior(
    model: Model, rows: Rows, weights: Float[np.ndarray, " m"], beta: Beta, *, closed: bool | None = None
) -> tuple[Gaussian, bool]:
    """Return the posterior of weighted rows, and whether the search for its mode converged.

    Parameters
    ----------
    model, rows, weights
        The posterior's ingredients.
    beta
        Of the β-likelihood; None is the classical posterior.
    closed
        Whether to take the closed form; by default where there is one.
    """
    held, held_weights = padded(rows, weights)
    if closed if closed is not None else has_conjugate(model) and beta is None:
        return _conjugate(model, held, held_weights), True
    fit, how = _laplace(model, held, held_weights, beta)
    return fit, bool(how.converged)


def padded(rows: Rows, weights: Float[np.ndarray, " m"]) -> tuple[Rows, jax.Array]:
    """Return rows and weights padded by rows of weight zero, in single precision.

    They repeat the last row: a likelihood need not be defined at a row of zeros.
    """
    count = len(weights)
    length = max(-(-count // PAD_ROWS), 1) * PAD_ROWS

    def pad(values: np.ndarray) -> jax.Array:
        values = np.asarray(values, np.float32)
        more = [(0, length - count)] + [(0, 0)] * (values.ndim - 1)
        return jnp.asarray(np.pad(values, more, mode="edge" if count else "constant"))

    counted = np.pad(np.asarray(weights, np.float32), (0, length - count))
    return Rows(pad(rows.x), None if rows.y is None else pad(rows.y)), jnp.asarray(counted)


_conjugate = jax.jit(conjugate)
_laplace = jax.jit(laplace)
