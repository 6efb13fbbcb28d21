"""All groups of a table side by side: which were kept, with which weight, and how dirty each is likely to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.groups import Groups

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def group_records(
    grouping: Groups,
    believed: Float[np.ndarray, " rows"],
    indices: Int[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
) -> list[dict[str, Any]]:
    """Return a dictionary for every group, those kept first, in order of selection, then the others by their scores.

    Parameters
    ----------
    grouping
        Which group every row belongs to.
    believed
        How far every row is believed.
    indices, weights
        The rows that were kept, in order of selection, and their weights.
    """
    kept = list(dict.fromkeys(grouping.codes[indices].tolist()))
    weight = np.bincount(grouping.codes[indices], weights, minlength=len(grouping)) / grouping.sizes
    score = grouping.means(believed)
    spread = np.sqrt(np.maximum(grouping.means(believed**2) - score**2, 0) / grouping.sizes)
    rank = {code: place + 1 for place, code in enumerate(kept)}
    order = [*kept, *(code for code in np.argsort(-score, kind="stable").tolist() if code not in rank)]
    return [
        {
            "group": grouping.labels[code],
            "rank": rank.get(code),
            "weight": float(weight[code]),
            "rows": int(grouping.sizes[code]),
            "score": float(score[code]),
            **{
                name: float(np.clip(1 - score[code] + shift * spread[code], 0, 1))
                for name, shift in (("contamination", 0.0), ("low", -1.96), ("high", 1.96))
            },
        }
        for code in order
    ]
