"""The rows of several summaries as one weighted table, and its sparse regression.

Rows of a summary are chosen and weighted, no sample of anything. So nothing here is estimated from how they are
scattered: no guard, no noise, no β, no screening. The posterior of the union, `∝ exp(Σ_s τ_s Σ_m w_sm g_sm) π0`, is
taken at its word, and pursuit looks for few rows with the same.

This is where merging meets the parts that `summarize` is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.constructions.path import Path
from betacores.constructions.pursuit import DEFAULTS, Settings, pursuit
from betacores.divergence import as_beta
from betacores.inputs import encode_rows
from betacores.merging.trust import RIDGE, Bowls
from betacores.models import Model, Rows
from betacores.pilot import Found, polished
from betacores.posteriors.derivatives import likelihood_derivatives, prior_derivatives
from betacores.posteriors.prior_units import in_prior_units
from betacores.posteriors.weighted import PAD_ROWS, padded, weighted_posterior
from betacores.quality import KLEstimate, kl_estimate
from betacores.randomness import split
from betacores.sampling import sample_of
from betacores.sources import ArraySource
from betacores.target import direct_target

if TYPE_CHECKING:
    from jaxtyping import Float, Int, PRNGKeyArray


class Union(NamedTuple):
    """The rows of all sites, one below the other, as the model takes them; ``site`` tells where each is from."""

    model: Model
    rows: Rows
    weights: Float[np.ndarray, " n"]
    site: Int[np.ndarray, " n"]
    readout: str
    beta: float

    def of(self, sites: Any) -> tuple[Rows, Float[np.ndarray, " m"]]:
        """Return the rows of some sites, and their weights."""
        some = np.isin(self.site, sites)
        return self._rows(some), self.weights[some]

    def weighted(self, trust: Float[np.ndarray, " sites"]) -> Union:
        """Return the same with weights multiplied by the trust in their sites."""
        return self._replace(weights=self.weights * trust[self.site])

    def mode(self, sites: Any = None) -> Float[np.ndarray, " p"]:
        """Return the mode of the posterior of all rows, or of those of some sites."""
        rows, weights = (self.rows, self.weights) if sites is None else self.of(sites)
        return np.asarray(weighted_posterior(self.model, rows, weights, as_beta(self.beta))[0].mean)

    def bowls(self, count: int, trust: Float[np.ndarray, " sites"] | None) -> Bowls:
        """Return the sites' log-likelihoods near the mode of those trusted, or near their own, as seen from there."""
        origin = self.mode() if trust is None else self.weighted(trust).mode()
        gradients, precisions = [], []
        for place in range(count):
            rows, weights = self.of(place)
            at = self.mode(place) if trust is None else origin
            held, held_weights = padded(rows, weights)
            found = _derivatives(self.model, at, held, held_weights, as_beta(self.beta))
            # Cells beyond single precision say nothing.
            gradient, hessian = (np.nan_to_num(np.asarray(part, np.float64), posinf=0, neginf=0) for part in found[1:])
            precision = _not_negative(-hessian)
            gradients.append(gradient - precision @ (origin.astype(np.float64) - at))
            precisions.append(precision)
        return Bowls(np.array(gradients), np.array(precisions))

    def ridge(self) -> Float[np.ndarray, " p"]:
        """Return how firmly directions that no site knows are held."""
        at = self.mode()
        held, weights = padded(self.rows, self.weights)
        known = -np.diagonal(_derivatives(self.model, at, held, weights, as_beta(self.beta)).hessian)
        prior = -np.diagonal(_prior(self.model, at).hessian)
        return np.maximum(RIDGE * prior, 1e-9 * np.maximum(known, 1.0)).astype(np.float64)

    def _rows(self, some: Any) -> Rows:
        return Rows(self.rows.x[some], None if self.rows.y is None else self.rows.y[some])


def union_of(
    model: Model,
    x: np.ndarray,
    y: np.ndarray | None,
    labels: np.ndarray | None,
    weights: Float[np.ndarray, " n"],
    site: Int[np.ndarray, " n"],
    readout: str,
    beta: float,
) -> Union:
    """Return rows as given, in the units of the prior, where single precision has digits enough."""
    posed = in_prior_units(model, x, y)
    return Union(posed.model, encode_rows(posed.x, posed.y, labels), weights, site, readout, beta)


def sparse_union(
    union: Union,
    key: PRNGKeyArray,
    size: int | None,
    settings: dict[str, Any],
    progress: Callable[[int, int], None] | None,
) -> tuple[Path, KLEstimate | None]:
    """Return few rows with the posterior of all, and the estimated divergence of theirs from it."""
    counted = np.flatnonzero(union.weights > 0)
    weights = union.weights[counted]
    source, eligible = _padded_source(union._rows(counted), weights)
    keys = split(key, 3)
    (found,) = polished(union.model, source, [Found(union.mode(), "merged", ())], [union.beta])
    target = direct_target(union.model, source, union.beta)
    if size is not None and len(counted) <= size:
        path = Path(np.arange(len(counted)), weights[None].astype(np.float64), (), {"remaining": [0.0]})
    else:
        path = pursuit(
            union.model,
            source,
            keys[0],
            ids=sample_of(keys[1], eligible, settings.get("candidates", DEFAULTS.candidates)),
            size=size,
            beta=union.beta,
            found=found,
            target=target,
            settings=Settings(readout=union.readout, **settings),
            progress=progress,
        )
    places, kept = path.at(len(path.weights))
    estimate = kl_estimate(union.model, target, source.take(places), kept, keys[2], read_beta=union.beta)
    known = estimate if np.isfinite(estimate).all() else None
    return path._replace(indices=counted[path.indices]), known


def _not_negative(precision: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """Return a precision without directions bent the wrong way, in units where its diagonal is one."""
    scale = np.sqrt(np.maximum(np.diagonal(precision), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(precision / scale / scale[:, None])
    return (vectors * np.maximum(values, 0.0)) @ vectors.T * scale * scale[:, None]


def _padded_source(rows: Rows, weights: Float[np.ndarray, " n"]) -> tuple[ArraySource, np.ndarray]:
    """Return rows and others that count nothing, and which are which: a length of its own would be compiled for."""
    missing = -len(weights) % PAD_ROWS
    x = np.pad(rows.x, ((0, missing), (0, 0)), mode="edge")
    y = None if rows.y is None else np.pad(rows.y, (0, missing), mode="edge")
    return ArraySource(x, y, None, np.pad(weights, (0, missing))), np.arange(len(x)) < len(weights)


_derivatives = jax.jit(likelihood_derivatives)
_prior = jax.jit(prior_derivatives)
