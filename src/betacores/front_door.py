"""The front door: a table in, a coreset out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Literal

from betacores.checkpoints import checkpoint_folder
from betacores.checks import check_choice, check_number, check_rows, check_seed
from betacores.constructions import DEFAULT_SIZE, METHODS, Construction
from betacores.cores import linear_algebra_in_place
from betacores.coreset import Coreset, Likelihood
from betacores.info import Info
from betacores.models import Model
from betacores.opening import is_dask
from betacores.precision import single_precision
from betacores.preparation import Guarding
from betacores.reading import Found, Table, read
from betacores.running import about_run, run, run_keys
from betacores.sources.journal import Journal
from betacores.sources.watch import Watch

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
    columns: Sequence[str] | None = None,
    filter: Any = None,
    checkpoint: str | os.PathLike | None = None,
    client: Any = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    on_pass: Callable[[str, int, int], None] | None = None,
    **settings: Any,
) -> Coreset:
    """Summarise a table by a few weighted rows, leaving its outliers behind.

    Parameters
    ----------
    data
        A table of finite numbers, rows down: an array or a pandas, polars or pyarrow table. For one with words or
        missing cells see `betacores.make_robust_preprocessor` and `betacores.CoresetSelector`. Or where a table is
        that memory need not hold: a Parquet file, a folder or pattern of them, a list; an ``.npy`` file or a memory
        map; a Dask DataFrame or Array. Same seed, same coreset, wherever the rows are.
    y
        The response, one value a row; left out for models of the rows themselves.
    target
        The name of the response's column, for a table that holds it, in place of ``y``.
    model
        ``"linear"``, ``"gaussian"`` (its noise unknown), ``"student-t"``, ``"gamma"`` (numbers above 0), ``"poisson"``,
        ``"negative-binomial"``, ``"logistic"`` (two classes), ``"noisy-logistic"`` (some labels flipped at random),
        ``"softmax"`` (several classes); for whole rows ``"gaussian-mean"``, ``"gaussian-density"``,
        ``"gaussian-mixture"``, ``"exponential"``, ``"categorical"``, ``"multinomial"``; or a `Model`, one's own among
        them (`betacores.models.BlackBox`, `from_numpyro`). By default chosen from the response: none, two values, words
        of more kinds, or numbers.
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
        beyond doubt aside altogether. Where some groups are dirtier than others, its guard learns from the clean ones
        what covariates are like.
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
    columns, filter
        For files: the covariates, by default all columns but the response; and which rows are meant, an expression of
        `pyarrow.dataset` such as ``pyarrow.dataset.field("year") > 2020``.
    checkpoint
        A folder in which passes over the rows are noted down. A run that was killed goes on from there when it is
        started again with the same arguments, and ends with the same coreset.
    client
        For Dask collections: the `distributed.Client` to compute with. By default the current one, or a cluster on this
        machine for the time of the run.
    seed
        Same seed, same input, same coreset.
    progress
        Called with the number of finished steps and their total.
    on_pass
        Called during passes over the rows with what they are for, the number of rows seen, and of all rows.
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
    if groups is None:
        _check_no_groups(max_groups, weights_by)
    else:
        _check_grouped(method, construction, size, max_groups, weights_by, settings)
    if checkpoint is not None:
        checkpoint = checkpoint_folder(checkpoint)
    watch = Watch(on_pass)
    table = Table(data, y, target, groups, sample_weight, columns, filter)
    streamed = construction.streams and groups is None and not callable(guard)
    asked = {
        "method": method,
        "size": size if groups is None else max_groups,
        "beta": beta,
        "readout": readout,
        "guard": guard,
        "score_beta": score_beta,
        "seed": seed,
        **({} if groups is None else {"weights_by": weights_by}),
        **settings,
    }
    with ExitStack() as stack:
        passing = False
        if is_dask(data):
            from betacores.clusters import brought_here, computing_on

            client, passing = stack.enter_context(computing_on(client))
        found = read(table, model, run_keys(seed)[-1], watch, streamed=streamed, client=client)
        found.problem.source.watch = watch
        info, wanted = _agreed(found, construction, asked)
        chosen_beta = construction.beta(found.problem.model, None if beta == "auto" else beta)
        if checkpoint is not None:
            found.problem.source.journal = Journal(checkpoint, about_run(found.problem, info))
        with single_precision(), linear_algebra_in_place():
            coreset = run(found, construction, info, wanted, chosen_beta, progress)
        return brought_here(coreset, client) if passing else coreset


def _agreed(found: Found, construction: Construction, asked: dict[str, Any]) -> tuple[Info, int | None]:
    """Return what was asked for, after checking it against the table, and the size; None to leave that open."""
    rows, grouping, model = found.problem.source.row_count, found.grouping, found.problem.model
    if asked["method"] == "psvi" and not model.movable:
        raise ValueError(
            f"method: 'psvi' moves points anywhere, and the cells of the model {model.name!r} are of a kind; choose "
            "'pursuit', which keeps rows as they are."
        )
    what, most = ("rows", rows) if grouping is None else ("groups", len(grouping))
    size, default = asked["size"], DEFAULT_SIZE if grouping is None else DEFAULT_GROUPS
    if size != "auto" and size > most:
        name = "size" if grouping is None else "max_groups"
        raise ValueError(f"{name}: at most the {most} {what} of data can be kept, got {size}; ask for fewer.")
    wanted = (None if construction.open_size else min(default, most)) if size == "auto" else size
    settings = {**asked, "size": "auto" if wanted is None else wanted}
    if settings.get("init") is not None:
        settings["init"] = check_rows("init", settings["init"], rows)
    if grouping is not None:
        settings["groups"] = len(grouping)
    if found.problem.weight is not None:
        settings["sample_weight"] = found.problem.weight
    return Info(settings=settings, notes=list(found.problem.notes)), wanted


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
    if size is None:
        raise TypeError("size: expected a whole number at least 1, or 'auto' for as many rows as it takes, got None.")
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
