"""The front door: a table in, a coreset out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import jax
import numpy as np

from betacores.checks import check_choice, check_number, check_rows, check_seed
from betacores.constructions import DEFAULT_SIZE, METHODS, Construction, Context
from betacores.constructions.path import Path
from betacores.constructions.screening import choosable, without_dirty_groups
from betacores.coreset import Coreset, Likelihood
from betacores.groups import Groups, read_groups
from betacores.info import Info
from betacores.inputs import Problem, is_frame, named_response, read_problem
from betacores.models import Model
from betacores.origin import Origin
from betacores.precision import single_precision
from betacores.preparation import Guarding, prepare
from betacores.quality import kl_estimate
from betacores.scores import contamination
from betacores.target import target_of

# Far beyond any use; what lies further is no number of single precision.
LARGEST_BETA = 1e6
DEFAULT_GROUPS = 10


def summarize(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    model: str | Model = "auto",
    size: int | Literal["auto"] = "auto",
    beta: float | Literal["auto"] = "auto",
    method: str = "pursuit",
    readout: Likelihood = "classical",
    guard: Guarding = "auto",
    score_beta: float | None = None,
    groups: Any = None,
    max_groups: int | Literal["auto"] = "auto",
    weights_by: Literal["row", "group"] | None = None,
    sample_weight: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Coreset:
    """Summarise a table by a few weighted rows, leaving its outliers behind.

    Parameters
    ----------
    data
        A table of finite numbers, rows down: an array or a pandas, polars or pyarrow table. For one with words or
        missing cells see `betacores.make_robust_preprocessor` and `betacores.CoresetSelector`.
    y
        The response, one value a row; left out for models of the rows themselves.
    target
        The name of the response's column, for a table that holds it, in place of ``y``.
    model
        ``"gaussian-mean"``, ``"linear"``, ``"logistic"`` (two classes), ``"softmax"`` (several), ``"poisson"`` or
        ``"negative-binomial"`` (counts), or a `Model`. By default chosen from the response: none, two values, words of
        more kinds, or numbers.
    size
        The largest number of rows to keep. By default pursuit keeps as many as bring the estimated KL divergence
        below ``tolerance`` (0.1), at most 500; the other methods keep 100.
    beta
        Robustness: 0 trusts every row, larger values let go of rows the model finds unlikely. By default the value
        with the smallest estimated error on a grid, see `betacores.tuning`, for pursuit and beta-cores, and 0 for the
        other methods, which were published without it.
    method
        ``"pursuit"`` (sparse regression on the β-posterior), ``"beta-cores"`` (Algorithm 1 of the β-Cores paper),
        ``"sparse-vi"`` (the same with β = 0), ``"psvi"`` (points that are moved, so that they are rows no longer),
        ``"quasi-newton"`` (a uniform subset with optimised weights), ``"giga"``, ``"frank-wolfe"`` and
        ``"importance"`` (Hilbert coresets), or ``"uniform"``. Each is a module of `betacores.constructions`.
    readout
        Who will read the coreset: ``"classical"``, any tool with the ordinary likelihood, or ``"beta"``, this package
        with the β-likelihood. Pursuit builds for that reader. The published methods build with the β-likelihood
        whoever reads; for them it only says how `Coreset.posterior` reads.
    guard
        Whether rows with absurd covariates count less: ``"auto"`` models the covariates robustly, see
        `betacores.guard`; a function of the table returns each row's trust, between 0 and 1; None is no guard. Only
        pursuit has one; the published methods take rows as they are.
    score_beta
        The β of the row scores, above 0; by default at least 0.5 (or `2 / columns` for models of whole rows).
    groups
        Choose whole groups of rows: a label for every row; the name of a column of ``data``, or of several, whose
        combinations are the groups and which then are no covariates; or lists of row numbers, one a group. Pursuit
        leaves rows that it would not choose by themselves out of the groups it keeps, and sets groups that are dirty
        beyond doubt aside altogether.
    max_groups
        The largest number of groups to keep, in place of ``size``. By default pursuit keeps as many as bring the
        estimated divergence below ``tolerance``; the other methods keep 10.
    weights_by
        Whether the rows of a group have weights of their own (``"row"``, as published, and the default of beta-cores
        and sparse-vi) or one in common (``"group"``, the default of pursuit and what uniform does). With ``"row"``
        pursuit keeps of the groups it has chosen as many rows as are needed.
    sample_weight
        How many rows each row stands for, for pursuit: a whole number is as good as the row repeated, and a row of
        weight 0 counts nothing and is never chosen. Scores and contamination are of the rows as given.
    seed
        Same seed, same input, same coreset.
    progress
        Called with the number of finished steps and their total.
    **settings
        Of the method. For ``"pursuit"``: ``draws``, ``candidates``, ``screen``, ``tolerance``, ``exchanges``,
        ``polish`` and ``init``; see `betacores.constructions.pursuit`. For ``"beta-cores"`` and ``"sparse-vi"``:
        ``draws``, ``steps``, ``batch_select``, ``batch_optimise``, ``learning_rate``, ``optimiser``,
        ``sampler_target`` and ``screen``; see `betacores.constructions.incremental`. The other methods' modules list
        theirs.

    Returns
    -------
    Coreset
        The rows, their weights, a score for every input row, and how they came about.
    """
    construction, settings = check_arguments(method, size, beta, readout, guard, score_beta, seed, **settings)
    guard = guard if construction.guarded else None
    if sample_weight is not None and not construction.guarded:
        raise TypeError(
            f"sample_weight: weights of input rows are not supported by the method {method!r}; use method='pursuit'."
        )
    frame, (data, y, target) = data, named_response(data, y, target, groups)
    grouping = None
    if groups is None:
        _check_no_groups(max_groups, weights_by)
    else:
        _check_grouped(method, construction, size, max_groups, weights_by, settings)
        grouping, data = read_groups(groups, data, len(data))
    problem = read_problem(data, y, model, sample_weight)
    _check_counted_labels(problem)
    rows = problem.source.row_count
    what, most, asked = ("rows", rows, size) if grouping is None else ("groups", len(grouping), max_groups)
    if asked != "auto" and asked > most:
        name = "size" if grouping is None else "max_groups"
        raise ValueError(f"{name}: at most the {most} {what} of data can be kept, got {asked}; ask for fewer.")
    if settings.get("init") is not None:
        settings["init"] = check_rows("init", settings["init"], rows)
    wanted = None if construction.open_size else min(DEFAULT_SIZE if grouping is None else DEFAULT_GROUPS, most)
    wanted = wanted if asked == "auto" else asked
    info = Info(
        settings={
            "method": method,
            "size": "auto" if wanted is None else wanted,
            "beta": beta,
            "readout": readout,
            "guard": guard,
            "score_beta": score_beta,
            "seed": seed,
            **({} if grouping is None else {"groups": len(grouping), "weights_by": weights_by}),
            **({} if _unweighted(problem) else {"sample_weight": float(problem.source.weights.sum(dtype=np.float64))}),
            **settings,
        },
        notes=list(problem.notes),
    )
    origin = Origin(problem.x, problem.y, target=target)
    if is_frame(frame):
        origin = replace(origin, frame=frame, sources=list(problem.source.columns))
    chosen_beta = construction.beta(problem.model, None if beta == "auto" else beta)
    with single_precision():
        return _summarize(problem, construction, info, wanted, chosen_beta, settings, progress, origin, grouping)


def _check_no_groups(max_groups: Any, weights_by: Any) -> None:
    for name, value, default in (("max_groups", max_groups, "auto"), ("weights_by", weights_by, None)):
        if value != default:
            raise ValueError(f"{name}: there are no groups; pass groups=, or leave it out.")


def _check_grouped(
    method: str, construction: Construction, size: Any, max_groups: Any, weights_by: Any, settings: dict[str, Any]
) -> None:
    if not construction.grouped:
        able = ", ".join(repr(name) for name, one in METHODS.items() if one.grouped)
        raise ValueError(f"groups: the method {method!r} chooses rows only; choose from: {able}.")
    if size != "auto":
        raise ValueError("size: with groups the budget is max_groups; leave size out.")
    if max_groups != "auto":
        check_number("max_groups", max_groups, at_least=1, whole=True)
    if weights_by is not None:
        check_choice("weights_by", weights_by, ("row", "group"))
        if weights_by == "row" and method == "uniform":
            raise ValueError(f"weights_by: the method {method!r} gives one weight to all rows; leave it out.")
    if settings.get("init") is not None:
        raise ValueError("init: with groups it is not supported; leave it out.")


def _unweighted(problem: Problem) -> bool:
    return bool((problem.source.weights == 1).all())


def _check_counted_labels(problem: Problem) -> None:
    if problem.labels is None or problem.y is None:
        return
    counted = problem.y[problem.source.weights > 0]
    if (counted == counted[0]).all():
        raise ValueError("sample_weight: the rows that count are all of one class; rows of both classes are needed.")


def check_arguments(
    method: str = "pursuit",
    size: Any = "auto",
    beta: Any = "auto",
    readout: Any = "classical",
    guard: Any = "auto",
    score_beta: Any = None,
    seed: Any = 0,
    **settings: Any,
) -> tuple[Construction, dict[str, Any]]:
    """Check what does not depend on the rows; return the construction and all its settings."""
    construction = METHODS[check_choice("method", method, METHODS)]
    if size != "auto":
        check_number("size", size, at_least=1, whole=True)
    check_seed(seed)
    if beta != "auto":
        check_number("beta", beta, at_least=0, below=LARGEST_BETA)
    if score_beta is not None:
        check_number("score_beta", score_beta, above=0, below=LARGEST_BETA)
    check_choice("readout", readout, ("classical", "beta"))
    if callable(guard) and not construction.guarded:
        raise ValueError(f"guard: the method {method!r} takes rows as they are; use method='pursuit'.")
    if not (guard is None or callable(guard)):
        check_choice("guard", guard, ("auto",))
    return construction, construction.check(settings)


def _summarize(
    problem: Problem,
    construction: Construction,
    info: Info,
    size: int | None,
    beta: float | None,
    settings: dict,
    progress: Callable | None,
    origin: Origin,
    grouping: Groups | None = None,
) -> Coreset:
    keys = jax.random.split(jax.random.key(info.settings["seed"]), 5)
    asked = info.settings
    prepared = prepare(problem, keys[0], info, beta=beta, score_beta=asked["score_beta"], guard=asked["guard"])
    if grouping is not None and construction.guarded:
        prepared, said = without_dirty_groups(prepared, grouping)
        info.notes.extend(said)
    model, source, found = prepared.model, prepared.source, prepared.found
    info.settings |= {"model": model.name, "beta": prepared.beta, "score_beta": prepared.score_beta}
    started = time.perf_counter()
    target = target_of(model, source, found, prepared.beta, keys[1])
    by_row = None if asked.get("weights_by") is None else asked["weights_by"] == "row"
    context = Context(choosable(prepared), target, asked["readout"], progress, grouping, by_row)
    path = construction.build(context, keys[2], size, settings)
    info.timings[asked["method"]] = time.perf_counter() - started
    info.warnings.extend(path.warnings)
    info.trace = {
        "size": (path.weights > 0).sum(1).tolist(),
        "total_weight": path.weights.sum(1).tolist(),
        **(path.trace or {}),
    }
    kept = path.weights[-1] > 0
    started = time.perf_counter()
    read_beta = prepared.beta if asked["readout"] == "beta" else 0.0
    fresh = target_of(model, source, found, prepared.beta, keys[3])
    rows = source.take(path.indices) if path.points is None else path.points
    rows = jax.tree.map(lambda values: values[kept], rows)
    estimate = kl_estimate(model, fresh, rows, path.weights[-1][kept], keys[4], read_beta=read_beta)
    # Cells far beyond what single precision can weigh against each other leave no estimate.
    info.kl_estimate = estimate if np.isfinite(estimate).all() else None
    info.timings["quality"] = time.perf_counter() - started
    if size is None:
        info.notes.append(
            f"size: {kept.sum()} rows, enough for an estimated KL divergence below {settings['tolerance']:g}"
            if not path.warnings
            else f"size: {kept.sum()} rows"
        )
    if info.warnings:
        warnings.warn(" ".join(info.warnings), stacklevel=3)
    x, y = _kept_rows(problem, path)
    whole = Coreset(
        indices=path.indices,
        weights=path.weights[-1],
        X=x,
        y=y,
        scores=prepared.scores,
        covariate_scores=prepared.trust,
        contamination=contamination(prepared.scores, prepared.trust),
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


def _kept_rows(problem: Problem, path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of a path as they were given, or the points that the construction put in their place."""
    x, y = problem.x[path.indices], None if problem.y is None else problem.y[path.indices]
    if path.points is None:
        return x, y
    moved = np.asarray(path.points.x, np.float64)
    # Only real responses are moved; others come back as they were given.
    return moved, np.asarray(path.points.y, np.float64) if problem.model.response == "real" else y
