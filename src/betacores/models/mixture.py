"""Mixture of K Gaussians with independent columns: `m(x) = Σ_k π_k N(x; μ_k, diag σ_k²)`, `π = softmax`.

The power integral has a closed form for whole β only. Of `m^(1+β) = Σ_k π_k N_k m^β` every part is an expectation over
one component, and the nodes `ξ_q` of one rule for the standard normal serve them all,

    I(β) ≈ R(β) = Σ_k Σ_q π_k ω_q m(μ_k + σ_k ξ_q)^β,     log I(β) := log R(β) + β [log I(1) − log R(1)],

corrected by `I(1) = Σ_kl π_k π_l N(μ_k − μ_l; 0, σ_k² + σ_l²)`, which is exact: so is the result at β = 0 and β = 1.
In one column the nodes are equidistant, which converges exponentially for smooth integrands (relative error below 1e−6
while the narrowest component has at least a fifth of the widest one's scale), in two they are a square lattice (1e−4,
half); in more, a lattice of `LATTICE` points and their mirrors (about 1e−2). For β ≤ 1 the truth is always between

    Σ_k π_k^(1+β) ∫ N_k^(1+β)   and   Σ_k π_k (Σ_l π_l N(μ_k − μ_l; 0, σ_k² + σ_l²))^β,

the first since powers above one are superadditive, the second by Jensen's inequality: `integral_bounds`.

The posterior is the same for every order of the components. The search for its mode starts with them in the order of
their means in the first column, and draws around the mode stay there; `ordered` puts any draw in that order. Unknown
scales ask for a typical one, the share of clean rows and a proper prior: `betacores.models.scaled`. The prior keeps
components from collapsing onto single rows, too.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from betacores.models.base import Model, Rows
from betacores.models.gaussian import check_own_prior
from betacores.models.prior import GaussianPrior
from betacores.models.scaled import ESCAPE, clean_share, held

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# Cells farther from a component, in its scales, have the least likelihood there is.
FARTHEST = 1e5
# Nodes: equidistant to so many scales, so many in one column, in each of two, and in a lattice for more.
EDGE, LINE, SQUARE, LATTICE = 8.0, 241, 33, 512
# The default prior of a mean is so many typical standard deviations wide.
WIDTH = 3.0
# The search for a start: rows looked at, runs and steps of each, and the shares of the rows that are kept.
SEARCH_ROWS, STARTS, STEPS, KEPT_SHARES, GAMMA = 3000, 20, 15, (0.97, 0.85, 0.7), 0.5


class Components(NamedTuple):
    """Log-weights (K), means (K, d) and log-scales (K, d)."""

    log_weight: Any
    mean: Any
    log_scale: Any


@final
class GaussianMixture(Model):
    """Rows from a few Gaussian clusters with independent columns.

    Parameters
    ----------
    components
        How many.
    prior
        Prior of all parameters: log-odds of the components against the first, means and logarithms of the standard
        deviations, component by component. If not given, independent: N(0, 1) for log-odds, N(m, (3 s)²) for a mean,
        N(log s, 1) for the logarithm of a standard deviation, with the typical location m and scale s of the column.
    clean
        The share of clean rows, for which `summarize` has an estimate too; see `betacores.clean_share`.
    """

    name: ClassVar[str] = "gaussian-mixture"

    def __init__(
        self, components: int = 2, prior: GaussianPrior | None = None, clean: float | Literal["auto"] = "auto"
    ):
        if isinstance(components, bool) or not isinstance(components, (int, np.integer)) or components < 1:
            raise ValueError(f"components: expected a whole number, 1 or more, got {components!r}.")
        self.components = int(components)
        self.own_prior = prior
        self.clean = clean_share(clean)
        self.settles = True
        # Location and scale of each column, and a typical parameter.
        self.centre: Any = 0.0
        self.spread: Any = 1.0
        self.typical: Any = 0.0

    def parameter_count(self, columns: int) -> int:
        """Log-odds, means and scales."""
        return self.components - 1 + 2 * self.components * columns

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Parameters carry the number of the component and the column's name."""
        odds = [f"log_odds {k}" for k in range(1, self.components)]
        pairs = list(itertools.product(range(self.components), columns))
        return [*odds, *(f"mean {k} {c}" for k, c in pairs), *(f"log_scale {k} {c}" for k, c in pairs)]

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Check that the prior is one for these columns."""
        del labels
        check_own_prior(self.own_prior, self.parameter_count(len(columns)))
        return self

    def settled(self, rows: Rows) -> Model:
        """Return the model with the columns' units and typical components taken from dirty rows."""
        if not self.settles:
            return self
        from betacores.robust import robust_location_scale

        centre, spread = robust_location_scale(rows.x)
        return self.replaced(centre=centre, spread=spread, typical=self.robust_start(rows), settles=False)

    def parts(self, theta: Float[Array, " p"], columns: int) -> Components:
        """Return the components."""
        odds, means, scales = jnp.split(theta, [self.components - 1, self.components * (columns + 1) - 1])
        shape, middle = (self.components, columns), jnp.log(self.spread)
        log_scale = held(scales.reshape(shape), middle)
        log_weight = jax.nn.log_softmax(jnp.concatenate([jnp.zeros(1, theta.dtype), odds]))
        return Components(log_weight, means.reshape(shape), log_scale)

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-density of one row."""
        return _log_density(self.parts(theta, row.x.shape[-1]), row.x)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the power integral, the same for every row."""
        return jnp.exp(self.log_power_integral(theta, row, beta))

    def log_power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral."""
        return _log_integral(self.parts(theta, row.x.shape[-1]), beta)

    def log_reference(self, columns: int, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return the log of the power integral for typical components."""
        typical = jnp.asarray(self.typical, jnp.result_type(float))
        return _log_integral(self.parts(jnp.broadcast_to(typical, (self.parameter_count(columns),)), columns), beta)

    def integral_bounds(self, theta: Float[Array, " p"], columns: int, beta: float) -> tuple[Array, Array]:
        """Return a lower and an upper bound of the power integral, for β at most 1."""
        log_weight, mean, log_scale = self.parts(theta, columns)
        log_norm = log_scale.sum(1) + 0.5 * columns * jnp.log(2 * jnp.pi)
        own = (1 + beta) * log_weight - beta * log_norm - 0.5 * columns * jnp.log1p(beta)
        others = jax.nn.logsumexp(_log_overlaps(Components(log_weight, mean, log_scale)), axis=1)
        return jnp.exp(jax.nn.logsumexp(own)), jnp.exp(jax.nn.logsumexp(log_weight + beta * others))

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior."""
        if self.own_prior is not None:
            return self.own_prior.log_density(theta)
        means = self.components * self._columns(theta.shape[-1])
        units = jnp.concatenate(
            [jnp.ones(self.components - 1), WIDTH * self._tiled(self.spread, means), jnp.ones(means)]
        )
        return -0.5 * (((theta - self._prior_centre(theta.shape[-1])) / units) ** 2).sum()

    def prior_mean(self, parameters: int) -> Float[Array, " p"]:
        """Return where the prior is centred, with the components apart: all in one place they would stay there."""
        middle = self._prior_centre(parameters) if self.own_prior is None else self.own_prior.mean_vector(parameters)
        columns = self._columns(parameters)
        apart = jnp.linspace(-1.0, 1.0, self.components)[:, None] * jnp.broadcast_to(self.spread, (columns,))
        first = self.components - 1
        return middle.at[first : first + self.components * columns].add(apart.ravel())

    def first_guess(self, columns: int) -> Float[Array, " p"]:
        """Begin at the typical components."""
        return self.prior_mean(self.parameter_count(columns)) if np.ndim(self.typical) == 0 else self.typical

    def robust_start(self, rows: Rows) -> Float[np.ndarray, " p"]:
        """Start from clusters of most rows, those nearest to their centres."""
        return _clustered(np.asarray(rows.x, np.float64), self.components)

    def escaped(self, thetas: Float[np.ndarray, "s p"]) -> np.ndarray:
        """Tell the parameters with a standard deviation so large that no row counts."""
        thetas = np.asarray(thetas)
        columns = self._columns(thetas.shape[-1])
        log_scale = thetas[:, -self.components * columns :].reshape(len(thetas), self.components, columns)
        return np.any(log_scale > np.log(np.asarray(self.spread)) + ESCAPE, axis=(1, 2))

    def ordered(self, thetas: Float[np.ndarray, "s p"]) -> Float[np.ndarray, "s p"]:
        """Return draws with the components in the order of their means in the first column."""
        thetas = np.asarray(thetas)
        columns, k = self._columns(thetas.shape[-1]), self.components
        odds = np.column_stack([np.zeros(len(thetas)), thetas[:, : k - 1]])
        means, scales = (part.reshape(-1, k, columns) for part in np.split(thetas[:, k - 1 :], 2, axis=1))
        order = np.argsort(means[:, :, 0], axis=1, kind="stable")
        odds = np.take_along_axis(odds, order, 1)
        means, scales = (np.take_along_axis(part, order[:, :, None], 1) for part in (means, scales))
        flat = (part.reshape(len(thetas), -1) for part in (means, scales))
        return np.concatenate([odds[:, 1:] - odds[:, :1], *flat], axis=1)

    def _prior_centre(self, parameters: int) -> Float[Array, " p"]:
        means = self.components * self._columns(parameters)
        parts = [jnp.zeros(self.components - 1), self._tiled(self.centre, means)]
        return jnp.concatenate([*parts, self._tiled(jnp.log(self.spread), means)])

    def _tiled(self, values: Any, count: int) -> Float[Array, " count"]:
        return jnp.broadcast_to(values, (self.components, count // self.components)).ravel()

    def _columns(self, parameters: int) -> int:
        return (parameters - self.components + 1) // (2 * self.components)


def _log_density(parts: Components, x: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    log_weight, mean, log_scale = parts
    away = jnp.clip((x[..., None, :] - mean) * jnp.exp(-log_scale), -FARTHEST, FARTHEST)
    norm = log_scale.sum(-1) + 0.5 * mean.shape[-1] * jnp.log(2 * jnp.pi)
    return jax.nn.logsumexp(log_weight - 0.5 * (away**2).sum(-1) - norm, axis=-1)


def _log_overlaps(parts: Components) -> Float[Array, "k k"]:
    """Return `log(π_l ∫ N_k N_l)`, k down."""
    log_weight, mean, log_scale = parts
    log_variance = jnp.logaddexp(2 * log_scale[:, None], 2 * log_scale)
    square = (mean[:, None] - mean) ** 2 * jnp.exp(-log_variance)
    return log_weight - 0.5 * (jnp.minimum(square, FARTHEST**2) + log_variance + jnp.log(2 * jnp.pi)).sum(-1)


def _log_integral(parts: Components, beta: Float[Array, ""]) -> Float[Array, ""]:
    nodes, log_nodes = _rule(parts.mean.shape[-1])
    nodes, log_nodes = nodes.astype(parts.mean.dtype), log_nodes.astype(parts.mean.dtype)
    at = parts.mean[:, None] + jnp.exp(parts.log_scale)[:, None] * nodes
    log_density, log_share = _log_density(parts, at), parts.log_weight[:, None] + log_nodes

    def rule(power: Any) -> Float[Array, ""]:
        return jax.nn.logsumexp(log_share + power * log_density)

    exact = jax.nn.logsumexp(parts.log_weight[:, None] + _log_overlaps(parts))
    return rule(beta) + beta * (exact - rule(1.0))


@functools.cache
def _rule(columns: int) -> tuple[Float[np.ndarray, "q d"], Float[np.ndarray, " q"]]:
    """Return nodes for the standard normal, and the logarithms of their weights."""
    if columns <= 2:
        line = np.linspace(-EDGE, EDGE, LINE if columns == 1 else SQUARE)
        nodes = np.stack(np.meshgrid(*[line] * columns, indexing="ij"), axis=-1).reshape(-1, columns)
        nodes = nodes[(nodes**2).sum(1) <= EDGE**2]
        log_weights = -0.5 * (nodes**2).sum(1)
    else:
        # The lattice of the generalised golden ratio, the solution of `g^(d+1) = g + 1`.
        golden = 1.5
        for _ in range(60):
            golden = (1 + golden) ** (1 / (columns + 1))
        shifts = golden ** -np.arange(1.0, columns + 1)
        points = special.ndtri((0.5 + np.arange(1, LATTICE + 1)[:, None] * shifts) % 1.0)
        nodes = np.concatenate([points, -points])
        log_weights = np.zeros(len(nodes))
    return nodes, log_weights - special.logsumexp(log_weights)


def _clustered(x: Float[np.ndarray, "n d"], count: int) -> Float[np.ndarray, " p"]:
    """Return the components of trimmed k-means, in order of the first column.

    A cluster of few rows is a component or dirt, depending on how many are trimmed: of several shares that with the
    smallest γ-divergence is taken, `log I(γ) / (1+γ) − log mean(m(x)^γ) / γ`.
    """
    from betacores.robust import robust_location_scale

    x = x[:: max(len(x) // SEARCH_ROWS, 1)]
    centre, unit = robust_location_scale(x)
    u = np.clip((x - centre) / unit, -FARTHEST, FARTHEST)
    found = [_trimmed(u, count, max(int(share * len(u)), min(count, len(u)))) for share in KEPT_SHARES]
    log_weight, means, log_scale = min(found, key=lambda parts: _divergence(parts, u))
    flat = ((centre + unit * means).ravel(), (log_scale + np.log(unit)).ravel())
    return np.concatenate([log_weight[1:] - log_weight[0], *flat])


def _trimmed(u: Float[np.ndarray, "n d"], count: int, kept: int) -> Components:
    """Return the best of several runs of k-means on so many rows as are nearest to a centre."""
    rng = np.random.default_rng(0)
    best, best_cost = u[:count], np.inf
    for _ in range(STARTS):
        means = u[rng.choice(len(u), count, replace=len(u) < count)]
        for _ in range(STEPS):
            own, near, cost = _assigned(u, means, kept)
            members = [near & (own == k) for k in range(count)]
            means = np.stack([u[m].mean(0) if m.any() else means[k] for k, m in enumerate(members)])
        if cost < best_cost:
            best, best_cost = means, cost
    best = best[np.argsort(best[:, 0], kind="stable")]
    own, near, _ = _assigned(u, best, kept)
    members = [near & (own == k) for k in range(count)]
    sizes = np.array([m.sum() + 1.0 for m in members])
    spread = [u[m].std(0) if m.sum() > u.shape[1] + 5 else np.ones(u.shape[1]) for m in members]
    return Components(np.log(sizes / sizes.sum()), best, np.log(np.maximum(np.stack(spread), 1e-2)))


def _assigned(u: np.ndarray, means: np.ndarray, kept: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return every row's nearest centre, which rows are near to theirs, and the sum of their squared distances."""
    squares = np.square(u[:, None] - means).sum(-1)
    nearest = squares.min(1)
    near = nearest <= np.partition(nearest, kept - 1)[kept - 1]
    return squares.argmin(1), near, float(nearest[near].sum())


def _divergence(parts: Components, u: Float[np.ndarray, "n d"]) -> float:
    parts = Components(*(jnp.asarray(part, jnp.result_type(float)) for part in parts))
    powers = GAMMA * _log_density(parts, jnp.asarray(u, jnp.result_type(float)))
    mean = jax.nn.logsumexp(powers) - np.log(len(u))
    return float(_log_integral(parts, jnp.asarray(GAMMA)) / (1 + GAMMA) - mean / GAMMA)
