"""What every construction stands on: trust in the covariates, what the model leaves open, β, its mode, and the scores.

In this order, since each needs the one before: trust weighs the rows of every later sum; the noise of a linear model
is that of the trusted rows; β is chosen for the settled model; the mode is that of the chosen β; scores are read at a
mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.clean_share import with_clean_share
from betacores.divergence import has_power_integral
from betacores.guard import Guard, explain, fit_guard, trust
from betacores.info import Info
from betacores.inputs import Problem
from betacores.models import LinearRegression, Model, Rows
from betacores.models.open_model import OpenModel
from betacores.models.scaled import ESCAPED
from betacores.noise import robust_noise, told_of_exactness
from betacores.pilot import Found, Pilot, nearer, polished, rows_of, sampled, search
from betacores.programs import block_program
from betacores.randomness import split
from betacores.samples import large_sample, small_sample
from betacores.scores import Beliefs, default_score_beta, row_scores
from betacores.sources import ArraySource, Pool, Source, by_chunks, collect
from betacores.sources.watch import Watch
from betacores.tuning import Tuning, beta_grid, tune
from betacores.units import with_own_unit

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, PRNGKeyArray

Guarding = str | None | Callable[[np.ndarray], Any]


class Prepared(NamedTuple):
    """The model without open ends, rows weighted by trust and a sample of them, β and its mode, and scores of all rows.

    ``scores`` and ``trust`` have one number a row, in an array or wherever the source keeps them. ``score_theta`` is
    the parameter that scores are read at, ``sample_ids`` the numbers of the rows of the sample.
    """

    model: Model
    source: Any
    beta: float
    found: Pilot
    score_beta: float
    scores: Any
    trust: Any
    score_theta: Float[np.ndarray, " p"]
    sample: ArraySource
    sample_ids: Int[np.ndarray, " n"]
    guard: Guard | None


class Trusted(NamedTuple):
    """Trust in every row's covariates, and in those of the larger sample; and the guard it is from, if it is ours."""

    trust: Any
    of_sample: Float[np.ndarray, " n"]
    fitted: Guard | None


def prepare(
    problem: Problem,
    key: PRNGKeyArray,
    info: Info,
    *,
    beta: float | None,
    score_beta: float | None,
    guard: Guarding,
    sample_key: PRNGKeyArray | None = None,
    learned: Guard | None = None,
) -> Prepared:
    """Do everything that comes before a construction, and note in `info` what was chosen and why.

    Parameters
    ----------
    problem
        The checked input.
    key
        Random key.
    info
        Gets notes, warnings and timings.
    beta, score_beta
        None to choose.
    guard
        ``"auto"``, a function of the table as given that returns each row's trust, or None for no guard.
    sample_key
        Decides which rows the sample is of; by default the key does.
    learned
        The guard, if it is known already what sound covariates are like.
    """
    noise_key, default_key = split(key, 2)
    model, source = problem.model, problem.source
    stage = Stage(info, source.watch)
    with stage("guard"):
        sample_key = default_key if sample_key is None else sample_key
        ids = large_sample(sample_key, source.row_count, len(source.columns))
        larger, few = rows_of(source, ids), small_sample(sample_key, len(ids))
        guarded = _trust(problem, guard, larger, few, ids, info, learned)
        if guarded is not None:
            source, larger = source.trusting(guarded.trust), larger.trusting(guarded.of_sample)
        sample = larger if len(few) == len(ids) else rows_of(larger, few)
    with stage("noise"):
        model = settled(model, source, sample, noise_key, info)
    tuning = None
    if beta is None:
        wanted = (score_beta or default_score_beta(model, len(source.columns)),) if has_power_integral(model) else ()
        grid = beta_grid(model, len(source.columns))
        with stage("tuning"):
            tuning = tune(model, source, sample, grid, wanted, larger=larger)
        beta = tuning.beta
        info.tuning = tuning.curve()
        if len(grid) > 1:
            info.notes.append(
                f"beta: {beta:.3g}, with the smallest estimated error of {len(grid)} values from 0 to {grid[-1]:.3g}"
            )
    score_beta = score_beta or default_score_beta(model, len(source.columns), beta)
    with stage("mode"):
        found, at = _modes(model, source, sample, larger, beta, score_beta, tuning)
    if hasattr(model, "told"):
        info.notes.append(model.told(found.theta))
    if beta > 0 and hasattr(model, "escaped") and np.any(model.escaped(found.theta[None])):
        info.warnings.append(f"The mode stands {ESCAPED}")
    info.pilot = {"start": found.start, "converged": found.converged, "rivals": list(found.rivals)}
    with stage("scores"):
        if has_power_integral(model):
            scores = row_scores(model, source, at.theta, score_beta)
            if not at.converged:
                info.warnings.append("The search for the robust mode did not converge; scores may be off.")
        else:
            scores = collect(source, _ones)
    trusted, fitted = (None, None) if guarded is None else (guarded.trust, guarded.fitted)
    return Prepared(model, source, beta, found, score_beta, scores, trusted, at.theta, sample, ids[few], fitted)


class Stage:
    """Times what is done inside a ``with`` block, by its name, and lets the watch know of it."""

    def __init__(self, info: Info, watch: Watch | None):
        self.info, self.watch = info, watch

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Do something under a name."""
        if self.watch is not None:
            self.watch.stage = name
        started = time.perf_counter()
        yield
        self.info.timings[name] = self.info.timings.get(name, 0.0) + time.perf_counter() - started


def _trust(
    problem: Problem,
    guard: Guarding,
    larger: ArraySource,
    few: np.ndarray,
    ids: np.ndarray,
    info: Info,
    learned: Guard | None,
) -> Trusted | None:
    """Return the trust in every row; None without a guard."""
    if guard is None:
        return None
    if guard == "auto" and problem.model.response == "none":
        info.notes.append("guard: none, since the model is of whole rows")
        return None
    source = problem.source
    if callable(guard):
        trusted = _checked_trust(guard(problem.x), source.row_count)
        return Trusted(trusted, trusted[ids], None)
    fitted = fit_guard(larger.x[few]) if learned is None else learned
    return Trusted(collect(source, block_trust, fitted), collect(larger, block_trust, fitted), fitted)


def tell_of_guard(info: Info, prepared: Prepared, beliefs: Beliefs, suspicious: Pool) -> None:
    """Note what the guard did: how many rows it touched, and the columns that gave them away."""
    if prepared.trust is None:
        return
    touched = int(beliefs.distrusted)
    explanation = {}
    if prepared.guard is not None:
        explanation = explain(prepared.guard, suspicious.rows.x, prepared.source.columns)
    info.guard = {"rows_touched": touched, "mean_trust": beliefs.trust_total / beliefs.rows, **explanation}
    telling = [entry["column"] for entry in explanation.get("columns", [])[:3]]
    note = f"guard: {touched:,} rows ({touched / beliefs.rows:.1%}) count less than half for their covariates" + (
        f", most of all for {', '.join(map(repr, telling))}" if touched and telling else ""
    )
    # After what was said of the table and before what came of it.
    place = next((k for k, said in enumerate(info.notes) if said.startswith(("noise:", "beta:"))), len(info.notes))
    info.notes.insert(place, note)


@block_program
def block_trust(rows: Rows, fitted: Guard) -> Float[Array, " n"]:
    """Return the trust in the covariates of rows."""
    return by_chunks(lambda part: trust(fitted, part), rows.x)


@jax.jit
def _ones(rows: Rows) -> Float[Array, " n"]:
    return jnp.ones(rows.x.shape[0])


def _checked_trust(values: Any, rows: int) -> Float[np.ndarray, " rows"]:
    trusted = np.asarray(values, np.float64)
    if trusted.shape != (rows,):
        raise ValueError(f"guard: it must return one number for each of the {rows} rows, got shape {trusted.shape}.")
    if not (np.isfinite(trusted).all() and trusted.min() >= 0 and trusted.max() <= 1):
        wrong = trusted[~((trusted >= 0) & (trusted <= 1))][0]
        raise ValueError(f"guard: it must return numbers between 0 (no trust) and 1, got {wrong!r}.")
    if not trusted.any():
        raise ValueError("guard: it trusts no row at all; at least some must count.")
    return trusted.astype(np.float32)


def settled(model: Model, source: Source, sample: ArraySource | None, key: PRNGKeyArray, info: Info) -> Model:
    """Return the model with what it leaves to the data estimated."""
    if sample is None:
        sample = sampled(source, key)
    if isinstance(model, OpenModel) and model.log_unit is None:
        return with_own_unit(model, source, sample)
    if hasattr(model, "settled"):
        counted = sample.weights > 0
        model = model.settled(Rows(sample.x[counted], None if sample.y is None else sample.y[counted]))
        return with_clean_share(model, sample, source) if getattr(model, "clean", 1.0) == "auto" else model
    if not (isinstance(model, LinearRegression) and model.noise == "auto"):
        return model
    noise = robust_noise(source, model.intercept, key, sample)
    info.notes.append(f"noise: {noise:.3g}, estimated from the rows that fit the line")
    info.notes += told_of_exactness(sample.x, np.asarray(sample.y), source.columns, noise)
    return model.with_noise(noise)


def _modes(
    model: Model,
    source: Source,
    sample: ArraySource,
    larger: ArraySource,
    beta: float,
    score_beta: float,
    tuning: Tuning | None,
) -> tuple[Pilot, Pilot]:
    """Return the modes for β and for the scores' own: from the tuning's, or by a search; both share every pass."""
    scale = source.row_count / sample.row_count
    largest = default_score_beta(model, len(source.columns)) if has_power_integral(model) else None

    def start(at: float) -> Found:
        return (tuning and tuning.mode(at)) or search(model, sample, scale, at, largest)

    def over_all(starts: list[Found], betas: list[float]) -> list[Pilot]:
        if tuning is None and sample.row_count < larger.row_count < source.row_count:
            starts = nearer(model, larger, source.row_count, starts, betas)
        return polished(model, source, starts, betas)

    found = start(beta)
    if score_beta == beta or not has_power_integral(model):
        (mode,) = over_all([found], [beta])
        return mode, mode
    # The mode for β > 0 was chosen among all starts by the rows it explains: the one for the scores is near it.
    near = Found(found.theta, found.start, ()) if tuning is None and beta > 0 else start(score_beta)
    mode, at = over_all([found, near], [beta, score_beta])
    return mode, at
