"""What every construction stands on: trust in the covariates, what the model leaves open, β, its mode, and the scores.

In this order, since each needs the one before: trust weighs the rows of every later sum; the noise of a linear model
is that of the trusted rows; β is chosen for the settled model; the mode is that of the chosen β; scores are read at a
mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.clean_share import with_clean_share
from betacores.divergence import has_power_integral
from betacores.guard import Guard, explain, fit_guard, trust
from betacores.info import Info
from betacores.inputs import Problem
from betacores.models import LinearRegression, Model, Rows
from betacores.models.scaled import ESCAPED
from betacores.noise import robust_noise
from betacores.pilot import Found, Pilot, pilot, polished, sampled
from betacores.scores import default_score_beta, row_scores, scores_too_high
from betacores.sources import ArraySource, by_chunks, collect
from betacores.tuning import Tuning, beta_grid, tune

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

Guarding = str | None | Callable[[np.ndarray], Any]

# Rows trusted less than this count as touched by the guard.
TOUCHED = 0.5
EXPLAINED_ROWS = 5000


class Prepared(NamedTuple):
    """The model without open ends, rows weighted by trust, β and its mode, and scores of all rows."""

    model: Model
    source: ArraySource
    beta: float
    found: Pilot
    score_beta: float
    scores: Float[np.ndarray, " rows"]
    trust: Float[np.ndarray, " rows"] | None


def prepare(
    problem: Problem,
    key: PRNGKeyArray,
    info: Info,
    *,
    beta: float | None,
    score_beta: float | None,
    guard: Guarding,
) -> Prepared:
    """Do what comes before a construction, and note in `info` what was chosen and why.

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
    """
    guard_key, noise_key, mode_key, score_key = jax.random.split(key, 4)
    model, source = problem.model, problem.source
    trusted = _timed(info, "guard", lambda: _trust(problem, guard, guard_key, info))
    if trusted is not None:
        source = source.weighted(source.weights * trusted)
    model = _timed(info, "noise", lambda: settled(model, source, noise_key, info))
    tuning = None
    if beta is None:
        wanted = (score_beta or default_score_beta(model, len(source.columns)),) if has_power_integral(model) else ()
        grid = beta_grid(model, len(source.columns))
        tuning = _timed(info, "tuning", lambda: tune(model, source, mode_key, grid, wanted))
        beta = tuning.beta
        info.tuning = tuning.curve()
        if len(grid) > 1:
            info.notes.append(
                f"beta: {beta:.3g}, with the smallest estimated error of {len(grid)} values from 0 to {grid[-1]:.3g}"
            )
    score_beta = score_beta or default_score_beta(model, len(source.columns), beta)
    found = _timed(info, "mode", lambda: _mode(model, source, beta, mode_key, tuning))
    if beta > 0 and hasattr(model, "escaped") and np.any(model.escaped(found.theta[None])):
        info.warnings.append(f"The mode stands {ESCAPED}")
    info.pilot = {"start": found.start, "converged": found.converged, "rivals": list(found.rivals)}
    scores = np.ones(source.row_count, np.float32)
    if has_power_integral(model):
        at = found
        if score_beta != beta:
            # The mode for β > 0 was chosen among all starts by the rows it explains: the one for the scores is near it.
            near = Found(found.theta, found.start, ()) if tuning is None and beta > 0 else None
            at = _timed(info, "score mode", lambda: _mode(model, source, score_beta, score_key, tuning, near))
        if not at.converged:
            info.warnings.append("The search for the robust mode did not converge; scores may be off.")
        scores = _timed(info, "scores", lambda: row_scores(model, source, at.theta, score_beta))
        if scores_too_high(scores):
            info.warnings.append(
                f"Rows fit better than the model allows (mean score {scores.mean():.2f}, where 1 is the most it can "
                "mean): some lie closer together than it says, in a tight cluster perhaps, or its scale is too large."
            )
    return Prepared(model, source, beta, found, score_beta, scores, trusted)


def _timed(info: Info, name: str, work: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    result = work()
    info.timings[name] = info.timings.get(name, 0.0) + time.perf_counter() - started
    return result


def _trust(problem: Problem, guard: Guarding, key: PRNGKeyArray, info: Info) -> np.ndarray | None:
    if guard is None:
        return None
    if guard == "auto" and problem.model.response == "none":
        info.notes.append("guard: none, since the model is of whole rows")
        return None
    source = problem.source
    if callable(guard):
        trusted = _checked_trust(guard(problem.x), source.row_count)
        explanation: dict[str, Any] = {}
    else:
        sample, _ = sampled(source, key)
        fitted = fit_guard(sample.x)
        trusted = collect(source, lambda rows: _block_trust(fitted, rows.x))
        suspicious = np.flatnonzero(trusted < TOUCHED)
        some = suspicious[:: -(-len(suspicious) // EXPLAINED_ROWS)] if suspicious.size else suspicious
        explanation = explain(fitted, source.take(some).x, source.columns)
    touched = int((trusted < TOUCHED).sum())
    info.guard = {"rows_touched": touched, "mean_trust": float(trusted.mean()), **explanation}
    telling = [entry["column"] for entry in explanation.get("columns", [])[:3]]
    info.notes.append(
        f"guard: {touched:,} rows ({touched / source.row_count:.1%}) count less than half for their covariates"
        + (f", most of all for {', '.join(map(repr, telling))}" if touched and telling else "")
    )
    return trusted


@jax.jit
def _block_trust(fitted: Guard, x: Float[Array, "n columns"]) -> Float[Array, " n"]:
    return by_chunks(lambda part: trust(fitted, part), x)


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


def settled(model: Model, source: ArraySource, key: PRNGKeyArray, info: Info) -> Model:
    """Return the model with what it leaves to the data estimated."""
    if hasattr(model, "settled"):
        sample, scale = sampled(source, key)
        counted = sample.weights > 0
        model = model.settled(Rows(sample.x[counted], None if sample.y is None else sample.y[counted]))
        return with_clean_share(model, sample, source, scale) if getattr(model, "clean", 1.0) == "auto" else model
    if not (isinstance(model, LinearRegression) and model.noise == "auto"):
        return model
    noise = robust_noise(source, model.intercept, key)
    info.notes.append(f"noise: {noise:.3g}, estimated from the rows that fit the line")
    return model.with_noise(noise)


def _mode(
    model: Model,
    source: ArraySource,
    beta: float,
    key: PRNGKeyArray,
    tuning: Tuning | None,
    near: Found | None = None,
) -> Pilot:
    """Return the mode for a β: from the tuning's, from one that is near, or by a search."""
    known = near if tuning is None else tuning.mode(beta)
    if known is not None:
        return polished(model, source, known, beta)
    largest = default_score_beta(model, len(source.columns)) if has_power_integral(model) else None
    return pilot(model, source, beta, key, largest)
