"""Constructions of coresets, one a module, and the registry of their names.

A construction is registered as three functions: which settings it takes, which β it runs with, and how it builds the
path of coresets from the rows; with it stand the size taken when none is asked for, and whether it can make use of
trust in the covariates.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from betacores.constructions.incremental import incremental
from betacores.constructions.path import Path
from betacores.constructions.pursuit import Settings, pursuit
from betacores.constructions.uniform import uniform
from betacores.divergence import has_power_integral
from betacores.inputs import check_choice, check_number
from betacores.models import Model
from betacores.preparation import Prepared
from betacores.scores import row_scores
from betacores.target import Target

DEFAULT_SIZE = 100
# Rows trusted less for their covariates are not chosen.
LEAST_TRUST = 0.5


class Context(NamedTuple):
    """What a construction works on: rows, model, β and its mode; the sum over all rows; the likelihood of readers."""

    prepared: Prepared
    target: Target
    readout: str
    progress: Callable[[int, int], None] | None = None


class Construction(NamedTuple):
    """A way to build a coreset.

    ``beta`` returns None when β is to be chosen from the data; ``build`` gets None for a size that is left open, if
    ``open_size`` is true.
    """

    check: Callable[[dict[str, Any]], dict[str, Any]]
    beta: Callable[[Model, float | None], float | None]
    build: Callable[[Context, jax.Array, int | None, dict[str, Any]], Path]
    open_size: bool = False
    guarded: bool = False


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


def _build_incremental(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    settings, prepared = dict(settings), context.prepared
    eligible, warnings = _screened(context, settings.pop("screen"))
    path = incremental(
        prepared.model,
        prepared.source.on_device,
        key,
        size=size or DEFAULT_SIZE,
        beta=prepared.beta,
        eligible=eligible,
        progress=context.progress,
        **settings,
    )
    return path._replace(warnings=warnings + path.warnings)


def _screened(context: Context, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes enough to choose from them (None for all), and what to say of it."""
    prepared = context.prepared
    if screen == 0 or prepared.beta == 0:
        return None, ()
    eligible, warnings = _some(
        row_scores(prepared.model, prepared.source, prepared.found.theta, prepared.beta) >= screen
    )
    return eligible, _doubts(prepared) + warnings


def _doubts(prepared: Prepared) -> tuple[str, ...]:
    """Say what may be wrong with the mode that a construction relies on."""
    lost = () if prepared.found.converged else ("The search for the β-posterior's mode did not converge.",)
    return lost + prepared.found.rivals


def _some(eligible: np.ndarray) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if eligible.any():
        return eligible, ()
    return None, ("No row passes the screen, so none was applied: the model fits no row well.",)


# What pursuit itself takes has its defaults there; the reader is an argument of `summarize`.
PURSUIT_DEFAULTS: dict[str, Any] = {
    **{name: value for name, value in Settings()._asdict().items() if name != "readout"},
    "screen": 0.05,
    "init": None,
}


def _check_pursuit(given: dict[str, Any]) -> dict[str, Any]:
    settings = _with_defaults(given, PURSUIT_DEFAULTS)
    check_number("draws", settings["draws"], at_least=2, whole=True)
    check_number("candidates", settings["candidates"], at_least=1, whole=True)
    check_number("screen", settings["screen"], at_least=0, below=1)
    check_number("tolerance", settings["tolerance"], above=0)
    check_number("exchanges", settings["exchanges"], at_least=0, whole=True)
    check_number("polish", settings["polish"], at_least=0, whole=True)
    return settings


def _build_pursuit(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    prepared, settings = context.prepared, dict(settings)
    screen, init = settings.pop("screen"), settings.pop("init")
    eligible, warnings = _eligible(prepared, screen)
    path = pursuit(
        prepared.model,
        prepared.source,
        key,
        size=size,
        beta=prepared.beta,
        found=prepared.found,
        target=context.target,
        settings=Settings(readout=context.readout, **settings),
        eligible=eligible,
        init=init,
        progress=context.progress,
    )
    return path._replace(warnings=_doubts(prepared) + warnings + path.warnings)


def _eligible(prepared: Prepared, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes and the guard trusts (None for all), and what to say of it."""
    eligible: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    # At β = 0 every row counts, and any may be needed to stand for the others.
    if screen > 0 and prepared.beta > 0:
        eligible, warnings = _some(prepared.scores >= screen)
    if prepared.trust is None or prepared.trust.min() >= LEAST_TRUST:
        return eligible, warnings
    believed = np.ones(len(prepared.trust), bool) if eligible is None else eligible
    for least in (LEAST_TRUST, np.finfo(np.float32).tiny):
        trusted = believed & (prepared.trust >= least)
        if trusted.any():
            return trusted, warnings
    return prepared.trust > 0, (
        *warnings,
        "No row is both believed and trusted: it is the trusted ones that were taken.",
    )


def _build_uniform(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    return uniform(context.prepared.source.row_count, key, size=size or DEFAULT_SIZE)


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


def _robust_beta(model: Model, beta: float | None) -> float | None:
    if has_power_integral(model):
        return beta
    if beta:
        raise ValueError(f"beta: the model {model.name!r} has no power integral, so only beta=0 can be used.")
    return 0.0


def _classical_beta(model: Model, beta: float | None) -> float:
    del model
    if beta:
        raise ValueError(
            f"beta: this method is for β = 0, got {beta!r}; use method='pursuit' or 'beta-cores', or leave beta out."
        )
    return 0.0


METHODS: dict[str, Construction] = {
    "pursuit": Construction(_check_pursuit, _robust_beta, _build_pursuit, open_size=True, guarded=True),
    "beta-cores": Construction(_check_incremental, _robust_beta, _build_incremental),
    "sparse-vi": Construction(_check_incremental, _classical_beta, _build_incremental),
    "uniform": Construction(lambda given: _with_defaults(given, {}), _classical_beta, _build_uniform),
}
