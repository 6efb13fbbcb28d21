"""Robust pursuit: a coreset by sparse regression on the β-posterior of all rows.

Problem: few rows and weights `v ≥ 0` with `Σ_m v_m g_m ≈ Σ_n w_n f_n` as functions of the parameter, up to a constant.
Here `f` is the β-likelihood, `w` the trust in a row's covariates, and `g` the likelihood that will read the coreset:
the ordinary one (``readout="classical"``), so that any tool reading the weighted rows gets the robust posterior, or the
β-likelihood itself (``readout="beta"``).

Update: draw S parameters around the mode of the β-posterior, from its Laplace approximation; evaluate the sum of `f` at
the draws and centre it: the target `t`. Centre `g` of the candidates, rows whose score is not near zero, or a sample of
them in which those far out in the covariates are more frequent: the vectors. Regress `t` on the vectors by orthogonal
matching pursuit with exact non-negative refits. Half as many draws again are held out: there half the variance of
`t − Σ v g` is the KL divergence that remains, to second order. When that is small enough, and the estimate from draws
of the coreset's own posterior is too (`quality`), there are rows enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.constructions.nnls import Step, exchanged, sparse_nonnegative
from betacores.constructions.path import Path
from betacores.constructions.units import SingleRows, Units
from betacores.divergence import Beta, as_beta
from betacores.models.base import Model
from betacores.pilot import Pilot, approximation
from betacores.posteriors.weighted import weighted_posterior
from betacores.quality import kl_estimate
from betacores.randomness import split
from betacores.sources.pool import Takes
from betacores.target import Target

if TYPE_CHECKING:
    from jaxtyping import Float, Int, PRNGKeyArray

# The most rows kept when the number is left open.
MOST_ROWS = 500
# A KL divergence over the draws that needs no further row.
NEGLIGIBLE = 1e-3
# Rows whose vectors are shorter than this share of the typical length say next to nothing, and would need enormous
# weights to say anything.
SHORTEST = 0.03


class Settings(NamedTuple):
    """How pursuit goes about it; see `pursuit`."""

    readout: str = "classical"
    draws: int = 500
    candidates: int = 5000
    tolerance: float = 0.1
    exchanges: int = 0
    polish: int = 0


DEFAULTS = Settings()
_NOTHING = Path(
    np.zeros(0, int),
    np.zeros((1, 0)),
    ("No row was selected: no candidate says anything about the parameters that the target says.",),
)


def pursuit(
    model: Model,
    rows: Takes,
    key: PRNGKeyArray,
    *,
    ids: Int[np.ndarray, " n"],
    size: int | None,
    beta: float,
    found: Pilot,
    target: Target,
    settings: Settings = DEFAULTS,
    init: Int[np.ndarray, " i"] | None = None,
    units: Units | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Return the path of pursuit: the coreset of every number of rows, or of other units, up to `size`.

    Parameters
    ----------
    model, rows
        The model, and the rows, by their numbers.
    key
        Random key.
    ids
        The units to choose from, in order.
    size
        The largest number of rows to keep; None for as many as the tolerance asks for.
    beta
        Of the β-likelihood.
    found, target
        Mode of the β-posterior over all rows, and the sum to be matched.
    settings
        ``readout``: the likelihood the coreset is built for. ``draws``: parameters drawn, at least two a row asked for.
        ``candidates``: how many units there are to choose from at most; they are ``ids``. ``tolerance``: the
        KL divergence at which there are rows enough, when their number is left open. ``exchanges``: how often, at the
        end, a row may be exchanged for a better one. ``polish``: how often, at the end, the weights are fitted again
        to draws from the coreset's own posterior.
    init
        Units to begin with, if they are among those to choose from. Those that are no help are let go.
    units
        What is chosen, if not rows. Sizes and numbers are then of units.
    progress
        Called with the number of finished steps and their largest number.
    """
    draw_key, held_key, polish_key, quality_key = split(key, 4)
    if not len(ids):
        return _NOTHING
    units = units or SingleRows()
    largest = min(size or MOST_ROWS, len(ids))
    draws = max(settings.draws, 2 * largest)
    around = approximation(model, found)
    thetas, held_out = around.draw(draw_key, draws), around.draw(held_key, draws // 2)
    # Both at once: a program for either would have to be compiled.
    both = np.split(target.over(jnp.asarray(np.concatenate([thetas, held_out]))), [draws])
    wanted, held_wanted = (values - values.mean() for values in both)
    first = np.zeros(0, int) if init is None else np.searchsorted(ids, init[np.isin(init, ids)])
    read_beta = as_beta(beta if settings.readout == "beta" else 0.0)
    vectors = units.vectors(model, thetas, rows, ids, read_beta)
    # Units that say next to nothing are never taken.
    length = units.lengths(ids, vectors)
    vectors[length < SHORTEST * np.sqrt(np.mean(length**2))] = 0
    held = HeldOut(held_wanted, lambda places: units.vectors(model, held_out, rows, ids[places], read_beta))
    if size is None:
        # Asked for after every step; else only at the end, for the few rows that were taken.
        held.learn(np.arange(len(ids)))

    def estimate(step: Step) -> float:
        members, weights = units.rows(ids[step.places], step.weights)
        read = 0.0 if read_beta is None else beta
        return kl_estimate(model, target, rows.take(members), weights, quality_key, read_beta=read).value

    warnings: list[str] = []
    steps: list[Step] = []
    negligible = min(NEGLIGIBLE, settings.tolerance / 10)
    threshold = settings.tolerance
    try:
        for step in sparse_nonnegative(vectors, wanted, largest, first, float(np.sqrt(2 * negligible * draws))):
            steps.append(step)
            if progress is not None:
                progress(len(step.places), largest)
            if size is None and held.remaining(step) <= threshold:
                # To second order only: it is too small where weight is missing.
                if estimate(step) <= settings.tolerance:
                    break
                threshold /= 2
    except KeyboardInterrupt:
        if not steps:
            raise
        warnings.append(f"Interrupted at {len(steps[-1].places)} of at most {largest} rows.")
    if not steps:
        return _NOTHING
    remedy = f"{units.remedy}, or accept it"
    if isinstance(units, SingleRows) and len(steps[-1].places) < largest:
        # Often all that a quadratic can have was matched, and the rest is not for the classical likelihood.
        other = ": choose readout='beta' or a smaller beta, or accept it" if beta > 0 and read_beta is None else ""
        remedy = f"none of the {len(ids):,} rows to choose from brings it nearer{other}"
    elif isinstance(units, SingleRows) and largest == len(ids):
        remedy = f"all of the {len(ids):,} rows to choose from were taken: let there be more candidates, or accept it"
    if settings.exchanges:
        steps.append(exchanged(vectors, wanted, steps[-1], settings.exchanges))
    for number in range(settings.polish):
        round_key = jax.random.fold_in(polish_key, number)
        steps.append(_polished(model, rows, round_key, units, ids, steps[-1], target, read_beta, draws))
    if size is None and not warnings and (left := estimate(steps[-1])) > settings.tolerance:
        warnings.append(
            f"The estimated KL divergence is {left:.2g} at {len(steps[-1].places)} {units.plural}, above the "
            f"tolerance {settings.tolerance:g}; {remedy}."
        )
    held.learn(np.unique(np.concatenate([step.places for step in steps])))
    return _by_size(steps, [held.remaining(step) for step in steps], ids, size, tuple(warnings))


class HeldOut:
    """What solutions lack at draws that were not used to find them."""

    def __init__(self, wanted: Float[np.ndarray, " s"], vectors_of: Callable[[np.ndarray], np.ndarray]):
        self.wanted, self.vectors_of = wanted, vectors_of
        self.known = np.zeros(0, int)
        self.vectors = np.zeros((0, len(wanted)), np.float32)

    def learn(self, places: Int[np.ndarray, " k"]) -> None:
        """Get the vectors of candidates, in order, unless they are known."""
        if not np.isin(places, self.known).all():
            self.known, self.vectors = places, self.vectors_of(places)

    def remaining(self, step: Step) -> float:
        """Return half the variance of what a solution lacks: its KL divergence, to second order."""
        vectors = self.vectors[np.searchsorted(self.known, step.places)].astype(np.float64)
        return 0.5 * float(np.mean((self.wanted - step.weights @ vectors) ** 2))


def _polished(
    model: Model,
    rows: Takes,
    key: PRNGKeyArray,
    units: Units,
    ids: Int[np.ndarray, " n"],
    step: Step,
    target: Target,
    read_beta: Beta,
    draws: int,
) -> Step:
    """Fit the weights again to draws from the coreset's own posterior."""
    chosen = ids[step.places]
    members, weights = units.rows(chosen, step.weights)
    posterior, _ = weighted_posterior(model, rows.take(members), weights, read_beta)
    thetas = posterior.draw(key, draws)
    wanted = target.over(thetas)
    vectors = units.vectors(model, thetas, rows, chosen, read_beta)
    everything = np.arange(len(chosen))
    refitted = list(sparse_nonnegative(vectors, wanted - wanted.mean(), len(chosen), everything))
    return refitted[-1]._replace(places=step.places[refitted[-1].places]) if refitted else step


def _by_size(
    steps: list[Step], divergences: list[float], ids: np.ndarray, size: int | None, warnings: tuple[str, ...]
) -> Path:
    """Return for every number of rows the last solution that has no more."""
    sizes = np.array([len(step.places) for step in steps])
    largest = size or int(sizes.max())
    last = [np.flatnonzero(sizes <= m) for m in range(1, largest + 1)]
    taken = [int(which[-1]) if which.size else None for which in last]
    ever = list(dict.fromkeys(int(place) for k in taken if k is not None for place in steps[k].places))
    column = {place: k for k, place in enumerate(ever)}
    weights = np.zeros((largest, len(ever)))
    for m, k in enumerate(taken):
        if k is not None:
            weights[m, [column[int(place)] for place in steps[k].places]] = steps[k].weights
    trace = {"remaining": [None if k is None else divergences[k] for k in taken]}
    return Path(ids[np.array(ever, int)], weights, warnings, trace)
