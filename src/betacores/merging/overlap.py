"""Rows that would count twice: summaries of one and the same run, and summaries that a merged one holds already.

A summary is known again by a fingerprint of its path: its rows, their numbers, and their weights after every iteration.
All sizes that one run gives have it in common, and it survives being stored. A merged summary keeps those of its sites.
That two tables have rows in common nobody can tell from their summaries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from betacores.coreset import Coreset

# Fingerprints that a merged summary keeps at most, so that a stream does not grow with its days.
MOST_KEPT = 1000


def fingerprint(coreset: Coreset) -> str | None:
    """Return what tells a run from others; None if it gave no rows, so that nothing can count twice."""
    path = coreset.path
    if not len(path.indices):
        return None
    found = hashlib.sha256()
    for part, kind in ((path.indices, np.int64), (path.weights, np.float64), (coreset.path_X, np.float64)):
        found.update(np.asarray(part, kind).tobytes())
    return found.hexdigest()[:16]


def held_by(coreset: Coreset) -> list[str]:
    """Return the fingerprints of a summary and of those it was merged from, without what was set aside."""
    own = fingerprint(coreset)
    found = [] if own is None else [own]
    for site in coreset.info.sites or ():
        # What older versions have stored does not tell.
        found += site.get("summaries", ()) if site["trust"] > 0 else ()
    return list(dict.fromkeys(found))[:MOST_KEPT]


def check_apart(coresets: Sequence[Coreset], names: Sequence[str]) -> None:
    """Refuse summaries that have a summary in common."""
    own, held = [fingerprint(coreset) for coreset in coresets], [set(held_by(coreset)) for coreset in coresets]
    for later in range(len(coresets)):
        for earlier in range(later):
            # One without rows has no fingerprint, and adds its number of rows all the same.
            same = coresets[earlier] is coresets[later]
            if not same and not held[earlier] & held[later]:
                continue
            one, other = names[earlier], names[later]
            if same or own[earlier] == own[later]:
                said = f"{one!r} and {other!r} are the same summary, at one size or two"
                remedy = "pass it once"
            elif own[later] in held[earlier]:
                said, remedy = f"{other!r} was merged into {one!r} already", f"leave {other!r} out"
            elif own[earlier] in held[later]:
                said, remedy = f"{one!r} was merged into {other!r} already", f"leave {one!r} out"
            else:
                said = f"{one!r} and {other!r} were merged from one and the same summary, among others"
                remedy = "merge the summaries themselves, each once"
            raise ValueError(f"coresets: {said}, whose rows would count twice; {remedy}.")
