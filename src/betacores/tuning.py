"""Choosing β from the data alone: the estimated mean squared error of the β-posterior's mode.

Nobody tells which rows are outliers. But a mode for a larger β has less bias, only more variance; a smaller β errs by
as much as its mode is farther from those of larger β than chance explains.

Rows are not all that bends a mode: the prior pulls it, and the more, the less the rows say. They say less for a larger
β, whose mode would then stand apart from the others on clean rows too, and by its shrinkage have the smaller variance.
So a mode `θ_a` is not compared with the modes `θ_b` but with what the rows alone say. With `H = A + P`, the curvatures
of the likelihood and of the prior, one Newton step of the likelihood from the mode takes the pull out,

    m_b = θ_b − A_b⁻¹ ∇log π0(θ_b),

exactly so if both are quadratic: then `θ_b = H_b⁻¹ (A_b m_b + P μ)`. The bias of `θ_a` is then that of the rows and
of the prior together, and the mode of the largest β answers for its own: it is compared with its own `m`. With a row's
influences `IF_n(a) = H_a⁻¹ w_n ∇f_n(θ_a)` on `θ_a` and `IM_n(b) = (I + A_b⁻¹ P) IF_n(b)` on `m_b`, and lengths in the
metric of the largest β's `H`, the difference has squared length `Σ_n ‖IF_n(a) − IM_n(b)‖²` by chance alone, and

    bias²(a) = max over b ≥ a of  max(0, ‖θ_a − m_b‖² − chance(a, b) − 2 sd(a, b)),   variance(a) = Σ_n ‖IF_n(a)‖²,

where `sd` is the standard deviation of that squared length. The β with the smallest sum is taken. Neighbours on the
grid differ little by chance, so that a small bias shows between them though it would drown in the variance of the
most robust mode.

`A` may be singular, as with more columns than rows, or bent the wrong way. In every direction `v` with `A v = λ H v`
the share `λ` of the information that comes from the rows is taken to be one half at least: where the prior says more
than the rows, a Newton step is no guide, and takes no more out than twice the pull.

The modes are found on a sample, side by side; two passes over all rows give each its last Newton steps. The products
of the rows' gradients are means, for which the sample is enough.

Reference: Goldenshluger and Lepski, "Bandwidth selection in kernel density estimation: oracle inequalities and adaptive
minimax optimality", Annals of Statistics 39 (2011), for comparing every estimate with all less biased ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import Beta, has_power_integral
from betacores.grid import grid_modes, priors_at
from betacores.models.base import Model, Rows
from betacores.pilot import Found, explained, search
from betacores.posteriors.derivatives import row_gradients
from betacores.scores import default_score_beta
from betacores.sources import ArraySource, Source

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float

RESPONSE_GRID = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4)
# The largest β may have this many times the variance of the classical mode on clean rows, not more.
LARGEST_INFLATION = 4.0
ROW_GRID_POINTS = 8
# Differences within so many standard deviations are chance.
CHANCE = 2.0
# The share of the information that rows are taken to give at least, when the prior's pull is taken out of a mode.
LEAST_SHARE = 0.5
# A mode must explain this share of the rows that another explains.
EXPLAINED = 0.8
# Multiplications spent on the products of the rows' gradients, and the fewest rows to take them from.
PRODUCT_WORK, FEWEST_ROWS = 3e10, 2000


class Tuning(NamedTuple):
    """The grid, its modes, the two parts of the criterion, and the choice."""

    betas: Float[np.ndarray, " k"]
    thetas: Float[np.ndarray, "k p"]
    bias2: Float[np.ndarray, " k"]
    variance: Float[np.ndarray, " k"]
    chosen: int
    reference: Found

    @property
    def beta(self) -> float:
        """The chosen β."""
        return float(self.betas[self.chosen])

    def mode(self, beta: float) -> Found | None:
        """Return the mode found for a β of the grid, if it is one."""
        at = np.flatnonzero(self.betas == beta)
        return self.reference._replace(theta=self.thetas[at[0]]) if at.size else None

    def curve(self) -> dict[str, list]:
        """Return the criterion along the grid, for people; None where there is no estimate."""
        parts = {
            "beta": self.betas,
            "bias2": self.bias2,
            "variance": self.variance,
            "total": self.bias2 + self.variance,
        }
        return {name: [float(v) if np.isfinite(v) else None for v in values] for name, values in parts.items()}


def beta_grid(model: Model, columns: int) -> Float[np.ndarray, " k"]:
    """Return the values of β to choose from, growing.

    The likelihood of a whole row multiplies one factor a column. A robust mode in d columns has
    `(1 + β²/(1+2β))^(d/2+1)` times the variance of the classical one, so the grid ends where that is a few times.
    """
    if not has_power_integral(model):
        return np.zeros(1)
    if model.response != "none":
        return np.asarray(RESPONSE_GRID)
    excess = LARGEST_INFLATION ** (1 / (columns / 2 + 1)) - 1
    largest = min(excess + np.sqrt(excess**2 + excess), RESPONSE_GRID[-1])
    return np.array([0.0, *np.geomspace(min(0.2 / columns, largest / 4), largest, ROW_GRID_POINTS)])


def tune(
    model: Model,
    source: Source,
    sample: ArraySource,
    betas: Float[np.ndarray, " k"],
    also: tuple[float, ...] = (),
) -> Tuning:
    """Choose β from a grid.

    Parameters
    ----------
    model, source
        The model, and the rows.
    sample
        A uniform sample of the rows.
    betas
        The grid.
    also
        Further β whose modes are wanted though they are not to be chosen.
    """
    lanes = np.unique([*betas, *also])
    scale = source.row_count / sample.row_count
    reference = _reference(model, sample, scale, float(lanes[-1]))
    fit = grid_modes(model, sample, np.tile(reference.theta, (len(lanes), 1)), lanes, scale=scale)
    arrived = fit.converged
    if scale > 1:
        # One step is not enough: modes of a sample are several posterior standard deviations of all rows away.
        fit = grid_modes(model, source, fit.thetas, lanes, steps=1)
    valid = arrived & _explains(model, sample, fit.thetas)
    bends = -priors_at(model, fit.looked_at).hessian
    curvatures = bends - fit.likelihood.hessian
    free = without_prior(fit.thetas, curvatures, priors_at(model, fit.thetas).gradient, bends)
    products = source.row_count * mean_products(model, sample, fit.looked_at, lanes)
    bias2, variance = np.full((2, len(lanes)), np.nan)
    if valid.any():
        bias2[valid], variance[valid] = mean_squared_error(
            fit.thetas[valid],
            curvatures[valid],
            products[np.ix_(valid, valid)],
            Free(free.modes[valid], free.gains[valid]),
        )
    total = np.where(np.isin(lanes, betas) & np.isfinite(bias2 + variance), bias2 + variance, np.inf)
    chosen = int(total.argmin()) if np.isfinite(total).any() else int(np.flatnonzero(np.isin(lanes, betas))[-1])
    return Tuning(lanes, fit.thetas, bias2, variance, chosen, reference)


def _reference(model: Model, sample: ArraySource, scale: float, largest: float) -> Found:
    """Return the mode to set out from: that of the largest β, unless a smaller one's explains far more rows."""
    found = search(model, sample, scale, largest)
    moderate = default_score_beta(model, len(sample.columns)) if has_power_integral(model) else largest
    if not hasattr(model, "log_temperature") or moderate >= largest:
        return found
    other = search(model, sample, scale, moderate)
    least = EXPLAINED * explained(model, sample, other.theta)
    return found if explained(model, sample, found.theta) >= least else other


def _explains(model: Model, sample: ArraySource, thetas: Float[np.ndarray, "k p"]) -> Bool[np.ndarray, " k"]:
    """Tell the modes that explain nearly as many rows as any: the others sit on a few rows close together."""
    if not hasattr(model, "log_temperature"):
        return np.ones(len(thetas), bool)
    shares = np.array([explained(model, sample, theta) for theta in thetas])
    return shares >= EXPLAINED * shares.max()


def mean_products(
    model: Model, sample: ArraySource, thetas: Float[np.ndarray, "k p"], betas: Float[np.ndarray, " k"]
) -> Float[np.ndarray, "k k p p"]:
    """Return the mean over rows of `w² ∇f(a) ∇f(b)ᵀ` for every two lanes a and b."""
    lanes, p = thetas.shape
    wanted = max(int(PRODUCT_WORK / (lanes * p) ** 2), FEWEST_ROWS)
    # Samples are in random places but sorted; every so many rows is a sample of them.
    stride = -(-sample.row_count // wanted)
    rows = Rows(sample.x[::stride], None if sample.y is None else sample.y[::stride])
    traced = jnp.asarray(betas, jnp.float32) if np.any(betas) else None
    total = _products(model, jnp.asarray(thetas), rows, sample.weights[::stride], traced)
    return np.asarray(total, np.float64) / len(rows.x)


@jax.jit
def _products(model: Model, thetas: Array, rows: Rows, weights: Array, betas: Array | None) -> Array:
    def lane(at: tuple[Array, Beta]) -> Float[Array, "n p"]:
        theta, beta = at
        return weights[:, None] * row_gradients(model, theta, rows, beta)

    gradients = jax.lax.map(lane, (thetas, betas))
    return jnp.einsum("anp,bnq->abpq", gradients, gradients)


class Free(NamedTuple):
    """Modes with the prior's pull taken out, and how much farther than the modes they move: `I + A⁻¹ P`."""

    modes: Float[np.ndarray, "k p"]
    gains: Float[np.ndarray, "k p p"]


def without_prior(
    thetas: Float[np.ndarray, "k p"],
    curvatures: Float[np.ndarray, "k p p"],
    pulls: Float[np.ndarray, "k p"],
    bends: Float[np.ndarray, "k p p"],
) -> Free:
    """Take the prior's pull out of modes, as far as the rows say where they would be without it.

    Parameters
    ----------
    thetas, curvatures
        The modes, and the negative Hessians of the log-posterior there.
    pulls, bends
        The gradients of the log-prior at the modes, and its negative Hessians.
    """
    thetas = np.asarray(thetas, np.float64)
    free = Free(np.full(thetas.shape, np.nan), np.full(curvatures.shape, np.nan))
    for k, (curvature, pull, bend) in enumerate(zip(curvatures, pulls, bends, strict=True)):
        if not _is_definite(curvature):
            continue
        whitening = np.linalg.inv(np.linalg.cholesky(curvature))
        share, directions = np.linalg.eigh(whitening @ (curvature - bend) @ whitening.T)
        directions = whitening.T @ directions
        inverse = (directions / np.maximum(share, LEAST_SHARE)) @ directions.T
        free.modes[k] = thetas[k] - inverse @ pull
        free.gains[k] = np.eye(len(pull)) + inverse @ bend
    return free


def mean_squared_error(
    thetas: Float[np.ndarray, "k p"],
    curvatures: Float[np.ndarray, "k p p"],
    products: Float[np.ndarray, "k k p p"],
    free: Free,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the squared bias and the variance of every lane's mode.

    Parameters
    ----------
    thetas, curvatures
        The modes for growing β, and the negative Hessians of the log-posterior there.
    products
        `Σ_n w_n² ∇f_n(a) ∇f_n(b)ᵀ` for every two lanes.
    free
        The modes without the prior's pull.
    """
    lanes = len(thetas)
    definite = [_is_definite(matrix) for matrix in curvatures]
    bias2, variance = np.zeros(lanes), np.full(lanes, np.nan)
    if not definite[-1]:
        return bias2, variance
    root = np.linalg.cholesky(curvatures[-1]).T
    # Influences of rows in the reference's metric; no mode, no influence.
    inverses = [np.linalg.inv(h) if ok else np.full_like(h, np.nan) for h, ok in zip(curvatures, definite, strict=True)]
    on_mode = [root @ inverse for inverse in inverses]
    on_free = [root @ gain @ inverse for gain, inverse in zip(free.gains, inverses, strict=True)]
    own = [on_mode[a] @ products[a, a] @ on_mode[a].T for a in range(lanes)]
    own_free = [on_free[b] @ products[b, b] @ on_free[b].T for b in range(lanes)]
    variance = np.array([np.trace(matrix) for matrix in own])
    for a in range(lanes):
        for b in range(a, lanes):
            both = on_mode[a] @ products[a, b] @ on_free[b].T
            spread = own[a] + own_free[b] - both - both.T
            chance = np.trace(spread) + CHANCE * np.sqrt(2 * np.sum(spread**2))
            if np.isfinite(chance):
                bias2[a] = max(bias2[a], np.sum((root @ (thetas[a] - free.modes[b])) ** 2) - chance)
    return bias2, variance


def _is_definite(matrix: Float[np.ndarray, "p p"]) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
