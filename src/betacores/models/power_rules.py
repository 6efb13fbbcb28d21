"""Numerical rules for the power integral `I(θ) = ∫ p(ψ | x, θ)^(1+β) dψ` of a density that is only known as a function.

Every rule is a weighted sum over outcomes `ψ_j` that are held fixed while θ is differentiated, so that derivatives of
the sum are the sum's own, and consistent with it.

`Quadrature`, over a real outcome: `ψ = m + s sinh t`, and the trapezoidal rule in `t`. The place `m` and the scale `s`
are told, or looked for (`betacores.models.peaks`), which takes three times as many looks at the density as the sum.
Outcomes with bounds are first made free, by the logarithm or the logit. The trapezoidal rule on an analytic function
errs by `e(h) ≈ exp(−2πd/h)`, `d` the width of the strip it is analytic in, so that twice the step errs by the square
root: with the difference `D` of the two, relative to `I`, the error is about `D²`, if `D` is small. What is beyond
the last points adds the size of these.

`Enumerate`, over a finite set: the exact sum. Over counts: the sum over a window `[a, b]` that is found around the
peak, outside of which every term is below `exp(−18)` of the largest; if the mass function is log-concave, all of them
together are below `2 exp(−18)` of the sum. If the window is wider than the first `K` terms, what follows them is the
integral of the terms from `c = a + K − 1/2`, and a 24th of their slope there (Euler and Maclaurin), by Gauss and
Legendre in the logarithm of the distance from `a`.

`MonteCarlo`: with outcomes drawn from the model, or from a proposal `q`, the mean of `p^(1+β) / q` has the standard
error `sd / √draws`. The draws' random numbers are the same at every call.

The first two are right to single precision, about 1e-6, for the usual families; `error` estimates it for one row.

Reference: Trefethen and Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 56 (2014).
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_number
from betacores.models.base import Rows
from betacores.models.peaks import count_window, real_peak

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# A log-density of one row, as its outcome is replaced by others: a function of parameters and row.
LogDensity = Callable[[Any, Rows], "Array"]

# How far the sinh grid reaches: `sinh 10` is eleven thousand scales.
REACH = 10.0
# The largest count; single precision cannot tell larger ones apart.
MOST = 2.0**24
# A change by every second point from which its square says nothing.
COARSE = 0.05


class Outcomes(NamedTuple):
    """What a power integral is summed over: `Σ_j weights_j exp(base_j) p(points_j)^(1+β)`, all of them fixed."""

    points: Any
    base: Any
    weights: Any


class Rule(abc.ABC):
    """A way to compute a power integral. It is callable, so that it is part of a program and no array of it."""

    @abc.abstractmethod
    def outcomes(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Outcomes:
        """Return the outcomes to sum over."""

    def terms(self, log_density: LogDensity, params: Any, row: Rows, beta: Array, over: Outcomes) -> Array:
        """Return the logarithms of the terms."""
        every = jax.vmap(lambda point: log_density(params, with_outcome(row, point)))(over.points)
        logs = (1 + beta) * every + over.base
        return jnp.where(jnp.isnan(logs), -jnp.inf, logs)

    def total(self, log_density: LogDensity, params: Any, row: Rows, beta: Array, over: Outcomes) -> Float[Array, ""]:
        """Return the sum over outcomes."""
        logs = self.terms(log_density, params, row, beta, over)
        top = jax.lax.stop_gradient(jnp.maximum(logs.max(), -1e30))
        # Terms that count nothing must not touch the gradient: the density may be no number there.
        counts = jax.lax.stop_gradient(logs) > top - 80.0
        return jnp.exp(top) * (over.weights * jnp.exp(jnp.where(counts, logs - top, -jnp.inf))).sum()

    def fixed(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Outcomes:
        """Return the outcomes to sum over, constants for every derivative."""
        return jax.lax.stop_gradient(self.outcomes(log_density, *jax.lax.stop_gradient((params, row, beta))))

    def __call__(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Float[Array, ""]:
        """Return the power integral of one row."""
        return self.total(log_density, params, row, beta, self.fixed(log_density, params, row, beta))

    @abc.abstractmethod
    def error(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Float[Array, ""]:
        """Return an estimate of the relative error."""


@dataclass(frozen=True)
class Quadrature(Rule):
    """Trapezoidal rule on a sinh grid around the peak of a real outcome.

    Parameters
    ----------
    location, scale
        Functions of parameters and row that tell about where the outcome is and how wide it spreads (a third or three
        times of that is no harm); both or neither, for outcomes without bounds. Looked for if not given.
    support
        The bounds of the outcome, ``-inf`` and ``inf`` for none; by default those of the response: positive, or none.
    points
        Of the grid, an odd number.
    """

    location: Callable[[Any, Rows], Any] | None = None
    scale: Callable[[Any, Rows], Any] | None = None
    support: tuple[float, float] | None = None
    points: int = 121

    def __post_init__(self) -> None:
        check_number("points", self.points, at_least=9, whole=True)
        if self.points % 2 == 0:
            raise ValueError(f"points: expected an odd number, got {self.points}.")
        if (self.location is None) != (self.scale is None):
            raise ValueError("location, scale: give both, or neither.")
        if self.support is not None:
            low, high = self.support
            if not low < high:
                raise ValueError(f"support: expected (low, high) with low < high, got {self.support!r}.")
            object.__setattr__(self, "support", (float(low), float(high)))
            if self.location is not None and (math.isfinite(low) or math.isfinite(high)):
                raise ValueError("location, scale: for outcomes without bounds only; leave them out, or the support.")

    def outcomes(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Outcomes:
        """Return the grid, and the weights of the trapezoidal rule."""
        low, high = self.support or (-math.inf, math.inf)
        most = _farthest(low, high)

        def integrand(free: Array) -> Array:
            outcome, log_slope = _from_free(jnp.clip(free, -most, most), low, high)
            power = (1 + beta) * log_density(params, with_outcome(row, outcome)) + log_slope
            return jnp.where(jnp.abs(free) > most, -jnp.inf, power)

        if self.location is None or self.scale is None:
            middle, scale = real_peak(integrand)
        else:
            middle, scale = jnp.asarray(self.location(params, row)), jnp.asarray(self.scale(params, row))
        t = jnp.linspace(-REACH, REACH, self.points)
        free = middle + scale * jnp.sinh(t)
        points, log_slopes = _from_free(jnp.clip(free, -most, most), low, high)
        # Where an outcome within bounds cannot be told from its bound there is nothing left to add.
        base = jnp.where(jnp.abs(free) > most, -jnp.inf, log_slopes)
        return Outcomes(points, base, scale * jnp.cosh(t) * (2 * REACH / (self.points - 1)))

    def error(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Float[Array, ""]:
        """Return the square of what every second point changes, and what is left at the ends, relative to the sum."""
        over = self.fixed(log_density, params, row, beta)
        logs = self.terms(log_density, params, row, beta, over)
        parts = over.weights * jnp.exp(logs - logs.max())
        total = parts.sum()
        change = jnp.abs(2 * parts[1::2].sum() - total) / total
        # The square is that of steps that are small enough already.
        inside = jnp.where(change < COARSE, change**2, change)
        return inside + (parts[0] + parts[-1]) / total * self.points / (2 * REACH)


@dataclass(frozen=True)
class Enumerate(Rule):
    """The sum over outcomes.

    Parameters
    ----------
    values
        The outcomes; for models without response, rows, as tuples. By default those of the response: 0 and 1, the
        numbers of the classes, or counts.
    points
        How many terms a sum over counts has at most.
    """

    values: tuple[Any, ...] | None = None
    points: int = 257

    def __post_init__(self) -> None:
        check_number("points", self.points, at_least=9, whole=True)
        if self.values is not None:
            listed = tuple(tuple(v) if np.ndim(v) else v for v in np.asarray(self.values).tolist())
            if not listed:
                raise ValueError("values: expected the outcomes to be summed over, got none.")
            object.__setattr__(self, "values", listed)

    def outcomes(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Outcomes:
        """Return the outcomes, or a window of counts."""
        if self.values is not None:
            points = jnp.asarray(self.values).astype((row.x if row.y is None else row.y).dtype)
            return Outcomes(points, jnp.zeros(len(points)), jnp.ones(len(points)))

        def log_power(count: Array) -> Array:
            return (1 + beta) * log_density(params, with_outcome(row, count))

        return counts_within(*count_window(log_power, jnp.float32(MOST)), points=self.points)

    def error(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Float[Array, ""]:
        """Return how much of the probability the sum misses, which bounds what the integral misses."""
        del beta
        return jnp.abs(1 - self(log_density, params, row, jnp.zeros(())))


@dataclass(frozen=True)
class MonteCarlo(Rule):
    """The mean over outcomes drawn at random.

    Parameters
    ----------
    sampler
        ``sampler(key, params, row)`` returns one outcome drawn given the row's covariates: of the model's own, unless
        ``log_proposal`` is given.
    log_proposal
        ``log_proposal(params, row)``, the log-density that the sampler draws ``row.y`` (``row.x`` for models without
        response) from. A proposal that does not depend on the parameters gives a smooth function of them.
    draws, seed
        How many, and which.
    """

    sampler: Callable[[Any, Any, Rows], Any]
    log_proposal: Callable[[Any, Rows], Any] | None = None
    draws: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("draws", self.draws, at_least=2, whole=True)
        if not callable(self.sampler):
            raise TypeError(f"sampler: expected a function of (key, params, row), got {self.sampler!r}.")

    def outcomes(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Outcomes:
        """Return the draws, and one over their density."""
        keys = jax.random.split(jax.random.key(self.seed), self.draws)
        points = jax.vmap(lambda key: jnp.asarray(self.sampler(key, params, row)))(keys)
        # The draws are fixed, in which form the derivative is unbiased whether or not the sampler has one.
        proposal = log_density if self.log_proposal is None else self.log_proposal
        base = -jax.vmap(lambda point: proposal(params, with_outcome(row, point)))(points)
        return Outcomes(points, base, jnp.full(self.draws, 1 / self.draws))

    def error(self, log_density: LogDensity, params: Any, row: Rows, beta: Array) -> Float[Array, ""]:
        """Return the relative standard error."""
        logs = self.terms(log_density, params, row, beta, self.fixed(log_density, params, row, beta))
        parts = jnp.exp(logs - logs.max())
        return parts.std() / parts.mean() / math.sqrt(self.draws)


def counts_within(low: Array, high: Array, upper: Any = None, points: int = 257) -> Outcomes:
    """Return the counts from the first to the last to sum over: all of them if they are few, else the first and a rule.

    Parameters
    ----------
    low, high
        The first and the last count that has any mass.
    upper
        The largest count that is possible.
    points
        How many terms there may be.
    """
    smooth = points * 3 // 8
    exact = points - smooth - 1
    # Beyond `exact` terms, from half a count before the next: an integral over the logarithm of one more than the
    # distance from the first.
    ends = jnp.log(exact + 0.5), jnp.log(jnp.maximum(high - low + 1.5, exact + 0.5))
    nodes, shares = np.polynomial.legendre.leggauss(smooth)
    half = 0.5 * (ends[1] - ends[0])
    away = jnp.exp(ends[0] + half * (1 + jnp.asarray(nodes, jnp.result_type(float))))
    slope = jnp.where(half > 0, 1 / 24, 0.0)
    smoothed = half * jnp.asarray(shares, jnp.result_type(float)) * away
    weights = jnp.concatenate([jnp.ones(exact).at[-1].add(-slope), slope[None], smoothed])
    at = jnp.concatenate([low + jnp.arange(exact + 1.0), low + (away - 1)])
    outside = jnp.zeros_like(at, bool) if upper is None else at > upper + 0.5
    return Outcomes(at, jnp.where(outside, -jnp.inf, 0.0), weights)


def with_outcome(row: Rows, outcome: Array) -> Rows:
    """Return a row with another response, or other cells if it has none."""
    if row.y is None:
        return Rows(jnp.broadcast_to(outcome, jnp.shape(row.x)))
    return Rows(row.x, outcome)


def _farthest(low: float, high: float) -> float:
    if math.isinf(low) and math.isinf(high):
        return math.inf
    return 16.0 if math.isfinite(low) and math.isfinite(high) else 85.0


def _from_free(free: Array, low: float, high: float) -> tuple[Array, Array]:
    """Return an outcome within bounds, and the logarithm of its slope."""
    if math.isfinite(low) and math.isfinite(high):
        log_slope = jax.nn.log_sigmoid(free) + jax.nn.log_sigmoid(-free) + math.log(high - low)
        return low + (high - low) * jax.nn.sigmoid(free), log_slope
    if math.isfinite(low):
        return low + jnp.exp(free), free
    if math.isfinite(high):
        return high - jnp.exp(free), free
    return free, jnp.zeros_like(free)
