"""Trust in sites: which of several summaries contradicts what the others agree on.

Near a parameter `o` the log-likelihood of site s is `g_s·δ − δᵀH_sδ/2`, `δ = θ − o`. The others, each by the trust in
it, agree on `c` with precision `C = Σ_{r≠s} τ_r H_r`. If s is a sample of the same population, its gradient there,
`u = g_s − H_s (c − o)`, has mean zero and variance `H_s + (1 + κ) H_s C⁻¹ H_s`: its own chance, that of the others, and
a spread of honest sites beyond chance, `κ = spread² · (rows of the others)`. So the squared distance

    D_s² = uᵀ [H_s + (1 + κ) H_s C⁻¹ H_s]⁻¹ u

is χ² with as many degrees of freedom as the site knows directions. What the site's own summary lacks, a stated KL
divergence of k, may add √(2k) to D and is allowed for. With q the quantile that one of a hundred clean merges exceeds
at one of its sites,

    τ_s = min(1, exp(−(D_s² − q) / 2)).

Consensus and trust are found in turns, from several starts: every site is believed alone at first. The best end is the
one whose trusted sites have most votes, one a row. The spread is the smallest at which half of the votes are no farther
off than chance has half of them be. If no sites with a majority of the votes agree within chance, either there are two
and nobody can tell, so that both are kept; or the smallest spread at which a majority does agree is taken. In both
cases the judgement is not ``agreed``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammainc, gammainccinv

if TYPE_CHECKING:
    from jaxtyping import Float

# One of so many merges of clean sites has a site that is trusted a little less than it should be.
FALSE_ALARMS = 0.01
# Below this trust a site is set aside.
LEAST_TRUST = 0.01
MOST_STARTS, MOST_TURNS, MOST_ROUNDS = 16, 40, 3
# The prior is no witness: what holds directions that nobody knows is so much weaker.
RIDGE = 1e-3
ROUNDING = 1e-10
# Of a direction in which the others know a billion times as much, a site says nothing.
KNOWN = 1e-9


class Bowls(NamedTuple):
    """Log-likelihoods of sites near a common point: gradients and precisions, one a site."""

    gradient: Float[np.ndarray, "sites p"]
    precision: Float[np.ndarray, "sites p p"]


class Judgement(NamedTuple):
    """What was found of every site.

    ``distance`` is from the consensus of the others, in standard deviations; ``chance`` how far chance, spread and the
    site's own error can take it; ``spread`` the standard deviation of honest sites in units of what one row tells;
    ``agreed`` whether a majority agrees within chance.
    """

    trust: Float[np.ndarray, " sites"]
    distance: Float[np.ndarray, " sites"]
    chance: Float[np.ndarray, " sites"]
    spread: float
    agreed: bool


class Jury(NamedTuple):
    """What does not change while sites are judged.

    ``rows`` are how many each stands for, ``slack`` what its own error may add to its distance; ``ridge`` holds
    directions that nobody knows, ``spread`` is that asked for, ``least_spread`` what is known of it otherwise, and
    ``majority`` the share of votes that decides.
    """

    rows: Float[np.ndarray, " sites"]
    votes: Float[np.ndarray, " sites"]
    slack: Float[np.ndarray, " sites"]
    ridge: Float[np.ndarray, " p"]
    spread: float | None = None
    least_spread: float = 0.0
    majority: float = 0.6

    def share(self, trust: Float[np.ndarray, " sites"]) -> float:
        """Return the share of votes that trusted sites have."""
        return float(trust @ self.votes / self.votes.sum())


def judge(jury: Jury, look: Callable[[np.ndarray | None], Bowls]) -> Judgement:
    """Return how far every site is to be trusted.

    Parameters
    ----------
    jury
        Rows and votes of the sites, and what else is known before.
    look
        Given trust, returns the sites' log-likelihoods near the mode of those trusted; given None, near their own.
    """
    count = len(jury.rows)
    if count < 2:
        return Judgement(np.ones(count), np.zeros(count), np.zeros(count), jury.spread or jury.least_spread, True)
    bowls = look(None)
    trust, spread, agreed = _consensus(jury, bowls)
    for _ in range(MOST_ROUNDS):
        # Near the consensus the curvature of an honest site is what its rows tell, however odd its own mode.
        before, bowls = trust, look(trust)
        trust, spread, agreed = _consensus(jury, bowls)
        if np.abs(trust - before).max() < 0.01:
            break
    seen = Distances.of(jury, bowls, trust)
    trust = np.where(trust < LEAST_TRUST, 0.0, trust)
    return Judgement(trust, seen.at(spread), seen.chance(jury), spread, agreed)


class Distances(NamedTuple):
    """Gradients of sites at the others' consensus, squared, and precisions, by the directions of the others."""

    squared: Float[np.ndarray, "sites p"]
    known: Float[np.ndarray, "sites p"]
    others: Float[np.ndarray, " sites"]

    @classmethod
    def of(cls, jury: Jury, bowls: Bowls, trust: Float[np.ndarray, " sites"]) -> Distances:
        """Return what every site says where the others, by their trust, agree."""
        counted = trust * ~np.eye(len(trust), dtype=bool)
        precision = np.einsum("rs,spq->rpq", counted, bowls.precision)
        own = np.diagonal(precision, axis1=1, axis2=2)
        precision = precision + np.maximum(jury.ridge, ROUNDING * own)[:, None] * np.eye(own.shape[1])
        away = np.linalg.solve(precision, (counted @ bowls.gradient)[..., None])[..., 0]
        gradient = bowls.gradient - np.einsum("spq,sq->sp", bowls.precision, away)
        factor = np.linalg.cholesky(precision)
        half = np.linalg.solve(factor, bowls.precision)
        known, directions = np.linalg.eigh(np.linalg.solve(factor, np.swapaxes(half, 1, 2)))
        turned = np.linalg.solve(factor, gradient[..., None])[..., 0]
        squared = np.einsum("spk,sp->sk", directions, turned) ** 2
        # A site that is compared with nobody is no distance away.
        alone = counted.sum(1) == 0
        return cls(squared, np.where((known > KNOWN) & ~alone[:, None], known, 0.0), counted @ jury.rows)

    @property
    def directions(self) -> Float[np.ndarray, " sites"]:
        """How many directions a site knows."""
        return (self.known > 0).sum(1)

    def at(self, spread: float) -> Float[np.ndarray, " sites"]:
        """Return the distances, if honest sites have a spread."""
        wide = 1 + (spread**2 * self.others)[:, None]
        variance = self.known + wide * self.known**2
        return np.sqrt(np.divide(self.squared, variance, out=np.zeros_like(variance), where=self.known > 0).sum(1))

    def chance(self, jury: Jury) -> Float[np.ndarray, " sites"]:
        """Return how far a site may be without blame."""
        half = np.maximum(self.directions, 1) / 2
        return np.sqrt(2 * gammainccinv(half, FALSE_ALARMS / len(half))) + jury.slack

    def trust(self, jury: Jury, spread: float) -> Float[np.ndarray, " sites"]:
        """Return how far sites are to be trusted."""
        own = np.maximum(self.at(spread) - jury.slack, 0.0)
        free = self.chance(jury) - jury.slack
        return np.exp(-0.5 * np.maximum(own**2 - free**2, 0.0))

    def spread(self, jury: Jury, share: float) -> float:
        """Return the smallest spread at which the share of the votes is as near as chance has that share be."""
        order = np.maximum(self.directions, 1) / 2

        def near(spread: float) -> bool:
            own = np.maximum(self.at(spread) - jury.slack, 0.0)
            usual = gammainc(order, own**2 / 2) <= share
            return float(usual @ jury.votes) >= share * jury.votes.sum()

        low, high = 0.0, 1.0 / np.sqrt(jury.rows.sum())
        if near(low):
            return low
        while not near(high) and high < 1e6:
            low, high = high, 4 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if near(middle) else (middle, high)
        return high


def _consensus(jury: Jury, bowls: Bowls) -> tuple[Float[np.ndarray, " sites"], float, bool]:
    """Return trust and spread at the consensus with most votes, and whether it needed no more spread than chance."""
    given = jury.least_spread if jury.spread is None else jury.spread
    starts = np.argsort(-jury.votes, kind="stable")[:MOST_STARTS]
    best, reached = np.zeros(len(jury.votes)), np.zeros(len(jury.votes), bool)
    for start in starts:
        if reached[start]:
            # It leads to where a start before it led.
            continue
        trust, _ = _settle(jury, bowls, _only(start, len(best)), given)
        reached |= trust > 0.5
        if jury.share(trust) > jury.share(best) + 1e-6:
            best = trust
    if jury.share(best) >= jury.majority:
        trust, spread = _settle(jury, bowls, best, given, again=len(best) > 2)
        return trust, spread, True
    if len(best) == 2 or jury.spread is not None:
        return np.ones(len(best)), given, False
    spreads = [Distances.of(jury, bowls, _only(start, len(best))).spread(jury, jury.majority) for start in starts]
    least = int(np.argmin(spreads))
    trust, spread = _settle(jury, bowls, _only(starts[least], len(best)), max(spreads[least], given), again=True)
    return trust, spread, False


def _settle(
    jury: Jury, bowls: Bowls, trust: Float[np.ndarray, " sites"], spread: float, *, again: bool = False
) -> tuple[Float[np.ndarray, " sites"], float]:
    """Return where trust ends that begins somewhere; `again` estimates the spread on the way, if it is left open."""
    estimate = again and jury.spread is None
    for turn in range(MOST_TURNS):
        seen = Distances.of(jury, bowls, trust)
        if estimate:
            spread = max(seen.spread(jury, 0.5), jury.least_spread)
        wanted = seen.trust(jury, spread)
        # Two sites that take turns in distrusting each other come to rest in the middle.
        step = wanted if turn < 10 else (wanted + trust) / 2
        if np.abs(step - trust).max() < 1e-4:
            return step, spread
        trust = step
    return trust, spread


def _only(site: int, count: int) -> Float[np.ndarray, " sites"]:
    return (np.arange(count) == site).astype(float)
