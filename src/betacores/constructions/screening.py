"""Which rows may be chosen: those the model believes and, where there is a guard, trusts for their covariates.

Where rows come in groups, groups that are dirty beyond doubt are set aside whole: their rows count nothing, neither for
the posterior that is aimed at nor as candidates. A likelihood that lets go of single rows is still bent by a source of
which many rows are wrong and each is plausible. And where some groups are dirtier than others, the clean ones tell what
covariates are like: wild cells that all of a dirty source's rows might have are its own, and no heavy tail. They are
asked only for that: a guard that comes to doubt all groups alike has learnt nothing of dirt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.constructions.units import SURE, WholeGroups
from betacores.groups import Groups
from betacores.guard import Guard, fit_guard
from betacores.pilot import Found, polished
from betacores.preparation import Prepared, block_trust
from betacores.scores import beliefs, row_scores
from betacores.sources import collect
from betacores.survey import LEAST_TRUST

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# A group is dirty beyond doubt when its rows are believed so much less, on average, than those of the cleanest groups,
# which hold this share of the rows; so many standard errors of its mean are allowed for, and few rows prove nothing.
LESS_BELIEVED, CLEANEST, ERRORS, FEW_ROWS = 0.1, 0.25, 3.0, 30
# Rows with a score below this are doubtful. Fewer rows of clean groups, or than twice the columns, say too little.
DOUBTFUL, LEAST_SOUND = 0.05, 200
# Of the rows of dirty groups so large a share must be doubted besides, or what clean groups tell is nothing new.
MORE_DOUBTED = 0.01


def believed(prepared: Prepared, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes, with the construction's own β (None for all), and what to say of it."""
    if screen == 0 or prepared.beta == 0:
        return None, ()
    eligible, warnings = _some(
        row_scores(prepared.model, prepared.source, prepared.found.theta, prepared.beta) >= screen
    )
    return eligible, doubts(prepared) + warnings


def believed_and_trusted(prepared: Prepared, screen: float) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return which rows the model believes and the guard trusts (None for all), and what to say of it."""
    eligible: np.ndarray | None = None
    warnings: tuple[str, ...] = ()
    # At β = 0 every row counts, and any may be needed to stand for the others.
    if screen > 0 and prepared.beta > 0:
        eligible, warnings = _some(prepared.scores >= screen)
    # What counts nothing is not chosen either.
    trust = (prepared.source.base > 0) * (np.float32(1) if prepared.trust is None else prepared.trust)
    if trust.min() >= LEAST_TRUST:
        return eligible, warnings
    some = np.ones(len(trust), bool) if eligible is None else eligible
    for least in (LEAST_TRUST, np.finfo(np.float32).tiny):
        trusted = some & (trust >= least)
        if trusted.any():
            return trusted, warnings
    return trust > 0, (
        *warnings,
        "No row is both believed and trusted: it is the trusted ones that were taken.",
    )


def guard_of_clean_groups(prepared: Prepared, groups: Groups) -> tuple[Guard | None, tuple[str, ...]]:
    """Return what clean groups tell of covariates, if it tells more of dirty ones than was known; and what to say."""
    if prepared.guard is None:
        return None, ()
    units = WholeGroups(groups, (prepared.scores >= DOUBTFUL) & (prepared.trust >= LEAST_TRUST))
    judged, able = groups.sizes >= FEW_ROWS, units.eligible()
    assert able is not None  # rows are told apart
    clean, dirty = judged & able, judged & (units.clean_chances < 1 - SURE)
    group_of = groups.codes[prepared.sample_ids]
    if not dirty.any() or clean[group_of].sum() < max(LEAST_SOUND, 2 * len(prepared.source.columns)):
        return None, ()
    learned = fit_guard(prepared.sample.x, sound=clean[group_of])
    before = prepared.trust[prepared.sample_ids] < LEAST_TRUST
    now = collect(prepared.sample, block_trust, learned) < LEAST_TRUST
    if not doubts_more(before, now, dirty[group_of]):
        return None, ()
    return learned, (f"groups: the {clean.sum()} of {len(groups)} that are clean tell what covariates are like",)


def doubts_more(before: Bool[np.ndarray, " n"], now: Bool[np.ndarray, " n"], dirty: Bool[np.ndarray, " n"]) -> bool:
    """Return whether more rows of dirty groups have come to be doubted, beyond what has come of the others."""
    more = now.astype(float) - before
    of_dirty, of_others = more[dirty], more[~dirty]
    if not (len(of_dirty) and len(of_others)):
        return False
    error = np.sqrt(of_dirty.var() / len(of_dirty) + of_others.var() / len(of_others))
    return bool(of_dirty.mean() - of_others.mean() > max(MORE_DOUBTED, ERRORS * error))


def without_dirty_groups(prepared: Prepared, groups: Groups) -> tuple[Prepared, tuple[str, ...]]:
    """Return the same without the groups that are dirty beyond doubt, and what to say of it."""
    dirty = surely_dirty(beliefs(prepared.scores, prepared.trust), groups)
    if not dirty.any():
        return prepared, ()
    source = prepared.source.counting(~dirty[groups.codes])
    before = prepared.found
    start = Found(before.theta, before.start, before.rivals)
    (found,) = polished(prepared.model, source, [start], [prepared.beta])
    named = ", ".join(repr(groups.labels[place]) for place in np.flatnonzero(dirty)[:3])
    more = f" and {dirty.sum() - 3} more" if dirty.sum() > 3 else ""
    note = f"groups: {named}{more} set aside whole, as dirty beyond doubt ({dirty.sum()} of {len(groups)})"
    return prepared._replace(source=source, found=found), (note,)


def surely_dirty(believed: Float[np.ndarray, " rows"], groups: Groups) -> Bool[np.ndarray, " groups"]:
    """Return which groups are believed less than the cleanest, beyond doubt."""
    mean = groups.means(believed)
    error = np.sqrt(np.maximum(groups.means(believed**2) - mean**2, 0) / groups.sizes)
    judged = groups.sizes >= FEW_ROWS
    if not judged.any():
        return judged
    order = np.flatnonzero(judged)[np.argsort(-mean[judged])]
    ahead = np.cumsum(groups.sizes[order]) >= CLEANEST * groups.sizes[judged].sum()
    usual = mean[order][ahead.argmax()]
    return judged & (mean + ERRORS * error < usual - LESS_BELIEVED)


def doubts(prepared: Prepared) -> tuple[str, ...]:
    """Say what may be wrong with the mode that a construction relies on."""
    lost = () if prepared.found.converged else ("The search for the β-posterior's mode did not converge.",)
    return lost + prepared.found.rivals


def _some(eligible: np.ndarray) -> tuple[np.ndarray | None, tuple[str, ...]]:
    if eligible.any():
        return eligible, ()
    return None, ("No row passes the screen, so none was applied: the model fits no row well.",)
