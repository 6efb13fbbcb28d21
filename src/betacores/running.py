"""A run: from a checked table to its coreset."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from betacores.constructions import Construction, Context
from betacores.constructions.path import Path
from betacores.constructions.screening import guard_of_clean_groups, without_dirty_groups
from betacores.coreset import Coreset
from betacores.divergence import has_power_integral
from betacores.flips import told_of_flips
from betacores.info import Info
from betacores.inputs import Problem
from betacores.noise import told_of_one_side
from betacores.precision import single_precision
from betacores.preparation import Stage, prepare, tell_of_guard
from betacores.quality import kl_estimate
from betacores.randomness import split
from betacores.reading import Found
from betacores.survey import survey
from betacores.target import target_of


def run(
    found: Found,
    construction: Construction,
    info: Info,
    size: int | None,
    beta: float | None,
    progress: Callable[[int, int], None] | None,
) -> Coreset:
    """Return the coreset of a table.

    Parameters
    ----------
    found
        The checked table.
    construction
        How rows are chosen.
    info
        What was asked for; gets what comes about.
    size, beta
        None to leave them open.
    progress
        Called with the number of finished steps and their total.
    """
    problem, grouping, origin = found
    settings = {name: info.settings[name] for name in construction.defaults}
    asked = info.settings
    prepare_key, survey_key, build_key, quality_key, sample_key = run_keys(asked["seed"])
    prepare_with = partial(
        prepare,
        problem,
        prepare_key,
        beta=beta,
        score_beta=asked["score_beta"],
        guard=asked["guard"],
        sample_key=sample_key,
    )
    blank = replace(info, notes=[*info.notes], warnings=[*info.warnings])
    prepared = prepare_with(info)
    if grouping is not None and construction.guarded:
        learned, said = guard_of_clean_groups(prepared, grouping)
        if learned is not None:
            info = blank
            prepared = prepare_with(info, learned=learned)
        prepared, more = without_dirty_groups(prepared, grouping)
        info.notes.extend(said + more)
    stage = Stage(info, problem.source.watch)
    model, source, pilot = prepared.model, prepared.source, prepared.found
    info.settings |= {"model": model.name, "beta": prepared.beta, "score_beta": prepared.score_beta}
    with stage("survey"):
        picked = survey(
            prepared,
            survey_key,
            candidates=settings["candidates"] if construction.guarded and grouping is None else None,
            screen=settings.get("screen", 0.0),
            also=settings.get("init"),
        )
    tell_of_guard(info, prepared, picked.beliefs, picked.suspicious)
    info.notes += told_of_flips(model, prepared.sample, pilot.theta, picked.beliefs.contamination)
    info.notes += told_of_one_side(model, prepared.sample, pilot.theta, prepared.beta)
    # Labels are not close to each other: it is the prior then that makes the model less sure than the rows are.
    if has_power_integral(model) and model.response != "classes" and picked.beliefs.too_high:
        info.warnings.append(
            f"Rows fit better than the model allows (mean score {picked.beliefs.mean_score:.2f}, where 1 is the most "
            "it can mean): some lie closer together than it says, in a tight cluster perhaps, or its scale is too "
            "large."
        )
    targets = [
        target_of(model, pilot, prepared.beta, source=source, far=picked.far, others=others)
        for others in picked.others or (None, None)
    ]
    by_row = None if asked.get("weights_by") is None else asked["weights_by"] == "row"
    with stage(asked["method"]):
        context = Context(prepared, picked, targets[0], asked["readout"], progress, grouping, by_row)
        path = construction.build(context, build_key, size, settings)
    info.warnings.extend(path.warnings)
    info.trace = {
        "size": (path.weights > 0).sum(1).tolist(),
        "total_weight": path.weights.sum(1).tolist(),
        **(path.trace or {}),
    }
    kept = path.weights[-1] > 0
    with stage("quality"):
        read_beta = prepared.beta if asked["readout"] == "beta" else 0.0
        rows = (picked.candidates or source).take(path.indices) if path.points is None else path.points
        rows = jax.tree.map(lambda values: values[kept], rows)
        estimate = kl_estimate(model, targets[1], rows, path.weights[-1][kept], quality_key, read_beta=read_beta)
        # Cells far beyond what single precision can weigh against each other leave no estimate.
        info.kl_estimate = estimate if np.isfinite(estimate).all() else None
    if size is None:
        info.notes.append(
            f"size: {kept.sum()} rows, enough for an estimated KL divergence below {settings['tolerance']:g}"
            if not path.warnings
            else f"size: {kept.sum()} rows"
        )
    if problem.source.watch is not None:
        info.passes = dict(problem.source.watch.passes)
    if info.warnings:
        warnings.warn(" ".join(info.warnings), stacklevel=3)
    x, y = _kept_rows(problem, path)
    whole = Coreset(
        indices=path.indices,
        weights=path.weights[-1],
        X=x,
        y=y,
        scores=source.as_array(prepared.scores),
        covariate_scores=source.as_array(prepared.trust),
        contamination=picked.beliefs.contamination,
        contamination_interval=picked.beliefs.interval,
        model=model,
        method=asked["method"],
        beta=prepared.beta,
        info=info,
        columns=source.columns,
        labels=problem.labels,
        path=path,
        path_X=x,
        path_y=y,
        grouping=grouping,
        origin=origin,
    )
    return whole.at(len(path.weights))


def run_keys(seed: int) -> list[jax.Array]:
    """Return the random keys of a run: preparation, survey, construction, quality, and the sample of rows."""
    with single_precision():
        return split(jax.random.key(seed), 5)


def about_run(problem: Problem, info: Info) -> dict[str, Any]:
    """Return what tells a run from another: its rows, what was asked, and who computes it."""
    from betacores import __version__

    source = problem.source
    return {
        "betacores": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "model": repr(problem.model),
        "settings": {name: _said(value) for name, value in info.settings.items()},
        "data": source.identity(),
    }


def _said(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool, type(None))) else getattr(value, "__name__", repr(value))


def _kept_rows(problem: Problem, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of a path as they were given, or the points that the construction put in their place."""
    if problem.x is None:
        x, y = problem.source.as_given(path.indices)
    else:
        x, y = problem.x[path.indices], None if problem.y is None else problem.y[path.indices]
    if path.points is None:
        return x, y
    moved = np.asarray(path.points.x, np.float64)
    # Only real responses are moved; others come back as they were given.
    return moved, np.asarray(path.points.y, np.float64) if problem.model.response == "real" else y
