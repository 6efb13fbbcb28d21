"""The merged coreset, put together from its path and the sites: rows, their numbers, and scores of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.constructions.path import Path
from betacores.coreset import Coreset
from betacores.inputs import encode_rows
from betacores.models import Rows
from betacores.scores import beliefs_over

if TYPE_CHECKING:
    from jaxtyping import Float


Interval = tuple[float, float]


class Scored(NamedTuple):
    """Scores and covariate scores of all rows, site after site, and the share of them that is not believed."""

    scores: np.ndarray
    covariates: np.ndarray | None
    contamination: float
    interval: Interval


def scores_of(coresets: Sequence[Coreset], trust: Float[np.ndarray, " sites"], keep: bool) -> Scored:
    """Return the scores of all rows, or for each the mean over all if they are not to be kept."""
    rows = np.array([coreset.row_count for coreset in coresets])
    if not keep:
        believed = [tau * (1.0 - coreset.contamination) for coreset, tau in zip(coresets, trust, strict=True)]
        mean = float(np.average(believed, weights=rows))
        # One number that looks like as many as there are rows, and takes the room of one.
        scores = np.broadcast_to(np.float32(mean), (int(rows.sum()),))
        return Scored(scores, None, 1.0 - mean, _interval(coresets, believed, trust))
    scores = np.concatenate(
        [
            np.asarray(coreset.scores) * np.asarray(tau, np.asarray(coreset.scores).dtype)
            for coreset, tau in zip(coresets, trust, strict=True)
        ]
    )
    covariates = None
    if any(coreset.covariate_scores is not None for coreset in coresets):
        covariates = np.concatenate(
            [
                np.ones(count, np.float32) if coreset.covariate_scores is None else np.asarray(coreset.covariate_scores)
                for coreset, count in zip(coresets, rows, strict=True)
            ]
        )
    whole = beliefs_over(scores, covariates)
    return Scored(scores, covariates, whole.contamination, whole.interval)


def _interval(coresets: Sequence[Coreset], believed: list[float], trust: Float[np.ndarray, " sites"]) -> Interval:
    """Return an interval for the share of all sites together, from theirs: errors of sites are independent."""
    share = np.array([coreset.row_count for coreset in coresets], float)
    share /= share.sum()
    halves = [tau * np.ptp(coreset.contamination_interval) / 2 for coreset, tau in zip(coresets, trust, strict=True)]
    centre, half = 1.0 - float(share @ believed), float(np.linalg.norm(share * halves))
    return float(np.clip(centre - half, 0.0, 1.0)), float(np.clip(centre + half, 0.0, 1.0))


def assembled(
    coresets: Sequence[Coreset],
    path: Path,
    scored: Scored,
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
        scores=scored.scores,
        covariate_scores=scored.covariates,
        contamination=scored.contamination,
        contamination_interval=scored.interval,
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
