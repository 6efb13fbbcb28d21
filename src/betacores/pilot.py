"""The mode of the β-posterior over all rows: where scores are read, and what pursuit aims at.

The β-posterior of dirty data has several modes, one for each cluster the model could explain. The search therefore
starts from several points, each with a schedule of β:

- ``prior``: the prior's mean (zero where the model does not tell it), at β throughout;
- ``robust``: the model's own robust start (medians, say), if it has one, at β throughout;
- ``ladder``: the classical mode, followed as β grows from 0, for starts so far off that every row would count nothing
  (from the first β on that changes any row's likelihood there);
- ``descent``: the mode for a large β, found from the better of the others' starts, followed as β falls;
- ``middle``, for labels: the mode over the half of the rows next to the columns' medians, at β throughout. Wrong labels
  do most harm far out, and not even a large β lets go of them all at a mode that they have made.

Without β a logarithmically concave model has one mode, and ``prior`` alone is followed. Otherwise all run side by side,
first on some rows of a sample and of those on the core, the rows with no cell far from its column's median: rows of
great leverage hold the search at a poor mode next to them, though at a better one they count nothing. Where that has
led is the start on all of the sample. The best log-posterior wins and is polished on all rows. Every pass is a sum over
blocks.

Where the power integral is a constant, a few rows close together, closer than the model says rows are, can make a
better log-posterior than all others: the density is highest there. What wins then is the mode that explains most rows,
`Σ_n w_n min(1, r_n)` with the scores `r` of the row scores' own β, in which no row counts for more than one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.divergence import FLOOR, has_power_integral, likelihoods
from betacores.grid import GridFit, grid_modes, priors_at
from betacores.models.base import Model, Rows
from betacores.posteriors.derivatives import Derivatives
from betacores.posteriors.gaussian import Gaussian, factorise, scaled_cholesky
from betacores.robust import medians, quantiles
from betacores.samples import SAMPLE_ROWS, last_step_tolerance
from betacores.sampling import sample_rows
from betacores.scores import default_score_beta, row_scores
from betacores.sources import ArraySource, Source, collect

if TYPE_CHECKING:
    from jaxtyping import Array, Float, PRNGKeyArray

LADDER = (*(16.0**-k for k in range(6, 0, -1)), 0.25, 1.0)
DESCENT = (1.0, 0.5, 0.25, 0.1, 0.0)
CORE_SCALES = 4.0
# A β times a log-likelihood that is as good as none.
NO_CHANGE = 0.05
# Starts are followed on so many rows of the sample, more if there are many parameters.
ROUGH_ROWS, ROUGH_ROWS_A_PARAMETER = 5000, 50

# Another mode counts as a rival when it is this many posterior standard deviations away and explains this share of
# the rows the best one explains.
RIVAL_DISTANCE = 5.0
RIVAL_SHARE = 0.9


class Pilot(NamedTuple):
    """The mode, and how the search for it went.

    ``likelihood`` holds the derivatives of `Σ_n w_n f_n` over all rows at ``looked_at``, one Newton step before
    ``theta``. ``rivals`` describes other modes that explain nearly as many rows.
    """

    theta: Float[np.ndarray, " p"]
    looked_at: Float[np.ndarray, " p"]
    likelihood: Derivatives
    log_posterior: float
    converged: bool
    start: str
    rivals: tuple[str, ...] = ()


class Found(NamedTuple):
    """A mode over a sample of rows."""

    theta: Float[np.ndarray, " p"]
    start: str
    rivals: tuple[str, ...]


def pilot(
    model: Model,
    source: Source,
    beta: float,
    key: PRNGKeyArray,
    largest: float | None = None,
) -> Pilot:
    """Return the mode of the β-posterior over all rows of a source.

    Parameters
    ----------
    model, source, beta
        The posterior's ingredients.
    key
        Decides which rows are sampled.
    largest
        The β from which ``descent`` starts; left out, there is no such start.
    """
    sample = sampled(source, key)
    found = search(model, sample, source.row_count / sample.row_count, beta, largest)
    return polished(model, source, [found], [beta])[0]


def sampled(source: Source, key: PRNGKeyArray) -> ArraySource:
    """Return a uniform sample of rows with their weights."""
    return rows_of(source, sample_rows(key, source.row_count, SAMPLE_ROWS))


def rows_of(source: Source, ids: np.ndarray) -> ArraySource:
    """Return some rows, with their weights, as a source of their own."""
    rows = source.take(ids)
    return ArraySource(rows.x, rows.y, source.columns, source.weights_of(ids))


def search(model: Model, sample: ArraySource, scale: float, beta: float, largest: float | None = None) -> Found:
    """Return the best mode over a sample of rows that any of the starts leads to."""
    p = model.parameter_count(len(sample.columns))
    prior = np.asarray(_prior_mean(model, p), np.float32)
    # Where each begins and its first β, and the further ones of those that change it.
    starts, ways = {"prior": (prior, beta), "ladder": (prior, 0.0)}, {}
    robust = prior
    if hasattr(model, "robust_start"):
        robust = np.asarray(model.robust_start(Rows(sample.x, sample.y)), np.float32)
        starts["robust"] = (robust, beta)
    if largest is not None and largest > beta:
        starts["descent"] = (robust, largest)
        ways["descent"] = [beta + (largest - beta) * share for share in DESCENT[1:]]
    few = _thinned(sample, p)
    rough = scale * sample.row_count / few.row_count
    if beta == 0 and model.log_concave and (found := _only_mode(model, sample, few, prior, scale, rough)):
        return found
    # Rows of several clusters have no one middle to be far from.
    farthest = _farthest(model, few)
    core = few if hasattr(model, "ordered") else _within(few, farthest, CORE_SCALES)
    if model.response in ("binary", "classes"):
        # As many lanes as below, though one would do: the program is compiled for them.
        lanes = np.tile(prior, (len(starts) + 1, 1))
        half = _within(few, farthest, 0.0)
        near = grid_modes(model, half, lanes, np.full(len(lanes), beta), scale=rough).thetas[0]
        starts["middle"] = (near, beta)
    names, first = list(starts), np.array([at for _, at in starts.values()])
    thetas = np.stack([theta for theta, _ in starts.values()])
    thetas = grid_modes(model, core, thetas, first, scale=rough).thetas
    ways["ladder"] = _rungs(model, core, thetas[names.index("ladder")], beta)
    # Side by side; who has fewer steps to go waits, and all end at β together.
    steps = max(map(len, ways.values()))
    schedule = np.tile(first, (steps, 1))
    for name, way in ways.items():
        schedule[steps - len(way) :, names.index(name)] = way
    for betas in schedule:
        thetas = grid_modes(model, core, thetas, betas, scale=rough).thetas
    fit = grid_modes(model, sample, thetas, np.full(len(names), beta), scale=scale)
    if hasattr(model, "ordered"):
        # Modes that differ by the order of interchangeable parts are one.
        fit = grid_modes(model, sample, model.ordered(fit.thetas), np.full(len(names), beta), scale=scale)
    values = _log_posteriors(model, fit)
    counts = np.zeros(len(names))
    if hasattr(model, "log_temperature"):
        # To the third digit: rounding shall not decide between starts that led to the same mode.
        counts = np.round([explained(model, sample, theta) for theta in fit.thetas], 3)
    # A start that did not converge is taken only if none did.
    best = max(range(len(names)), key=lambda k: (bool(fit.converged[k]), counts[k], values[k]))
    return Found(fit.thetas[best], names[best], _rivals(model, sample, fit, best, beta))


def _only_mode(
    model: Model, sample: ArraySource, few: ArraySource, start: Float[np.ndarray, " p"], scale: float, rough: float
) -> Found | None:
    """Return the mode without β of a concave model; None where the search is lost, or a row is at the floor."""
    near = grid_modes(model, few, start[None], np.zeros(1), scale=rough).thetas
    fit = grid_modes(model, sample, near, np.zeros(1), scale=scale)
    if not fit.converged[0] or fit.likelihood.value[0] / scale <= FLOOR:
        return None
    return Found(fit.thetas[0], "prior", ())


def _rungs(model: Model, core: ArraySource, classical: Float[np.ndarray, " p"], beta: float) -> list[float]:
    """Return the β of the ladder from the first on that asks for more than the classical mode; the last is always one.

    A β smaller than a small share of one over the largest log-likelihood changes no row's.
    """
    if beta == 0:
        return []
    most = np.abs(collect(core, _heights, model, classical.astype(np.float32)))[core.weights > 0].max(initial=0.0)
    return [beta * share for share in LADDER if share == LADDER[-1] or not beta * share * most <= NO_CHANGE]


@jax.jit
def _heights(rows: Rows, model: Model, theta: Array) -> Float[Array, " n"]:
    return likelihoods(model, theta[None], rows, None)[:, 0]


def _prior_mean(model: Model, p: int) -> Any:
    if hasattr(model, "prior_mean"):
        return model.prior_mean(p)
    return model.prior.mean_vector(p) if hasattr(model, "prior") else np.zeros(p)


def explained(model: Model, sample: ArraySource, theta: Float[np.ndarray, " p"]) -> float:
    """Return the share of rows that a parameter explains, no row counting for more than one."""
    scores = row_scores(model, sample, theta, default_score_beta(model, len(sample.columns)))
    total = float(sample.weights.sum())
    return float(np.minimum(scores, 1.0) @ sample.weights) / total if total > 0 else 0.0


def nearer(model: Model, larger: ArraySource, rows: int, founds: list[Found], betas: list[float]) -> list[Found]:
    """Return modes over a sample, each of its β, made modes over a larger one of so many rows."""
    starts = np.stack([found.theta for found in founds])
    fit = grid_modes(model, larger, starts, np.array(betas), scale=rows / larger.row_count)
    return [found._replace(theta=theta) for found, theta in zip(founds, fit.thetas, strict=True)]


def polished(model: Model, source: Source, founds: list[Found], betas: list[float]) -> list[Pilot]:
    """Return modes over a sample, each of its β, made modes over all rows; they share every pass."""
    tolerance = last_step_tolerance(source.row_count)
    fit = grid_modes(model, source, np.stack([found.theta for found in founds]), np.array(betas), tolerance=tolerance)
    values = _log_posteriors(model, fit)
    return [
        Pilot(
            fit.thetas[k],
            fit.looked_at[k],
            Derivatives(*(part[k] for part in fit.likelihood)),
            float(values[k]),
            bool(fit.converged[k]),
            found.start,
            found.rivals,
        )
        for k, found in enumerate(founds)
    ]


def curvature(model: Model, found: Pilot) -> Float[np.ndarray, "p p"]:
    """Return the negative Hessian of the log-posterior over all rows at the mode."""
    return -(found.likelihood.hessian + priors_at(model, found.looked_at[None]).hessian[0])


def approximation(model: Model, found: Pilot) -> Gaussian:
    """Return the Laplace approximation of the β-posterior over all rows."""
    precision = curvature(model, found)
    try:
        scale, factor = scaled_cholesky(precision)
        factor = scale[:, None] * factor
    except np.linalg.LinAlgError:
        factor, _ = _factorise(np.asarray(precision, np.float32), np.float32(1e-6))
    return Gaussian(*(jnp.asarray(np.asarray(part, np.float32)) for part in (found.theta, factor)))


_factorise = jax.jit(factorise)


def _log_posteriors(model: Model, fit: GridFit) -> Float[np.ndarray, " k"]:
    return fit.likelihood.value + priors_at(model, fit.looked_at).value


def _rivals(model: Model, sample: ArraySource, fit: GridFit, best: int, beta: float) -> tuple[str, ...]:
    """Describe the other modes, each once, that explain nearly as many rows as the best."""
    # Clusters can be told apart in many ways that are modes, each explaining most rows.
    if beta == 0 or not has_power_integral(model) or hasattr(model, "ordered"):
        return ()
    apart = fit.thetas - fit.thetas[best]
    metric = -np.asarray(fit.likelihood.hessian[best])
    distances = np.sqrt(np.maximum(np.einsum("kp,pq,kq->k", apart, metric, apart), 0.0))
    far = np.flatnonzero(fit.converged & (distances > RIVAL_DISTANCE))
    if not far.size:
        return ()
    shares = {round(explained(model, sample, fit.thetas[k]), 2) for k in far}
    most = explained(model, sample, fit.thetas[best])
    return tuple(
        f"Another mode explains nearly as many rows as the one that was used ({share:.0%} against {most:.0%})."
        for share in sorted(shares, reverse=True)
        if share >= RIVAL_SHARE * most
    )


def _thinned(sample: ArraySource, parameters: int) -> ArraySource:
    """Return rows enough to tell the neighbourhoods of modes apart; the last steps are made on all of the sample."""
    stride = max(sample.row_count // max(ROUGH_ROWS, ROUGH_ROWS_A_PARAMETER * parameters), 1)
    return rows_of(sample, np.arange(0, sample.row_count, stride))


def _farthest(model: Model, sample: ArraySource) -> Float[np.ndarray, " n"]:
    """Return how far each row's farthest number is from its column's median, in scales of the column."""
    table = sample.x
    if model.response == "real" and sample.y is not None:
        table = np.column_stack([sample.x, sample.y])
    low, middle, high = quantiles(table, (0.01, 0.5, 0.99))
    away = np.abs(table - middle)
    # The spread of the central 98 % stands in where most cells of a column are equal, as with rare categories.
    scale = 1.5 * medians(away)
    scale = np.where(scale > 0, scale, (high - low) / 2)
    return (away / np.where(scale > 0, scale, 1.0)).max(axis=1)


def _within(sample: ArraySource, farthest: Float[np.ndarray, " n"], scales: float) -> ArraySource:
    """Return the rows whose every number is within so many scales, at least half of all, with the others at zero."""
    return sample.weighted(sample.weights * (farthest <= max(scales, float(medians(farthest)))))
