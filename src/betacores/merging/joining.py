"""Merging: the coreset of several coresets.

The log-likelihood of site s is summarised by `L_s = Σ_m w_m g_m`. The merged coreset is the sparse regression of
`Σ_s τ_s L_s`, with τ the trust in a site, see `betacores.merging.trust`; the prior counts once.

Its error has two parts. ``info.kl_estimate`` is the divergence from the merged coreset's posterior to that of the
trusted sites' rows together. What these lack themselves is ``info.inherited_kl``, the sum `k` of the divergences that
the sites state. To second order a divergence is half the variance of an error of the log-likelihood. The errors of
sites, seen from the sharper posterior of all, come to `k` if they all point in one direction, and to their mean if
they are independent. With the own part `e`, the divergence from the posterior that all trusted rows would give is then
at most `(√e + √k)²`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np

from betacores.checks import check_number, check_seed
from betacores.constructions.pursuit import Settings
from betacores.constructions.settings import checked
from betacores.coreset import Coreset
from betacores.info import Info
from betacores.merging.agreement import Common, common_ground, named_coresets, pooled_noise
from betacores.merging.assembly import assembled, scores_of, stacked
from betacores.merging.made import common_settings, how_made
from betacores.merging.telling import say, site_record
from betacores.merging.trust import Judgement, Jury, judge
from betacores.merging.union import Union, sparse_union, union_of
from betacores.models import GaussianPrior, LinearRegression
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float

# Smaller than that of `summarize`: rows may be merged again and again.
TOLERANCE = 0.01
DEFAULTS: dict[str, Any] = {
    **{name: value for name, value in Settings()._asdict().items() if name != "readout"},
    "tolerance": TOLERANCE,
}
# The share of votes that decides: two of three equal sites, one of two if the other is far smaller.
MAJORITY, TWO_SITES = 0.6, 0.9

Trusting = Literal["auto"] | None | Sequence[float]


def merge(
    coresets: Sequence[Coreset] | Mapping[str, Coreset],
    *,
    names: Sequence[str] | None = None,
    size: int | Literal["auto"] = "auto",
    trust: Trusting = "auto",
    spread: float | Literal["auto"] = "auto",
    prior: GaussianPrior | None = None,
    keep_scores: bool = True,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Coreset:
    """Summarise summaries: put coresets of several sites together, setting aside those that contradict the others.

    All must have the same model, prior, columns, labels and readout. The noise of a linear regression may differ, see
    `betacores.merging.agreement`. Coresets with ``readout="beta"`` need the same β too.

    Parameters
    ----------
    coresets
        A list of coresets, or a dictionary of them by name. One that holds no rows adds nothing but its row count and
        scores. A single one comes back as it is, unless fewer rows are asked for.
    names
        What to call them in notes, warnings and ``info.sites``; ``"site 0"`` and so on if not given.
    size
        The largest number of rows to keep; if it is no less than all of theirs together, all are kept and nothing is
        lost. By default as many as bring the estimated KL divergence below ``tolerance`` (0.01), at most 500.
    trust
        ``"auto"`` judges every site by whether it agrees with the others, see `betacores.merging.trust`. A number
        between 0 and 1 for every site multiplies its weights, and nothing is judged; None is 1 for all.
    spread
        How far honest sites may differ beyond chance, as a standard deviation in units of what a single row tells: 0.1
        lets sites differ by as much as 100 rows leave open. By default estimated from three sites or more, and 0 for
        two.
    prior
        The prior to merge with, where those of the sites differ.
    keep_scores
        Whether scores of all rows are kept, as many numbers as rows were summarised. If not, each is the mean of all.
    seed
        Same seed, same input, same coreset.
    progress
        Called with the number of finished steps and their total.
    **settings
        Of pursuit: ``draws``, ``candidates``, ``tolerance``, ``exchanges`` and ``polish``.

    Returns
    -------
    Coreset
        Rows are numbered as if the sites' tables lay one below the other: `indices` of the second site begin at the
        `row_count` of the first. Scores come in the same order, multiplied by the trust in the site.
        ``info.sites`` tells of every site its rows, weight, trust, distance from the others and contamination;
        ``info.inherited_kl`` what the sites state of their own errors.
    """
    given, called = named_coresets(coresets, names)
    if size != "auto":
        check_number("size", size, at_least=1, whole=True)
    check_seed(seed)
    settings = checked(settings, DEFAULTS)
    if spread != "auto":
        check_number("spread", spread, at_least=0)
    fixed = _given_trust(trust, called)
    common = common_ground(given, called, prior)
    if len(given) == 1 and fixed is None and prior is None and (size == "auto" or len(given[0]) <= size):
        return given[0]
    if not any(len(coreset) for coreset in given):
        raise ValueError("coresets: none of them holds a row, so that there is nothing to merge; read their warnings.")
    spread = 0.0 if spread == "auto" and fixed is not None else spread
    asked = {"size": size, "spread": spread, "seed": seed, **settings}
    return merged(given, called, common, asked, fixed=fixed, keep_scores=keep_scores, progress=progress)


def merged(
    coresets: Sequence[Coreset],
    names: Sequence[str],
    common: Common,
    asked: dict[str, Any],
    *,
    fixed: Float[np.ndarray, " sites"] | None = None,
    standing: Float[np.ndarray, " sites"] | None = None,
    keep_scores: bool = True,
    progress: Callable[[int, int], None] | None = None,
    advice: str = "",
    stacklevel: int = 3,
) -> Coreset:
    """Return the coreset of coresets that are known to go together.

    Parameters
    ----------
    coresets, names, common
        The sites, and what they have in common.
    asked
        Size, spread, seed and the settings of pursuit.
    fixed
        Trust in the sites, if it is not to be judged.
    standing
        By what the votes of sites are multiplied; the larger side then decides.
    keep_scores, progress
        As of `merge`.
    advice, stacklevel
        What to add to the warning of sites that are set aside, and whose line it points at.
    """
    info = Info(settings={"method": "merge"})
    weights = np.array([coreset.weights.sum() for coreset in coresets])
    believed = np.array([believed_rows(coreset) for coreset in coresets])
    models = [coreset.model for coreset in coresets]
    started = time.perf_counter()
    with single_precision():
        judged, tau = None, fixed
        if tau is None:
            union = _union(coresets, common, *pooled_noise(common.model, models, weights))
            judged = _judged(union, coresets, believed, standing, asked["spread"])
            tau = judged.trust
        info.timings["trust"] = time.perf_counter() - started
        started = time.perf_counter()
        model, factors = pooled_noise(common.model, models, weights * tau)
        union = _union(coresets, common, model, factors).weighted(tau)
        key = jax.random.key(asked["seed"])
        size = None if asked["size"] == "auto" else int(asked["size"])
        pursued = {name: asked[name] for name in DEFAULTS}
        path, info.kl_estimate = sparse_union(union, key, size, pursued, progress)
        info.timings["pursuit"] = time.perf_counter() - started
    info.sites = [
        site_record(coreset, name, place, tau, believed[place], judged)
        for place, (coreset, name) in enumerate(zip(coresets, names, strict=True))
    ]
    info.inherited_kl = _inherited(coresets, tau)
    say(info, coresets, names, judged, believed, advice)
    info.warnings.extend(path.warnings)
    scored = scores_of(coresets, tau, keep_scores)
    beta = common.beta if common.readout == "beta" else _middle([c.beta for c in coresets], weights * tau)
    betas = [c.info.settings.get("score_beta") or c.beta for c in coresets]
    info.settings |= {
        **asked,
        "spread": asked["spread"] if judged is None else judged.spread,
        "model": model.name,
        "beta": beta,
        "score_beta": _middle(betas, weights * tau),
        "readout": common.readout,
        "guard": None,
        "sites": len(coresets),
        "summaries": common_settings([how_made(coreset) for coreset in coresets]),
    }
    if isinstance(model, LinearRegression) and (factors != 1).any():
        info.notes.append(f"noise: {model.noise:.3g}, pooled from the sites'; their weights were made to fit it")
    if any(coreset.grouping is not None for coreset in coresets):
        info.notes.append("groups: those of the sites are not kept, rows were chosen one by one")
    info.notes.append(f"size: {len(path.at(len(path.weights))[0])} of the {len(union.weights)} rows of the sites")
    info.trace = {
        "size": (path.weights > 0).sum(1).tolist(),
        "total_weight": path.weights.sum(1).tolist(),
        **(path.trace or {}),
    }
    if info.warnings:
        warnings.warn(" ".join(info.warnings), stacklevel=stacklevel)
    return assembled(coresets, path, scored, model=model, beta=beta, info=info)


def _given_trust(trust: Trusting, names: Sequence[str]) -> Float[np.ndarray, " sites"] | None:
    if trust is None:
        return np.ones(len(names))
    if isinstance(trust, str):
        if trust != "auto":
            raise ValueError(f"trust: expected 'auto', None, or a number for every site, got {trust!r}.")
        return None
    values = np.asarray(trust, np.float64)
    if values.shape != (len(names),):
        raise ValueError(f"trust: expected one number for each of the {len(names)} sites, got shape {values.shape}.")
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        raise ValueError(f"trust: expected numbers between 0 (set aside) and 1, got {values.tolist()}.")
    if not values.any():
        raise ValueError("trust: no site is trusted at all; at least one must count.")
    return values


def _union(coresets: Sequence[Coreset], common: Common, model: Any, factors: np.ndarray) -> Union:
    x, y = stacked(coresets)
    weights = np.concatenate([coreset.weights * factor for coreset, factor in zip(coresets, factors, strict=True)])
    site = np.repeat(np.arange(len(coresets)), [len(coreset) for coreset in coresets])
    return union_of(model, x, y, coresets[0].labels, weights, site, common.readout, common.beta)


def _judged(
    union: Union,
    coresets: Sequence[Coreset],
    believed: Float[np.ndarray, " sites"],
    standing: Float[np.ndarray, " sites"] | None,
    spread: float | str,
) -> Judgement:
    """Return the judgement of all sites; those without rows say nothing and are trusted."""
    speaking = np.flatnonzero([len(coreset) > 0 for coreset in coresets])
    known = [coresets[int(place)].info for place in speaking]
    # What earlier merges have learnt of how far honest sites differ.
    learnt = [info.settings["spread"] for info in known if info.sites is not None]
    jury = Jury(
        rows=believed[speaking],
        votes=(believed if standing is None else believed * standing)[speaking],
        slack=np.sqrt(2 * np.array([_stated(info) or 0.0 for info in known])),
        ridge=union.ridge(),
        spread=None if isinstance(spread, str) else float(spread),
        least_spread=max(learnt, default=0.0),
        majority=MAJORITY if len(speaking) > 2 else TWO_SITES if standing is None else 0.5,
    )
    compact = union._replace(site=np.searchsorted(speaking, union.site))
    found = judge(jury, lambda trust: compact.bowls(len(speaking), trust))
    trust, distance, chance = np.ones(len(coresets)), np.zeros(len(coresets)), np.zeros(len(coresets))
    trust[speaking], distance[speaking], chance[speaking] = found.trust, found.distance, found.chance
    return found._replace(trust=trust, distance=distance, chance=chance)


def believed_rows(coreset: Coreset) -> float:
    """Return how many rows a coreset stands for, less the contamination.

    The total weight would not do: the larger β, the less a row may weigh, and honest sites differ in that.
    """
    if coreset.info.sites is not None:
        return max(sum(site["trust"] * site["believed"] for site in coreset.info.sites), 1e-6)
    rows = coreset.info.settings.get("sample_weight", coreset.row_count)
    return max(float(rows) * (1.0 - coreset.contamination), 1e-6)


def _stated(info: Info) -> float | None:
    """Return what a coreset states of its whole error."""
    if info.kl_estimate is None:
        return None
    return (np.sqrt(info.kl_estimate.value) + np.sqrt(info.inherited_kl or 0.0)) ** 2


def _inherited(coresets: Sequence[Coreset], trust: Float[np.ndarray, " sites"]) -> float | None:
    """Return the sum of what trusted sites state; None if one of them does not."""
    total = 0.0
    for coreset, tau in zip(coresets, trust, strict=True):
        if tau == 0 or not len(coreset):
            continue
        if coreset.info.kl_estimate is None or (coreset.method == "merge" and coreset.info.inherited_kl is None):
            return None
        total += coreset.info.kl_estimate.value + (coreset.info.inherited_kl or 0.0)
    return float(total)


def _middle(values: Sequence[float], weights: Float[np.ndarray, " sites"]) -> float:
    """Return the weighted median, one of the values."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(reached, reached[-1] / 2)]])
