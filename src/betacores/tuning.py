"""Choosing β from the data alone: the estimated mean squared error of the β-posterior's mode.

Nobody tells which rows are outliers. But a mode for a larger β has less bias, only more variance; a smaller β errs by
as much as its mode is farther from those of larger β than chance explains.

Rows are not all that moves a mode: the prior pulls it, and the more, the larger β is, for rows then say less. Of clean
rows too the most robust mode would stand apart from the others, and by its shrinkage have the smallest variance. So a
mode `θ_a` is not compared with other modes `θ_b` but with what rows alone say, the modes `m_b` of the likelihoods
without prior (`betacores.pull`); and it answers for its own pull, `m_a` being among them. With the curvatures `H` of
the posterior and `A` of the likelihood, both at `m`, for a shrunken mode may not estimate its own variance, a row's
influence on `θ_a` is `IF_n(a) = H_a⁻¹ w_n ∇f_n(m_a)`, that on `m_b` is `IM_n(b) = A_b⁻¹ w_n ∇f_n(m_b)`. With lengths in
the metric of the largest β's `H`, the two differ by the squared length `Σ_n ‖IF_n(a) − IM_n(b)‖²` by chance alone, and

    bias²(a) = max over b ≥ a of  max(0, ‖θ_a − m_b‖² − chance(a, b) − 2 sd(a, b)),   variance(a) = Σ_n ‖IF_n(a)‖²,

where `sd` is the standard deviation of that squared length. The β with the smallest sum is taken. Neighbours on the
grid differ little by chance, so that a small bias shows between them though it would drown in the variance of the
most robust mode.

A parameter that itself says how dirty the rows are, a share of flipped labels say, is held while β is chosen
(`held_for_tuning`). Under a large β rows say little of it, and what its prior says would pass for precision.

The modes are found on a sample, side by side; one pass or two over all rows give each its last Newton steps, if only
one with the curvatures of a sample. The smaller half of the grid is spared that pass where the sample leaves no doubt
that it errs by more than the largest β. The products of the rows' gradients are means, for which the sample is enough.

Reference: Goldenshluger and Lepski, "Bandwidth selection in kernel density estimation: oracle inequalities and adaptive
minimax optimality", Annals of Statistics 39 (2011), for comparing every estimate with all less biased ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import FLOOR, Beta, has_power_integral
from betacores.grid import GridFit, as_betas, grid_modes, last_step, priors_at
from betacores.models.base import Model, Rows
from betacores.pilot import Found, explained, search
from betacores.posteriors.derivatives import row_gradients
from betacores.pull import Alone, without_prior
from betacores.samples import enough_for_one_step
from betacores.scores import default_score_beta
from betacores.sources import ArraySource, Source

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Float

RESPONSE_GRID = (0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4)
# The largest β may have this many times the variance of the classical mode on clean rows, not more.
LARGEST_INFLATION = 4.0
ROW_GRID_POINTS = 8
# Differences within so many standard deviations are chance; those beyond the second number surely are not.
CHANCE, SURELY = 2.0, 6.0
# A mode must explain this share of the rows that another explains.
EXPLAINED = 0.8
# Multiplications spent on the products of the rows' gradients, and the fewest and most rows to take them from.
PRODUCT_WORK, FEWEST_ROWS, MOST_ROWS = 3e10, 2000, 5000


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
    larger: ArraySource | None = None,
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
    larger
        A larger sample, where the modes are brought nearer to those over all rows; by default all rows are.
    """
    held, free = model, np.zeros(0)
    if hasattr(model, "held_for_tuning"):
        held, free = model.held_for_tuning(len(sample.columns))
    if len(free):
        return _released(model, free, tune(held, source, sample, betas, also, larger), source, sample)
    lanes = np.unique([*betas, *also])
    scale = source.row_count / sample.row_count
    reference = _reference(model, sample, scale, float(lanes[-1]))
    fit = grid_modes(model, sample, np.tile(reference.theta, (len(lanes), 1)), lanes, scale=scale)
    alone = without_prior(model, sample, fit.thetas, lanes, scale)
    # Where a row's log-likelihood is at its floor it pulls at no mode, which then seems to be undisturbed by it.
    arrived = fit.converged & (fit.likelihood.value / scale > FLOOR)
    products, first = source.row_count * mean_products(model, sample, alone.modes, lanes), 0
    if scale > 1 and larger is not None and enough_for_one_step(source.row_count, larger.row_count):
        scale = source.row_count / larger.row_count
        if larger.row_count > sample.row_count:
            fit = grid_modes(model, larger, fit.thetas, lanes, scale=scale, steps=1)
        if len(lanes) // 2 <= np.searchsorted(lanes, min(also, default=np.inf)):
            first = _first_in_question(_valid(model, sample, fit, arrived), fit.thetas, alone, products, scale)
        fit = last_step(model, source, fit, lanes, first)
    elif scale > 1:
        # One step is not enough: modes of a sample are several posterior standard deviations of all rows away.
        fit = grid_modes(model, source, fit.thetas, lanes, steps=1)
    valid = _valid(model, sample, fit, arrived)
    # The prior pulls at modes over all rows as it does at those of a sample that counts for as many.
    alone = alone._replace(modes=fit.thetas + alone.steps)
    bias2, variance = np.full((2, len(lanes)), np.nan)
    if valid.any():
        bias2[valid], variance[valid] = mean_squared_error(
            fit.thetas[valid], Alone(*(part[valid] for part in alone)), products[np.ix_(valid, valid)]
        )
    total = np.where(np.isin(lanes, betas) & np.isfinite(bias2 + variance), bias2 + variance, np.inf)
    total[:first] = np.inf
    chosen = int(total.argmin()) if np.isfinite(total).any() else int(np.flatnonzero(np.isin(lanes, betas))[-1])
    return Tuning(lanes, fit.thetas, bias2, variance, chosen, reference)


def _valid(model: Model, sample: ArraySource, fit: GridFit, arrived: Bool[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    """Tell the lanes whose search arrived at a mode that explains its share of the rows."""
    # A mode that is bent the wrong way is none, however the rows alone bend.
    bent = fit.likelihood.hessian + priors_at(model, fit.looked_at).hessian
    return arrived & _explains(model, sample, fit.thetas) & [_is_definite(-matrix) for matrix in bent]


def _first_in_question(
    valid: Bool[np.ndarray, " k"], thetas: np.ndarray, alone: Alone, products: np.ndarray, scale: float
) -> int:
    """Return the first lane that all rows are to be asked about, zero or the middle: a program for each, not for all.

    The smaller half of the grid is out of question when modes over a sample, of which a row stands for `scale` rows,
    are farther from those of larger β than chance explains by more than the largest β errs.
    """
    half = len(valid) // 2
    if not valid[half:].any():
        return 0
    modes, among = alone._replace(modes=thetas + alone.steps), products[np.ix_(valid, valid)]
    modes, thetas = Alone(*(part[valid] for part in modes)), thetas[valid]
    surely, _ = mean_squared_error(thetas, modes, scale * among, chances=SURELY)
    largest = Alone(*(part[-1:] for part in modes))
    bias2, variance = mean_squared_error(thetas[-1:], largest, among[-1:, -1:], chances=0.0)
    return half if np.all(surely[: valid[:half].sum()] > (bias2 + variance)[0]) else 0


def _released(
    model: Model, free: Float[np.ndarray, " r"], tuning: Tuning, source: Source, sample: ArraySource
) -> Tuning:
    """Return a choice made with the last parameters held, its modes climbed to with none held."""
    starts = np.column_stack([tuning.thetas, np.tile(free, (len(tuning.thetas), 1))])
    fit = grid_modes(model, sample, starts, tuning.betas, scale=source.row_count / sample.row_count)
    return tuning._replace(thetas=fit.thetas)


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
    wanted = int(np.clip(PRODUCT_WORK / (lanes * p) ** 2, FEWEST_ROWS, MOST_ROWS))
    # Samples are in random places but sorted; every so many rows is a sample of them.
    stride = -(-sample.row_count // wanted)
    rows = Rows(sample.x[::stride], None if sample.y is None else sample.y[::stride])
    total = _products(model, jnp.asarray(thetas), rows, sample.weights[::stride], as_betas(betas))
    return np.asarray(total, np.float64) / len(rows.x)


@jax.jit
def _products(model: Model, thetas: Array, rows: Rows, weights: Array, betas: Array | None) -> Array:
    def lane(at: tuple[Array, Beta]) -> Float[Array, "n p"]:
        theta, beta = at
        return weights[:, None] * row_gradients(model, theta, rows, beta)

    gradients = jax.lax.map(lane, (thetas, betas))
    return jnp.einsum("anp,bnq->abpq", gradients, gradients)


def mean_squared_error(
    thetas: Float[np.ndarray, "k p"], alone: Alone, products: Float[np.ndarray, "k k p p"], chances: float = CHANCE
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Return the squared bias and the variance of every lane's mode.

    Parameters
    ----------
    thetas
        The modes for growing β.
    alone
        What the rows say without the prior.
    products
        `Σ_n w_n² ∇f_n(a) ∇f_n(b)ᵀ` for every two lanes.
    chances
        Standard deviations within which a difference is chance.
    """
    lanes = len(thetas)
    definite = [_is_definite(matrix) for matrix in alone.curvatures]
    bias2, variance = np.zeros(lanes), np.full(lanes, np.nan)
    if not definite[-1]:
        return bias2, variance
    root = np.linalg.cholesky(alone.curvatures[-1]).T
    # Influences of rows in the reference's metric; no mode, no influence.
    on_mode = [
        root @ _inverse(h) if ok else np.full_like(h, np.nan) for h, ok in zip(alone.curvatures, definite, strict=True)
    ]
    on_alone = [root @ inverse for inverse in alone.inverses]
    modes, alone_modes = thetas.astype(np.float64) @ root.T, alone.modes.astype(np.float64) @ root.T
    own = [on_mode[a] @ products[a, a] @ on_mode[a].T for a in range(lanes)]
    own_alone = [on_alone[b] @ products[b, b] @ on_alone[b].T for b in range(lanes)]
    variance = np.array([np.trace(matrix) for matrix in own])
    for a in range(lanes):
        for b in range(a, lanes):
            both = on_mode[a] @ products[a, b] @ on_alone[b].T
            spread = own[a] + own_alone[b] - both - both.T
            chance = np.trace(spread) + chances * np.sqrt(2 * np.sum(spread**2))
            if np.isfinite(chance):
                bias2[a] = max(bias2[a], np.sum((modes[a] - alone_modes[b]) ** 2) - chance)
    return bias2, variance


def _inverse(definite: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    # By its root: one that is definite to the last digit is singular to a plain inversion.
    whitening = np.linalg.inv(np.linalg.cholesky(definite))
    return whitening.T @ whitening


def _is_definite(matrix: Float[np.ndarray, "p p"]) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
