"""What a person is told of the sites of a merge: a record for each, notes and warnings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.coreset import Coreset
from betacores.info import Info
from betacores.merging.overlap import held_by
from betacores.merging.trust import Judgement

if TYPE_CHECKING:
    from jaxtyping import Float

# A site trusted less is named.
DOUBTED = 0.9


def site_record(
    coreset: Coreset,
    name: str,
    place: int,
    trust: Float[np.ndarray, " sites"],
    believed: float,
    judged: Judgement | None,
) -> dict[str, Any]:
    """Return what there is to know of a site, in plain values."""
    estimate = coreset.info.kl_estimate
    return {
        "name": name,
        "rows": coreset.row_count,
        "kept": len(coreset),
        "believed": float(believed),
        "weight": float(coreset.weights.sum()),
        "trust": float(trust[place]),
        "distance": None if judged is None else float(judged.distance[place]),
        "chance": None if judged is None else float(judged.chance[place]),
        "contamination": float(coreset.contamination),
        "kl": None if estimate is None else float(estimate.value),
        "summaries": held_by(coreset),
    }


def say(
    info: Info,
    coresets: Sequence[Coreset],
    names: Sequence[str],
    judged: Judgement | None,
    believed: Float[np.ndarray, " sites"],
    advice: str = "",
) -> None:
    """Tell a person what became of the sites.

    Parameters
    ----------
    info
        Gets notes and warnings.
    coresets, names, judged
        The sites and their judgement, if they were judged.
    believed
        How many rows each stands for.
    advice
        What to add to the warning of sites that are set aside.
    """
    silent = [name for name, coreset in zip(names, coresets, strict=True) if not len(coreset)]
    speaking = [name for name in names if name not in silent]
    if silent:
        info.notes.append(f"sites: {_listed(silent)} hold no rows")
    if judged is None:
        return
    trust = judged.trust
    if not judged.agreed and len(speaking) == 2:
        info.warnings.append(
            f"The sites {_listed(speaking)} contradict each other beyond chance, and with two nobody can tell which is "
            "right: both were kept. Look at both, or say what you know, as by trust=[1, 0]."
        )
    elif not judged.agreed:
        info.warnings.append(
            "The sites differ by more than chance: no majority of them agrees. The merged posterior is that of their "
            "rows together and does not allow for such differences."
        )
    doubted = [place for place in np.argsort(trust, kind="stable") if trust[place] < DOUBTED]
    if doubted:
        share = 1 - float(trust @ believed) / float(believed.sum())
        told = [
            f"{names[k]!r} (trust {trust[k]:.2g}, {judged.distance[k]:.3g} standard deviations from the others where "
            f"chance makes at most {judged.chance[k]:.2g})"
            for k in doubted[:5]
        ]
        more = f" and {len(doubted) - 5} more" if len(doubted) > 5 else ""
        info.warnings.append(
            f"Sites that contradict the others count less or not at all: {', '.join(told)}{more}; {share:.1%} of the "
            f"believed rows were set aside.{advice}"
        )
    # A spread of not much more than what a site leaves open itself may be chance.
    telling = 2 * float(believed.mean()) ** -0.5
    info.notes.append(
        f"sites: {int((trust >= DOUBTED).sum())} of {len(names)} trusted"
        + (f", which differ by {judged.spread:.2g} beyond chance" if judged.spread > telling else "")
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
