"""Classical inference from rows with weights: what coresets are held against, and the short way to measure one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np

from betacores.evaluation.measures import measures
from betacores.info import Info
from betacores.inputs import Problem
from betacores.models import Model
from betacores.models.base import Rows
from betacores.pilot import approximation, pilot
from betacores.posteriors.gaussian import Gaussian
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision
from betacores.preparation import settled

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, PRNGKeyArray


def reference_posterior(
    problem: Problem, key: PRNGKeyArray, kept: Bool[np.ndarray, " rows"] | None = None
) -> tuple[Model, Gaussian]:
    """Return the model without open ends, and its classical posterior given all rows, or those kept.

    The posterior is Laplace's approximation, exact for a likelihood quadratic in θ and all but exact for so many rows,
    found in passes over blocks of rows.
    """
    settle_key, mode_key = jax.random.split(key)
    source = problem.source if kept is None else problem.source.weighted(kept.astype(np.float32))
    with single_precision():
        model = settled(problem.model, source, None, settle_key, Info({}))
        return model, approximation(model, pilot(model, source, 0.0, mode_key))


def classical_measures(
    model: Model, rows: Rows, weights: Float[np.ndarray, " m"], test: Rows, *, draws: int = 200
) -> dict[str, float]:
    """Return the measures of classical inference from weighted rows, by draws of its Gaussian approximation."""
    with single_precision():
        posterior, _ = weighted_posterior(model, rows, weights, None)
        thetas = np.asarray(posterior.draw(jax.random.key(0), draws))
    return {name: float(value[0]) for name, value in measures(model, thetas, test).items()}
