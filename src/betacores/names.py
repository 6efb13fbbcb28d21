"""Names of columns, made distinct."""

from __future__ import annotations


def distinct(names: list[str]) -> list[str]:
    """Return names made distinct by underscores; input columns may be called anything, even "weight"."""
    taken: set[str] = set()
    result = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        result.append(name)
    return result
