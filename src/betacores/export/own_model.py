"""Weighted NumPyro models of a person's own models.

A model that came from NumPyro goes back as it was written, with the log-probability of every row's outcome multiplied
by the row's weight. One made of plain functions becomes one of two factors, the prior and the weighted rows; its
parameters are deterministic sites by their names, and ``theta`` is the vector of free numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from betacores.export.ingredients import check_readable
from betacores.inputs import encode_rows

if TYPE_CHECKING:
    from betacores.coreset import Coreset


def own_model(coreset: Coreset) -> Callable[[], Any]:
    """Return a NumPyro model of the coreset of a person's own model: a function without arguments."""
    from betacores.models.numpyro_model import NumPyroModel

    check_readable(coreset)
    try:
        import numpyro
        import numpyro.distributions as dist
    except ImportError:
        raise ImportError("to_numpyro() needs NumPyro; install betacores[numpyro].") from None
    own: Any = coreset.model
    rows = jax.tree.map(jnp.asarray, encode_rows(coreset.X, coreset.y, coreset.labels))
    if isinstance(own, NumPyroModel):
        return own.weighted(rows, coreset.weights)
    weights, layout = jnp.asarray(coreset.weights), own.layout

    def model() -> None:
        free = dist.ImproperUniform(dist.constraints.real_vector, (), (layout.size,))
        theta = numpyro.sample("theta", free)
        named = layout(theta)
        if isinstance(named, dict):
            for name, value in named.items():
                numpyro.deterministic(name, value)
        numpyro.factor("prior", own.log_prior(theta))
        numpyro.factor("rows", weights @ jax.vmap(own.log_likelihood, (None, 0))(theta, rows))

    return model
