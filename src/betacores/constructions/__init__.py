"""Constructions of coresets, one a module, and the registry of their names.

A construction is registered as three functions: which settings it takes, which β it runs with, and how it builds the
path of coresets from the rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from betacores.constructions.incremental import incremental
from betacores.constructions.path import Path
from betacores.constructions.pursuit import pursuit
from betacores.constructions.uniform import uniform
from betacores.divergence import has_power_integral
from betacores.inputs import check_choice, check_number
from betacores.models import Model
from betacores.pilot import pilot
from betacores.scores import row_scores
from betacores.sources import ArraySource


class Context(NamedTuple):
    """What a construction works on: the rows, the model and β, and the robust mode over all rows."""

    model: Model
    source: ArraySource
    beta: float
    mode: np.ndarray
    progress: Callable[[int, int], None] | None = None


class Construction(NamedTuple):
    """A way to build a coreset."""

    check: Callable[[dict[str, Any]], dict[str, Any]]
    beta: Callable[[Model, int, float | None], float]
    build: Callable[[Context, jax.Array, int, dict[str, Any]], Path]


INCREMENTAL_DEFAULTS: dict[str, Any] = {
    "draws": 100,
    "steps": 500,
    "batch_select": 1000,
    "batch_optimise": 200,
    "learning_rate": 1.0,
    "optimiser": "adam",
    "sampler_target": "beta",
    "screen": 0.05,
}


def _check_incremental(given: dict[str, Any]) -> dict[str, Any]:
    settings = _with_defaults(given, INCREMENTAL_DEFAULTS)
    check_number("draws", settings["draws"], at_least=2, whole=True)
    check_number("steps", settings["steps"], at_least=1, whole=True)
    for name in ("batch_select", "batch_optimise"):
        if settings[name] is not None:
            check_number(name, settings[name], at_least=1, whole=True)
    rate = settings["learning_rate"]
    for value in [rate(t) for t in range(1, settings["steps"] + 1)] if callable(rate) else [rate]:
        check_number("learning_rate", value, above=0)
    check_choice("optimiser", settings["optimiser"], ("adam", "sgd"))
    check_choice("sampler_target", settings["sampler_target"], ("beta", "classical"))
    check_number("screen", settings["screen"], at_least=0, below=1)
    return settings


def _build_incremental(context: Context, key: jax.Array, size: int, settings: dict[str, Any]) -> Path:
    settings = dict(settings)
    eligible, warnings = _screened(context, settings.pop("screen"))
    path = incremental(
        context.model,
        context.source.on_device,
        key,
        size=size,
        beta=context.beta,
        eligible=eligible,
        progress=context.progress,
        **settings,
    )
    return path._replace(warnings=warnings + path.warnings)


PURSUIT_DEFAULTS: dict[str, Any] = {"readout": "classical", "draws": 500, "candidates": 5000, "screen": 0.05}


def _check_pursuit(given: dict[str, Any]) -> dict[str, Any]:
    settings = _with_defaults(given, PURSUIT_DEFAULTS)
    check_choice("readout", settings["readout"], ("classical", "beta"))
    check_number("draws", settings["draws"], at_least=2, whole=True)
    check_number("candidates", settings["candidates"], at_least=1, whole=True)
    check_number("screen", settings["screen"], at_least=0, below=1)
    return settings


def _build_pursuit(context: Context, key: jax.Array, size: int, settings: dict[str, Any]) -> Path:
    pilot_key, key = jax.random.split(key)
    found = pilot(context.model, context.source, context.beta, pilot_key)
    context = context._replace(mode=found.theta)
    settings = dict(settings)
    eligible, warnings = _screened(context, settings.pop("screen"))
    if not found.converged:
        warnings += ("The search for the β-posterior's mode did not converge.",)
    path = pursuit(
        context.model,
        context.source,
        key,
        size=size,
        beta=context.beta,
        mode=found.theta,
        eligible=eligible,
        **settings,
    )
    return path._replace(warnings=warnings + path.warnings)


def _screened(context: Context, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes enough to choose from them (None for all), and what to say of it."""
    if screen == 0 or context.beta == 0:
        return None, ()
    eligible = row_scores(context.model, context.source, context.mode, context.beta) >= screen
    if eligible.any():
        return eligible, ()
    return None, ("No row passes the screen, so none was applied: the model fits no row well.",)


def _build_uniform(context: Context, key: jax.Array, size: int, settings: dict[str, Any]) -> Path:
    return uniform(context.source.row_count, key, size=size)


def _with_defaults(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    for name in given:
        if name in defaults:
            continue
        if name in ("weights", "sample_weight"):
            raise TypeError(f"{name}: weights of input rows are not supported; repeat rows, or leave it out.")
        near = difflib.get_close_matches(name, defaults, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        taken = f" It takes: {', '.join(defaults)}." if defaults else " It takes no settings of its own."
        raise TypeError(f"{name!r} is not a setting of this method.{hint}{taken}")
    return {**defaults, **given}


def _robust_beta(model: Model, columns: int, beta: float | None) -> float:
    if beta != 0 and not has_power_integral(model):
        raise ValueError(f"beta: the model {model.name!r} has no power integral, so only beta=0 can be used.")
    if beta is None:
        return min(0.5, 0.2 / columns) if model.response == "none" else 0.5
    return float(beta)


def _classical_beta(model: Model, columns: int, beta: float | None) -> float:
    if beta:
        raise ValueError(f"beta: this method is for β = 0, got {beta!r}; use method='beta-cores', or leave beta out.")
    return 0.0


METHODS: dict[str, Construction] = {
    "beta-cores": Construction(_check_incremental, _robust_beta, _build_incremental),
    "pursuit": Construction(_check_pursuit, _robust_beta, _build_pursuit),
    "sparse-vi": Construction(_check_incremental, _classical_beta, _build_incremental),
    "uniform": Construction(lambda given: _with_defaults(given, {}), lambda *_: 0.0, _build_uniform),
}
