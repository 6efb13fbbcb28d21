"""One look at all rows, when the mode is known: whom to choose from, whom to sum over, and how far rows are believed.

Constructions need a few thousand rows, not all: candidates, half of them by leverage; the rows whose likelihood is far
from quadratic over the posterior, and two samples of the others, for the target a coreset is built for and for the one
it is judged by. All are picked in one pass, with the sums that say how dirty the table is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import has_power_integral
from betacores.leverage import block_leverages, leverage_factor
from betacores.models.base import LinearPredictor, Rows
from betacores.pilot import curvature
from betacores.preparation import block_trust
from betacores.programs import block_program
from betacores.randomness import generator, split
from betacores.sampling import sample_rows
from betacores.scores import Beliefs, belief_sums, block_scores, scores_of
from betacores.sources import Pool, choose
from betacores.sources.choice import NEVER, uniforms
from betacores.sources.pool import joined
from betacores.target import DIRECT_ROWS, remainder_rows

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

    from betacores.models import Model
    from betacores.preparation import Prepared

# Rows trusted less for their covariates are not chosen.
LEAST_TRUST = 0.5
# So many of the others are looked at for what gives them away.
EXPLAINED_ROWS = 5000


class Rule(NamedTuple):
    """Which rows may be chosen: those with at least this score and this trust."""

    score: float
    trust: float


SLIGHTEST = float(np.finfo(np.float32).tiny)
ANYONE = Rule(0.0, SLIGHTEST)


class Survey(NamedTuple):
    """What was found.

    ``candidates`` is None if none were asked for. ``far`` are the rows that every target sums over, ``others`` a sample
    for each target; none for tables so short that targets sum over all rows. ``suspicious`` are some of the rows that
    count less than half for their covariates.
    """

    candidates: Pool | None
    far: Pool | None
    others: list[Pool]
    suspicious: Pool
    beliefs: Beliefs
    warnings: tuple[str, ...] = ()


class Looking(NamedTuple):
    """What a block is looked at with; arrays and models, so that it is the same program for every table."""

    model: Model
    theta: Any  # of the scores
    beta: Any  # of the scores; None for a model without them
    factor: Any  # of the leverages; None for a model without them
    typical: Any  # leverage of a row that may be chosen
    least: Any  # score and trust of such a row
    words: Any  # random


def survey(
    prepared: Prepared,
    key: PRNGKeyArray,
    *,
    candidates: int | None,
    screen: float,
    also: np.ndarray | None = None,
    direct_rows: int = DIRECT_ROWS,
) -> Survey:
    """Look at all rows once, or once more if none may be chosen by the rule one begins with.

    Parameters
    ----------
    prepared
        The rows, the model, and its mode.
    key
        Decides which rows are picked.
    candidates
        How many rows to choose from; None for none.
    screen
        Rows of a lower score are not chosen.
    also
        Numbers of rows to have among the candidates, if they may be chosen.
    direct_rows
        Tables of no more rows need no samples for targets.
    """
    source, precision = prepared.source, curvature(prepared.model, prepared.found)
    *target_keys, choice_key = split(key, 3)
    rows, count = source.row_count, remainder_rows(len(precision))
    direct = rows <= direct_rows
    far_count = min(count // 2, rows // 2) if not direct and _linear(prepared.model) else 0
    # So many more than are needed as may turn out to be far.
    sampled = [] if direct else [sample_rows(k, rows, count + far_count) for k in target_keys]
    wanted = np.unique(np.concatenate([np.zeros(0, np.int64), *sampled, *([] if also is None else [also])]))
    explained = 0 if prepared.guard is None else EXPLAINED_ROWS
    rule = Rule(screen if prepared.beta > 0 else 0.0, LEAST_TRUST)
    said: tuple[str, ...] = ()
    while True:
        looking = _looking(prepared, precision, rule, choice_key)
        found = choose(source, _look, (candidates or 0, far_count, explained), wanted, looking)
        *sums, passing, eligible = found.sums.tolist()
        if eligible or not candidates or rule == ANYONE:
            break
        rule, said = _milder(rule, passing > 0)
    chosen, far, suspicious = found.best
    if also is not None:
        chosen = joined(chosen, found.asked.among(also[_may(prepared, found.asked, also, rule)]))
    pairs = zip(sampled, target_keys, strict=False)
    return Survey(
        None if candidates is None else chosen,
        None if direct else far,
        [_outside(found.asked.among(ids), far, count, k) for ids, k in pairs],
        suspicious,
        Beliefs(rows, *sums),
        said,
    )


def _milder(rule: Rule, passing: bool) -> tuple[Rule, tuple[str, ...]]:
    """Return the rule to go by if one leaves nobody, and what to say of it."""
    if rule.trust > SLIGHTEST:
        # Trusted at all is enough; who passes the screen is another matter.
        return Rule(rule.score, SLIGHTEST), ()
    if passing:
        return ANYONE, ("No row is both believed and trusted: it is the trusted ones that were taken.",)
    return ANYONE, ("No row passes the screen, so none was applied: the model fits no row well.",)


def _outside(sampled: Pool, far: Pool, count: int, key: PRNGKeyArray) -> Pool:
    """Return a sample of the rows that are not far, of which the pool is a larger one."""
    others = np.setdiff1d(sampled.ids, far.ids, assume_unique=True)
    return sampled.among(others[sample_rows(jax.random.fold_in(key, 1), len(others), count)])


def _may(prepared: Prepared, pool: Pool, ids: np.ndarray, rule: Rule) -> np.ndarray:
    """Tell which of some rows may be chosen."""
    rows, model = pool.take(ids), prepared.model
    scores = np.ones(len(ids))
    if has_power_integral(model):
        scores = np.asarray(block_scores(rows, model, prepared.score_theta, np.float32(prepared.score_beta)))
    trusted = np.ones(len(ids))
    if prepared.guard is not None:
        trusted = np.asarray(block_trust(rows, prepared.guard))
    elif prepared.trust is not None:
        trusted = np.asarray(prepared.trust[ids])
    return (scores >= rule.score) & (trusted >= rule.trust) & (pool.weights_of(ids) > 0)


def _linear(model: Model) -> bool:
    return isinstance(model, LinearPredictor)


def _looking(prepared: Prepared, precision: Float[np.ndarray, "p p"], rule: Rule, key: PRNGKeyArray) -> Looking:
    model = prepared.model
    words = generator(key).integers(2**32, size=2, dtype=np.uint32)
    factor = leverage_factor(precision) if _linear(model) else None
    beta = np.float32(prepared.score_beta) if has_power_integral(model) else None
    least = np.array(rule, np.float32)
    looking = Looking(model, prepared.score_theta.astype(np.float32), beta, factor, np.float32(1), least, words)
    if factor is None:
        return looking
    # How much leverage is usual is a matter of scale, for which a sample is enough.
    sample = prepared.sample
    swing = np.asarray(block_leverages(Rows(sample.x, sample.y), model, factor), np.float64)
    counted = swing[sample.weights > 0]
    typical = float(counted.mean()) if counted.size else 1.0
    return looking._replace(typical=np.float32(typical if np.isfinite(typical) and typical > 0 else np.inf))


@block_program
def _look(
    rows: Rows, weights: Array, trust: Array | None, start: Array, length: Array, looking: Looking
) -> tuple[tuple[Array, Array, Array], Array]:
    """Return priorities, as a candidate, for being far and for being doubtful, and the sums of the block."""
    count = rows.x.shape[0]
    model = looking.model
    scores = jnp.ones(count) if looking.beta is None else scores_of(rows, model, looking.theta, looking.beta)
    trusted = jnp.ones(count) if trust is None else trust
    swing = jnp.zeros(count) if looking.factor is None else block_leverages(rows, model, looking.factor)
    there = jnp.arange(count) < length
    passing = (scores >= looking.least[0]) & there
    may = passing & (trusted >= looking.least[1]) & (weights > 0)
    # Of rows with chances c the ones with the largest c / E, E exponential, are a sample by these chances.
    chance = 1.0 + swing / looking.typical
    waits = -jnp.log1p(-uniforms(looking.words, start, count))
    priority = jnp.where(may, chance / waits, NEVER)
    # What is beyond the quadratic grows with the third power.
    pull = jnp.where(weights > 0, weights * swing * jnp.sqrt(swing), NEVER)
    doubtful = jnp.where((trusted < LEAST_TRUST) & there, 1 / waits, NEVER)
    sums = belief_sums(scores, trust, there.astype(jnp.float32))
    return (priority, pull, doubtful), jnp.stack([*sums, passing.sum(), may.sum()])
