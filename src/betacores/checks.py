"""Checks of single arguments: each returns the value, or says what was received, what was expected and what to do."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np


def check_seed(seed: Any) -> int:
    """Return a seed that random keys can be made of."""
    return int(check_number("seed", seed, at_least=0, below=2**32, whole=True))


def check_number(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> float | int:
    """Return a number that keeps to its bounds, or say which it breaks."""
    kind = numbers.Integral if whole else numbers.Real
    bounds = [f"at least {at_least:g}"] if at_least is not None else []
    bounds += [f"above {above:g}"] if above is not None else []
    bounds += [f"below {below:g}"] if below is not None else []
    expected = ("a whole number " if whole else "a finite number ") + " and ".join(bounds)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}: expected {expected.strip()}, got {value!r}.")
    number = float(value)
    inside = (
        math.isfinite(number)
        and (at_least is None or number >= at_least)
        and (above is None or number > above)
        and (below is None or number < below)
    )
    if not inside:
        raise ValueError(f"{name}: expected {expected.strip()}, got {value!r}.")
    return int(number) if whole else number


def check_rows(name: str, value: Any, rows: int) -> np.ndarray:
    """Return numbers of rows, each once and in the order given, or say which does not exist."""
    ids = np.asarray(value)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise TypeError(f"{name}: expected the numbers of rows, got {value!r}.")
    if ids.size and not (0 <= ids.min() and ids.max() < rows):
        wrong = ids.min() if ids.min() < 0 else ids.max()
        raise ValueError(f"{name}: rows are numbered from 0 to {rows - 1}, got {wrong}.")
    return ids[np.sort(np.unique(ids, return_index=True)[1])].astype(np.int64)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return one of the choices, or name the nearest."""
    choices = list(choices)
    if value in choices:
        return value
    near = difflib.get_close_matches(str(value), choices, n=1, cutoff=0.3)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"{name}: {value!r} is not known.{hint} Choose from: {', '.join(map(repr, choices))}.")
