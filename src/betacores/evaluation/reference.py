"""The posteriors that coresets are held against: classical inference from all rows, or from the clean ones."""

from __future__ import annotations

import jax
import numpy as np
from jaxtyping import Bool, PRNGKeyArray

from betacores.info import Info
from betacores.inputs import Problem
from betacores.models import Model
from betacores.pilot import approximation, pilot
from betacores.posteriors.gaussian import Gaussian
from betacores.precision import single_precision
from betacores.preparation import settled


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
        model = settled(problem.model, source, settle_key, Info({}))
        return model, approximation(model, pilot(model, source, 0.0, mode_key))
