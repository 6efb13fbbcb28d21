"""Constructions of coresets, one a module, and the registry of their names.

A construction is registered as its settings with their defaults, which β it runs with, and how it builds the path of
coresets from the rows; with it stand whether the size may be left open, whether it can make use of trust in the
covariates, whether it can choose whole groups, and whether rows may stay in files or on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.constructions.frank_wolfe import frank_wolfe
from betacores.constructions.giga import giga
from betacores.constructions.group_incremental import group_incremental
from betacores.constructions.hilbert import lengths, projected
from betacores.constructions.importance import importance
from betacores.constructions.incremental import incremental
from betacores.constructions.path import Path
from betacores.constructions.psvi import psvi
from betacores.constructions.pursuit import Settings, pursuit
from betacores.constructions.quasi_newton import quasi_newton
from betacores.constructions.screening import believed, believed_and_trusted, doubts
from betacores.constructions.settings import checked
from betacores.constructions.uniform import uniform
from betacores.constructions.units import WholeGroups
from betacores.divergence import has_power_integral
from betacores.groups import Groups
from betacores.leverage import leverages
from betacores.models import Model
from betacores.pilot import curvature
from betacores.preparation import Prepared
from betacores.randomness import split
from betacores.sampling import sample_by, sample_of
from betacores.survey import Survey
from betacores.target import Target

if TYPE_CHECKING:
    from jaxtyping import Bool

DEFAULT_SIZE = 100


class Context(NamedTuple):
    """What a construction works on: rows, model, β and its mode; what a look at all rows showed; their sum; readers.

    With ``groups`` it chooses whole groups, and sizes are numbers of groups; ``by_row`` says whether the rows of a
    group have weights of their own, None to leave that to the construction.
    """

    prepared: Prepared
    survey: Survey
    target: Target
    readout: str
    progress: Callable[[int, int], None] | None = None
    groups: Groups | None = None
    by_row: bool | None = None


class Construction(NamedTuple):
    """A way to build a coreset.

    ``beta`` returns None when β is to be chosen from the data; ``build`` gets None for a size that is left open, if
    ``open_size`` is true.
    """

    defaults: dict[str, Any]
    beta: Callable[[Model, float | None], float | None]
    build: Callable[[Context, jax.Array, int | None, dict[str, Any]], Path]
    open_size: bool = False
    guarded: bool = False
    grouped: bool = False
    streams: bool = False

    def check(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all settings, those given before the defaults, after checking them."""
        return checked(given, self.defaults)


def _build_pursuit(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    prepared, settings = context.prepared, dict(settings)
    screen, init = settings.pop("screen"), settings.pop("init")
    pursue = partial(
        pursuit,
        prepared.model,
        beta=prepared.beta,
        found=prepared.found,
        target=context.target,
        settings=Settings(readout=context.readout, **settings),
    )
    if context.groups is None:
        pool = context.survey.candidates
        assert pool is not None  # it is asked for
        path = pursue(pool, key, ids=pool.ids, size=size, init=init, progress=context.progress)
        return path._replace(warnings=doubts(prepared) + context.survey.warnings + path.warnings)
    eligible, warnings = believed_and_trusted(prepared, screen)
    # Rows that are not believed are left out of the groups that are kept: the coreset is cleansed, as ever.
    units, count = WholeGroups(context.groups, eligible), settings["candidates"]
    candidate_key = jax.random.fold_in(key, 1)
    able = units.eligible()
    ids = sample_of(candidate_key, np.ones(len(context.groups), bool) if able is None else able, count)
    path = pursue(prepared.source, key, ids=ids, size=size, units=units, progress=context.progress)

    def rows_among(among: Bool[np.ndarray, " rows"]) -> Path:
        swing = leverages(prepared.model, prepared.source, curvature(prepared.model, prepared.found))
        some = sample_of(candidate_key, among, count)
        if swing is not None:
            some = sample_by(candidate_key, among, swing, count)
        return pursue(prepared.source, key, ids=some, size=None)

    path = units.with_row_weights(path, rows_among) if context.by_row else units.as_rows(path)
    return path._replace(warnings=doubts(prepared) + warnings + path.warnings)


def _build_incremental(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    settings, prepared = dict(settings), context.prepared
    eligible, warnings = believed(prepared, settings.pop("screen"))
    if context.groups is not None and context.groups.sizes.max() > 1:
        settings.pop("batch_select")
        path = group_incremental(
            prepared.model,
            prepared.source,
            context.groups,
            key,
            size=size or DEFAULT_SIZE,
            beta=prepared.beta,
            eligible=WholeGroups(context.groups, eligible).eligible(),
            by_row=context.by_row is not False,
            progress=context.progress,
            **settings,
        )
        return path._replace(warnings=warnings + path.warnings)
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


def _build_psvi(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    prepared, size = context.prepared, size or DEFAULT_SIZE
    return psvi(
        prepared.model, prepared.source, key, size=size, beta=prepared.beta, progress=context.progress, **settings
    )


def _build_quasi_newton(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    prepared = context.prepared
    return quasi_newton(
        prepared.model,
        prepared.source,
        key,
        size=size or DEFAULT_SIZE,
        beta=prepared.beta,
        target=context.target,
        progress=context.progress,
        **settings,
    )


def _build_giga(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    rows = projected(context.prepared, context.target, key, **settings)
    path = giga(rows.vectors, rows.target, size=size or DEFAULT_SIZE, progress=context.progress)
    return path._replace(indices=rows.ids[path.indices])


def _build_frank_wolfe(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    rows = projected(context.prepared, context.target, key, **settings)
    path = frank_wolfe(
        rows.vectors, rows.target, size=size or DEFAULT_SIZE, total=rows.total, progress=context.progress
    )
    return path._replace(indices=rows.ids[path.indices])


def _build_importance(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    length_key, draw_key = split(key, 2)
    return importance(lengths(context.prepared, length_key, **settings), draw_key, size=size or DEFAULT_SIZE)


def _build_uniform(context: Context, key: jax.Array, size: int | None, settings: dict[str, Any]) -> Path:
    size = size or DEFAULT_SIZE
    if context.groups is None:
        return uniform(context.prepared.source.row_count, key, size=size)
    path = WholeGroups(context.groups).as_rows(uniform(len(context.groups), key, size=size))
    # Every row of the groups drawn stands for as many of all.
    taken = path.weights > 0
    return path._replace(weights=taken * (context.prepared.source.row_count / taken.sum(1, keepdims=True)))


def _robust_beta(model: Model, beta: float | None) -> float | None:
    if has_power_integral(model):
        return beta
    if beta:
        raise ValueError(f"beta: the model {model.name!r} has no power integral, so only beta=0 can be used.")
    return 0.0


def _given_beta(model: Model, beta: float | None) -> float | None:
    """Return the β asked for; the method was published without one, and by default has none."""
    return _robust_beta(model, beta or 0.0)


def _classical_beta(model: Model, beta: float | None) -> float:
    del model
    if beta:
        raise ValueError(
            f"beta: this method is for β = 0, got {beta!r}; use method='pursuit' or 'beta-cores', or leave beta out."
        )
    return 0.0


# What pursuit itself takes has its defaults there; the reader is an argument of `summarize`.
PURSUIT: dict[str, Any] = {
    **{name: value for name, value in Settings()._asdict().items() if name != "readout"},
    "screen": 0.05,
    "init": None,
}
INCREMENTAL: dict[str, Any] = {
    "draws": 100,
    "steps": 500,
    "batch_select": 1000,
    "batch_optimise": 200,
    "learning_rate": 1.0,
    "optimiser": "adam",
    "sampler_target": "beta",
    "screen": 0.05,
}
PSVI: dict[str, Any] = {
    "draws": 100,
    "steps": 500,
    "batch_optimise": 200,
    "learning_rate": 0.1,
    "optimiser": "adam",
    "sizes": None,
}
QUASI_NEWTON: dict[str, Any] = {"draws": 200, "iterations": 20, "damping": 1e-2, "sizes": None}
HILBERT: dict[str, Any] = {"draws": 200, "candidates": 20_000}

METHODS: dict[str, Construction] = {
    "pursuit": Construction(
        PURSUIT, _robust_beta, _build_pursuit, open_size=True, guarded=True, grouped=True, streams=True
    ),
    "beta-cores": Construction(INCREMENTAL, _robust_beta, _build_incremental, grouped=True),
    "sparse-vi": Construction(INCREMENTAL, _classical_beta, _build_incremental, grouped=True),
    "psvi": Construction(PSVI, _given_beta, _build_psvi),
    "quasi-newton": Construction(QUASI_NEWTON, _given_beta, _build_quasi_newton),
    "giga": Construction(HILBERT, _given_beta, _build_giga),
    "frank-wolfe": Construction(HILBERT, _given_beta, _build_frank_wolfe),
    "importance": Construction({"draws": 200}, _given_beta, _build_importance),
    "uniform": Construction({}, _classical_beta, _build_uniform, grouped=True, streams=True),
}
