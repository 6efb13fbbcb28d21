"""Which method serves one's own table best: several side by side, in one tidy frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.checks import check_choice, check_number, check_seed
from betacores.constructions import METHODS
from betacores.evaluation.draws import Sampler
from betacores.evaluation.trial import ALL_ROWS, CLEAN_ROWS, Sampling, run_trial
from betacores.front_door import check_arguments
from betacores.inputs import Problem, read_problem
from betacores.models import Model
from betacores.number_tables import read_table
from betacores.responses import read_response

if TYPE_CHECKING:
    import pandas

CHAINS = 2
DEFAULT_METHODS = ("pursuit", "beta-cores", "sparse-vi", "uniform")

Split = tuple[np.ndarray, np.ndarray | None]


def compare(
    data: Any,
    y: Any = None,
    *,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]] = DEFAULT_METHODS,
    sizes: Sequence[int] = (10, 30, 100),
    truth: Any = None,
    test: tuple[Any, Any] | Any = None,
    test_share: float = 0.2,
    model: str | Model = "auto",
    trials: int = 1,
    sampler: Sampler = "nuts",
    draws: int = 250,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> pandas.DataFrame:
    """Compare methods on a table by how well their coresets of several sizes predict rows they have not seen.

    Parameters
    ----------
    data, y
        The table and its response, as `betacores.summarize` takes them.
    methods
        Names of methods, with their defaults; or, by names of one's own, arguments of `betacores.summarize`:
        ``{"robust": {"method": "beta-cores", "beta": 0.5}}``.
    sizes
        Sizes to measure. A method that stops earlier is measured as it stopped.
    truth
        Which rows are known to be dirty, if that is known: coresets are then also measured by the dirty rows they keep
        and by their divergence from the posterior of the clean rows, and only clean rows are predicted.
    test
        Rows and responses to predict, a pair, or rows alone if there is no response. By default a random share of the
        rows is held out.
    test_share
        That share.
    model
        As `betacores.summarize` takes it.
    trials
        How often to repeat it, with other rows held out and another seed.
    sampler, draws
        How the posteriors of coresets are drawn from, ``"nuts"`` or ``"laplace"``, and draws of each of two chains.
    seed
        Same seed, same frame (but for the seconds).
    progress
        Called with the number of finished methods, over all trials, and their total.

    Returns
    -------
    pandas.DataFrame
        One row a method, size and trial, and for classical inference from ``"all rows"`` and, if ``truth`` is given,
        from the ``"clean rows"``. Columns: ``trial``, ``method``, ``size``, rows ``kept``, ``beta``; ``accuracy`` (of
        the likelier label under each draw, averaged) and ``calibration_error`` for two labels, ``rmse`` for real
        responses, and ``log_density`` of the rows predicted; ``dirty`` and ``kl_to_clean`` if ``truth`` is given;
        ``r_hat``, ``effective_sample_size`` and ``divergences`` of NUTS; ``total_weight``, ``contamination``, and the
        ``seconds`` that the largest size took, compilation included.
    """
    pandas = _pandas()
    _check_sampler(sampler)
    plans = _plans(methods)
    wanted = sorted({int(check_number("sizes", size, at_least=1, whole=True)) for size in _listed("sizes", sizes)})
    check_number("trials", trials, at_least=1, whole=True)
    check_number("draws", draws, at_least=4, whole=True)
    check_number("test_share", test_share, above=0, below=1)
    check_seed(check_seed(seed) + trials - 1)
    # Model and labels are those of the whole table, whichever rows are held out.
    problem = read_problem(data, y, model)
    for name, plan in plans.items():
        _told(name, partial(_check_beta, plan, problem.model))
    columns = problem.source.columns
    dirty = None if truth is None else _read_truth(truth, len(problem.x))
    parameters = problem.model.parameter_count(len(columns))
    if dirty is not None and CHAINS * draws <= parameters:
        raise ValueError(f"draws: {parameters} parameters need more than {parameters // CHAINS} draws, got {draws}.")
    if test is not None:
        splits = [(np.ones(len(problem.x), bool), _read_test(test, problem))] * trials
    else:
        splits = [_held_out(problem, dirty, test_share, seed + trial) for trial in range(trials)]
    tables = [pandas.DataFrame(problem.x[kept], columns=columns) for kept, _ in splits]
    responses = [None if problem.y is None else problem.y[kept] for kept, _ in splits]
    for table, response in zip(tables, responses, strict=True):
        # What a split may lack, a label or a column that varies, is said before any work.
        read_problem(table, response, problem.model)
    records = []
    for trial, (kept, held) in enumerate(splits):
        found = run_trial(
            tables[trial],
            responses[trial],
            held,
            plans,
            sizes=wanted,
            model=problem.model,
            truth=None if dirty is None else dirty[kept],
            seed=seed + trial,
            sampling=Sampling(sampler=sampler, draws=draws, chains=CHAINS),
            progress=None if progress is None else _shifted(progress, trial * len(plans), trials * len(plans)),
        )
        records += [{"trial": trial, **record} for record in found]
    frame = pandas.DataFrame(records)
    # References have neither: whole numbers that may be missing.
    frame = frame.astype({name: "Int64" for name in ("dirty", "divergences") if name in frame})
    return frame[[name for name in ORDER if name in frame] + [name for name in frame if name not in ORDER]]


# Who and how large, how good, how far to trust that, and what it took.
ORDER = (
    *("trial", "method", "size", "kept", "beta", "accuracy", "rmse", "log_density", "calibration_error"),
    *("kl_to_clean", "dirty", "r_hat", "effective_sample_size", "divergences"),
)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError("compare() needs pandas; install betacores[pandas].") from None
    return pandas


def _check_sampler(sampler: Sampler) -> None:
    if check_choice("sampler", sampler, ("nuts", "laplace")) == "nuts":
        try:
            import blackjax  # noqa: F401
        except ImportError:
            raise ImportError("sampler: 'nuts' needs BlackJAX; install betacores[nuts], or choose 'laplace'.") from None


def _listed(name: str, values: Any) -> list:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name}: expected a list, got {values!r}; put it in brackets.")
    listed = list(values)
    if not listed:
        raise ValueError(f"{name}: expected at least one, got none.")
    return listed


def _plans(methods: Any) -> dict[str, Mapping[str, Any]]:
    """Return the arguments of every method by its name, checked."""
    names = _listed("methods", methods)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"methods: expected names of methods, got {name!r}.")
    plans = dict(methods) if isinstance(methods, Mapping) else {name: {"method": name} for name in names}
    for name, plan in plans.items():
        if name in (ALL_ROWS, CLEAN_ROWS):
            raise ValueError(f"methods: {name!r} is what a row of the frame is called; choose another name.")
        if not isinstance(plan, Mapping):
            raise TypeError(f"methods: {name!r} must come with arguments of summarize, a dictionary; got {plan!r}.")
        for argument in ("data", "y", "model", "progress"):
            if argument in plan:
                raise ValueError(f"methods: {name!r} has {argument!r}, which is the same for all; see compare's own.")
        check_choice("methods", plan.get("method", "pursuit"), METHODS)
        _told(name, partial(check_arguments, **plan))
    return plans


def _check_beta(plan: Mapping[str, Any], model: Model) -> None:
    beta = plan.get("beta", "auto")
    METHODS[plan.get("method", "pursuit")].beta(model, None if beta == "auto" else beta)


def _told(name: str, check: Callable[[], Any]) -> None:
    """Make a check whose complaint says which method it is about."""
    try:
        check()
    except (TypeError, ValueError) as error:
        raise type(error)(f"methods: {name!r}: {error}") from None


def _read_truth(truth: Any, rows: int) -> np.ndarray:
    dirty = np.asarray(truth)
    if dirty.shape != (rows,) or dirty.dtype.kind not in "biuf" or not np.isin(dirty, (0, 1)).all():
        raise ValueError(
            f"truth: expected for each of the {rows} rows whether it is dirty, true or false; got shape {dirty.shape}"
            f" and values like {dirty.ravel()[:3].tolist()}."
        )
    dirty = dirty.astype(bool)
    if dirty.all():
        raise ValueError("truth: it calls every row dirty; at least some must be clean.")
    return dirty


def _read_test(test: Any, problem: Problem) -> Split:
    """Return rows and responses to predict, in the order of the table's columns."""
    pair = isinstance(test, (tuple, list)) and len(test) == 2
    if problem.y is not None and not (pair and test[1] is not None):
        raise TypeError("test: expected a pair, rows and their responses; got something else.")
    rows, y = test if problem.y is not None or (pair and test[1] is None) else (test, None)
    try:
        x, names = read_table(rows)
        held = None if y is None else read_response(y, len(x))
    except (TypeError, ValueError) as error:
        raise type(error)(f"test: {error}") from None
    columns = problem.source.columns
    if len(names) != len(columns):
        raise ValueError(f"test: expected the {len(columns)} columns of data, got {len(names)}.")
    unnamed = [f"x{i}" for i in range(len(columns))]
    if names != columns and unnamed not in (names, columns):
        strange = [name for name in names if name not in columns]
        if strange:
            raise ValueError(f"test: the column {strange[0]!r} is not among those of data; use the same names.")
        x = x[:, [names.index(name) for name in columns]]
    if held is not None and problem.labels is not None:
        known = problem.labels.tolist()
        strange = [value for value in held.tolist() if value not in known]
        if strange:
            raise ValueError(f"test: the label {strange[0]!r} is not among those of y; use the same labels.")
    elif held is not None and held.dtype.kind not in "fiub":
        raise ValueError(f"test: expected numbers as responses, got {held.tolist()[0]!r}.")
    return x, held


def _held_out(problem: Problem, dirty: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, Split]:
    """Return which rows are kept, and the others, of which none is known to be dirty.

    Of each label the same share is held out, and one row at least is kept.
    """
    x, y = problem.x, problem.y
    clean = np.ones(len(x), bool) if dirty is None else ~dirty
    labels = [clean] if problem.labels is None else [clean & (y == label) for label in problem.labels]
    random = np.random.default_rng(seed)
    out = np.concatenate([random.permutation(np.flatnonzero(own))[: round(share * (own.sum() - 1))] for own in labels])
    if not len(out):
        raise ValueError(f"data: {clean.sum()} clean rows are too few to hold some out; pass test= rows of their own.")
    kept = np.ones(len(x), bool)
    kept[out] = False
    return kept, (x[out], None if y is None else y[out])


def _shifted(progress: Callable[[int, int], None], done: int, total: int) -> Callable[[int, int], None]:
    return lambda finished, _: progress(done + finished, total)
