"""The front door: a table in, a coreset out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from betacores.constructions import METHODS, Context
from betacores.coreset import Coreset, Info
from betacores.divergence import has_power_integral
from betacores.inputs import Problem, check_choice, check_number, check_seed, read_problem
from betacores.models import Model
from betacores.pilot import Pilot, pilot
from betacores.scores import contamination, default_score_beta, row_scores

# Far beyond any use; what lies further is no number of single precision.
LARGEST_BETA = 1e6


def summarize(
    data: Any,
    y: Any = None,
    *,
    model: str | Model = "auto",
    size: int = 100,
    beta: float | None = None,
    method: str = "beta-cores",
    score_beta: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Coreset:
    """Summarise a table by a few weighted rows, leaving its outliers behind.

    Parameters
    ----------
    data
        A table of finite numbers, rows down: an array or a pandas or polars DataFrame.
    y
        The response, one value a row; left out for models of the rows themselves.
    model
        ``"gaussian-mean"``, ``"linear"``, ``"logistic"``, or a `Model`. By default chosen from the response: none,
        two values, or more.
    size
        Number of outer iterations, and so the largest number of rows to keep.
    beta
        Robustness: 0 trusts every row, larger values let go of rows the model finds unlikely. By default 0.5 for
        models with a response and `min(0.5, 0.2 / columns)` for models of whole rows.
    method
        ``"beta-cores"`` (Algorithm 1 of the β-Cores paper), ``"sparse-vi"`` (the same with β = 0), ``"pursuit"``
        (sparse regression on the β-posterior, faster and closer) or ``"uniform"``.
    score_beta
        The β of the row scores, above 0; by default at least 0.5 (or `2 / columns` for models of whole rows).
    seed
        Same seed, same input, same coreset.
    progress
        Called with the number of finished outer iterations and their total.
    **settings
        Of the method. For ``"beta-cores"`` and ``"sparse-vi"``: ``draws``, ``steps``, ``batch_select``,
        ``batch_optimise``, ``learning_rate``, ``optimiser``, ``sampler_target`` and ``screen``; see
        `betacores.constructions.incremental`. For ``"pursuit"``: ``readout``, ``draws``, ``candidates`` and ``screen``;
        see `betacores.constructions.pursuit`.

    Returns
    -------
    Coreset
        The rows, their weights, a score for every input row, and how they came about.
    """
    construction = METHODS[check_choice("method", method, METHODS)]
    check_number("size", size, at_least=1, whole=True)
    check_seed(seed)
    if beta is not None:
        check_number("beta", beta, at_least=0, below=LARGEST_BETA)
    if score_beta is not None:
        check_number("score_beta", score_beta, above=0, below=LARGEST_BETA)
    settings = construction.check(settings)
    problem = read_problem(data, y, model)
    columns = len(problem.source.columns)
    if size > problem.source.row_count:
        raise ValueError(
            f"size: at most the {problem.source.row_count} rows of data can be kept, got {size}; ask for fewer."
        )
    beta = construction.beta(problem.model, columns, beta)
    score_beta = score_beta or default_score_beta(problem.model, columns, beta)
    info = Info(
        settings={
            "model": problem.model.name,
            "method": method,
            "size": size,
            "beta": beta,
            "score_beta": score_beta,
            "seed": seed,
            **settings,
        },
        notes=list(problem.notes),
    )
    # Every computation is in single precision, whatever the caller has set JAX to.
    with jax.enable_x64(False):
        return _summarize(problem, construction, info, settings, progress)


def _summarize(problem: Problem, construction: Any, info: Info, settings: dict, progress: Callable | None) -> Coreset:
    pilot_key, key = jax.random.split(jax.random.key(info.settings["seed"]))
    model, source, beta = problem.model, problem.source, info.settings["beta"]
    started = time.perf_counter()
    scores, found = _scores(problem, info.settings["score_beta"], pilot_key)
    if not found.converged:
        info.warnings.append("The search for the robust mode did not converge; scores may be off.")
    info.timings["scores"] = time.perf_counter() - started
    started = time.perf_counter()
    context = Context(model, source, beta, found.theta, progress)
    path = construction.build(context, key, info.settings["size"], settings)
    info.timings[info.settings["method"]] = time.perf_counter() - started
    info.warnings.extend(path.warnings)
    info.trace = {"size": (path.weights > 0).sum(1).tolist(), "total_weight": path.weights.sum(1).tolist()}
    if info.warnings:
        warnings.warn(" ".join(info.warnings), stacklevel=3)
    whole = Coreset(
        indices=path.indices,
        weights=path.weights[-1],
        X=problem.x[path.indices],
        y=None if problem.y is None else problem.y[path.indices],
        scores=scores,
        contamination=contamination(scores),
        model=model,
        method=info.settings["method"],
        beta=beta,
        info=info,
        columns=source.columns,
        labels=problem.labels,
        path=path,
        path_X=problem.x[path.indices],
        path_y=None if problem.y is None else problem.y[path.indices],
    )
    return whole.at(len(path.weights))


def _scores(problem: Problem, beta: float, key: jax.Array) -> tuple[np.ndarray, Pilot]:
    if not has_power_integral(problem.model):
        # Without a power integral there is no robust likelihood to score with: every row counts as believed.
        found = pilot(problem.model, problem.source, 0.0, key)
        return np.ones(problem.source.row_count, np.float32), found
    found = pilot(problem.model, problem.source, beta, key)
    return row_scores(problem.model, problem.source, found.theta, beta), found
