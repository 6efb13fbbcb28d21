"""The fixed point of line and noise: each row counts by its density to the power γ.

With `e_n = y_n − z_n·θ`, one step is

    `w_n = exp(−γ e_n² / 2σ²)`,
    `θ ← argmin Σ_n w_n e_n²`,  `σ² ← (1 + γ) Σ_n w_n e_n² / Σ_n w_n`,

so that rows far from the line count nothing, for any share of them. The factor `1 + γ` undoes what the weights cut off
a Gaussian; what the fit of the coefficients takes is given back as degrees of freedom, in the denominator.

Fixed points are judged by the γ-divergence, `log σ / (1 + γ) − log(mean_n w_n) / γ`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

TOLERANCE = 3e-4
# The least noise that single precision can tell from none, in units of the response's scale.
SMALLEST = 1e-6
# Residuals beyond so many σ count nothing: products stay finite.
FARTHEST_RESIDUAL = 30.0


class Sums(NamedTuple):
    """What one pass over rows gives: `Σ w z zᵀ`, `Σ w z e`, `Σ w e²`, `Σ w`, and the number of rows."""

    gram: Any
    pull: Any
    energy: Any
    mass: Any
    rows: Any


class Fit(NamedTuple):
    """A line and the noise around it, the γ-divergence there and the share of rows it describes."""

    theta: Float[np.ndarray, " p"]
    sigma: float
    divergence: float
    share: float


def weighted_sums(z: Any, y: Any, weights: Any, theta: Any, sigma: Any, gamma: Any, xp: Any) -> Sums:
    """Return the weighted sums at a line; NumPy in the search, JAX in the passes over all rows."""
    far = FARTHEST_RESIDUAL * sigma
    e = xp.clip(y - z @ theta, -far, far)
    w = weights * xp.exp(-0.5 * gamma * (e / sigma) ** 2)
    weighted = z * w[:, None]
    return Sums(weighted.T @ z, weighted.T @ e, (w * e) @ e, w.sum(), weights.sum())


def fixed_point(
    look: Callable[..., Sums], theta: np.ndarray, sigma: float, gamma: float, rank: int, steps: int
) -> tuple[np.ndarray, float]:
    """Follow the updates of line and noise until the noise rests, one look at the rows each."""
    for _ in range(steps):
        sums = look(theta, sigma, gamma)
        step = solve(sums.gram, sums.pull)
        energy = max(float(sums.energy - sums.pull @ step), 0.0)
        mass = max(float(sums.mass), 1e-30)
        freedom = max(mass - _freedom(gamma) * rank / math.sqrt(1 + gamma), 0.05 * mass)
        theta, before = theta + step, sigma
        sigma = max(math.sqrt((1 + gamma) * energy / freedom), SMALLEST)
        if abs(math.log(sigma / before)) < TOLERANCE:
            break
    return theta, sigma


def judged(look: Callable[..., Sums], theta: np.ndarray, sigma: float, gamma: float) -> Fit:
    """Return a fixed point with what it is chosen by."""
    sums = look(theta, sigma, gamma)
    mean = max(float(sums.mass / sums.rows), 1e-30)
    divergence = math.log(sigma) / (1 + gamma) - math.log(mean) / gamma
    # A Gaussian has `mean w = 1 / √(1+γ)`; rows that are tied have one.
    return Fit(theta, sigma, divergence, mean * math.sqrt(1 + gamma) if sigma > SMALLEST else mean)


def _freedom(gamma: float) -> float:
    """Return how many clean rows' worth of `Σ w e²` the fit of one coefficient takes, to first order; 1 at γ = 0.

    With `ψ = e w` and `χ = w (e² − s)`, the expected change of `Σ_n χ(e_n)` by one coefficient,
    `−E[χ' ψ] / E[ψ'] + E[χ''] E[ψ²] / 2 E[ψ']²`, where `s = 1 / (1 + γ)` and `v = 1 / (1 + 2γ)`.
    """
    s, v = 1 / (1 + gamma), 1 / (1 + 2 * gamma)
    own = v**0.5 * ((2 + gamma * s) * v - 3 * gamma * v**2) / s**1.5
    others = s**0.5 * (2 + gamma * s - (5 * gamma + gamma**2 * s) * s + 3 * gamma**2 * s**2) * v**1.5 / s**3
    return (own - 0.5 * others) / s**1.5


def solve(gram: Float[np.ndarray, "p p"], pull: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Solve least squares for a step; the ridge, far below the units of the frame, is for columns that repeat."""
    diagonal = np.sqrt(np.maximum(np.diag(gram), 1e-30))
    scaled = gram / diagonal / diagonal[:, None]
    return np.linalg.solve(scaled + 1e-7 * np.eye(len(pull)), pull / diagonal) / diagonal
