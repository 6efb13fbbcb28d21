"""The merged coreset, put together from its path and the sites: rows, their numbers, and scores of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.constructions.path import Path
from betacores.coreset import Coreset
from betacores.inputs import encode_rows
from betacores.models import Rows
from betacores.scores import contamination

if TYPE_CHECKING:
    from jaxtyping import Float


def scores_of(
    coresets: Sequence[Coreset], trust: Float[np.ndarray, " sites"], keep: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return scores and covariate scores of all rows, site after site."""
    guarded = any(coreset.covariate_scores is not None for coreset in coresets)
    parts, covariates = [], []
    for coreset, tau in zip(coresets, trust, strict=True):
        scores = np.asarray(coreset.scores)
        parts.append(scores if tau == 1 else (scores * tau).astype(scores.dtype))
        if guarded:
            own = coreset.covariate_scores
            covariates.append(np.ones(len(scores), np.float32) if own is None else np.asarray(own))
    scores, trusted = np.concatenate(parts), np.concatenate(covariates) if guarded else None
    if keep:
        return scores, trusted
    # One number that looks like as many as there are rows, and takes the room of one.
    mean = scores.dtype.type(1.0 - contamination(scores, trusted))
    return np.broadcast_to(mean, scores.shape), None


def assembled(
    coresets: Sequence[Coreset],
    path: Path,
    scores: np.ndarray,
    covariates: np.ndarray | None,
    **what: Any,
) -> Coreset:
    """Return the coreset of a path over the rows of all sites."""
    first = coresets[0]
    offsets = np.cumsum([0, *(coreset.row_count for coreset in coresets[:-1])])
    numbers = [coreset.indices + offset for coreset, offset in zip(coresets, offsets, strict=True)]
    chosen = path.indices
    x, y = stacked(coresets)
    x, y = x[chosen], None if y is None else y[chosen]
    moved = any(coreset.path.points is not None for coreset in coresets)
    points: Rows | None = encode_rows(x, y, first.labels) if moved else None
    path = path._replace(indices=np.concatenate(numbers)[chosen].astype(np.int64), points=points)
    whole = Coreset(
        indices=path.indices,
        weights=path.weights[-1],
        X=x,
        y=y,
        scores=scores,
        covariate_scores=covariates,
        contamination=contamination(scores, covariates),
        method="merge",
        columns=list(first.columns),
        labels=first.labels,
        path=path,
        path_X=x,
        path_y=y,
        **what,
    )
    return whole.at(len(path.weights))


def stacked(coresets: Sequence[Coreset]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows of all sites, one below the other, and their responses."""
    responses = [coreset.y for coreset in coresets if coreset.y is not None]
    return np.concatenate([coreset.X for coreset in coresets]), np.concatenate(responses) if responses else None
