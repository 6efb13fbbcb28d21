"""What a coreset says of itself in a console."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from betacores.coreset import Coreset


def described(coreset: Coreset) -> str:
    """Return a few lines: size, weights, contamination, quality, notes and warnings."""
    lines = [
        f"Coreset: {len(coreset):,} of {coreset.row_count:,} rows "
        f"(method {coreset.method!r}, model {coreset.model.name!r}, β = {coreset.beta:g})",
        f"  weights: total {coreset.weights.sum():,.1f}"
        + (f", from {coreset.weights.min():.3g} to {coreset.weights.max():.3g}" if len(coreset) else ""),
        f"  contamination: about {coreset.contamination:.1%} of the rows do not fit "
        + "(95 % interval {:.1%} to {:.1%})".format(*coreset.contamination_interval),
        *_quality(coreset),
        *(f"  {note}" for note in coreset.info.notes),
        *(f"  warning: {warning}" for warning in coreset.info.warnings),
    ]
    return "\n".join(lines)


def _quality(coreset: Coreset) -> list[str]:
    estimate = coreset.info.kl_estimate
    # The estimate is that of the whole coreset, not of an earlier point of its path.
    if estimate is None or not np.array_equal(coreset.weights, coreset.path.at(len(coreset.path.weights))[1]):
        return []
    if coreset.method == "merge":
        theirs = "unknown" if coreset.info.inherited_kl is None else f"{coreset.info.inherited_kl:.2g}"
        return [
            f"  quality: KL divergence to the posterior of the sites' rows about {estimate}; what these state of "
            f"themselves adds up to {theirs}"
        ]
    return [f"  quality: KL divergence to the β-posterior of all rows about {estimate}"]
