"""The unit of a model's density: with it a typical clean row counts as one observation under the β-likelihood.

The density of a real outcome has units, and `p^β` with it (see `betacores.models.open_model`). With the mode `θ̂` for
the β of the scores and the median `Ī` of the power integrals `I_n(θ̂)` over a sample of rows, the unit is `Ī^(−1/β)`: a
clean row's weight `unit^β p^β` is then 1 on average. The mode itself hardly depends on the unit, and is found with a
first guess: the spread of the response, or of all columns of models of whole rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import has_power_integral
from betacores.models.base import Model, Rows
from betacores.models.open_model import OpenModel
from betacores.pilot import search
from betacores.robust import robust_location_scale
from betacores.scores import default_score_beta
from betacores.sources import ArraySource, Source

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# The median is taken over so many rows.
ROWS = 1000


def with_own_unit(model: OpenModel, source: Source, sample: ArraySource) -> OpenModel:
    """Return the model with the unit that a sample of its rows suggests."""
    if not has_power_integral(model):
        return model.with_unit(0.0)
    scale = source.row_count / sample.row_count
    guess = model.with_unit(_log_spread(model, Rows(sample.x, sample.y)))
    beta = default_score_beta(model, len(source.columns))
    found = search(guess, sample, scale, beta)
    stride = -(-sample.row_count // ROWS)
    some = Rows(sample.x[::stride], None if sample.y is None else sample.y[::stride])
    integrals = np.asarray(_integrals(guess, jnp.asarray(found.theta), some, jnp.float32(beta)), np.float64)
    return model.with_unit(guess.log_unit - float(np.log(np.median(integrals))) / beta)


def _log_spread(model: Model, rows: Rows) -> float:
    if model.response == "count":
        return 0.0
    table = rows.x if rows.y is None else rows.y[:, None]
    return float(np.log(np.sqrt(2 * np.pi) * robust_location_scale(table)[1]).sum())


@jax.jit
def _integrals(model: OpenModel, theta: Array, rows: Rows, beta: Array) -> Float[Array, " n"]:
    return jax.vmap(model.power_integral, (None, 0, None))(theta, rows, beta)
