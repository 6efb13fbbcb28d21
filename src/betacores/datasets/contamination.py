"""Dirt for clean tables: a known share of rows made wrong in one of several ways, and the truth about which.

====================  ============================================================================================
``paper``             the β-Cores paper's: in a random fraction of rows half of the columns, the same for all
                      rows, become N(0, 5²) noise; in another fraction, drawn independently, labels are flipped
``flips``             labels flipped in random rows
``structured-flips``  labels flipped in one region: the rows farthest along a random direction
``leverage``          a tight cluster of rows far off in every column, with the response the bulk would not
                      have there
``heavy-tails``       Cauchy noise, in robust scales of each column, added to every cell of random rows
``duplicates``        up to three dirty rows, repeated
``group``             one whole group made wrong: half of its columns noise, and its responses false
``response-shift``    real responses shifted up by ten robust scales
====================  ============================================================================================

A false response is the other label, or a real response shifted by ten robust scales.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from betacores.checks import check_choice, check_number, check_seed
from betacores.datasets.simulated import Dirty
from betacores.number_tables import read_table
from betacores.responses import read_response
from betacores.robust import robust_location_scale

# How far off, in robust scales, far-off cells and shifted responses lie.
FAR = 10.0
# The paper's noise, in units of its standardised columns.
NOISE = 5.0
TEMPLATES = 3
CORNERS = 8


class _Task(NamedTuple):
    """Copies to be made dirty in place, and what the schemes need to know of the clean table."""

    x: np.ndarray
    y: np.ndarray | None
    labels: np.ndarray | None
    groups: np.ndarray | None
    centre: np.ndarray
    scale: np.ndarray
    wanted: int
    random: np.random.Generator


def contaminate(x: Any, y: Any = None, *, scheme: str, fraction: float, seed: int, groups: Any = None) -> Dirty:
    """Return a dirty copy of a clean table, and which of its rows were made dirty.

    Parameters
    ----------
    x
        Table of numbers; it stays as it is.
    y
        Two labels of any kind, or real numbers; None if the table has no response. Labels keep their values.
    scheme
        One of `SCHEMES`; the module says what each does.
    fraction
        Share of rows, at least 0 and below 1: ``round(fraction * rows)`` rows become dirty. In ``"paper"`` that many
        get noise and, independently, that many a flipped label, so that up to twice as many are dirty. In ``"group"``
        the group whose share is nearest is chosen, and all of it becomes dirty.
    seed
        The same seed gives the same dirt.
    groups
        Each row's group; only for ``"group"``.
    """
    check_choice("scheme", scheme, SCHEMES)
    share = check_number("fraction", fraction, at_least=0, below=1)
    random = np.random.default_rng(check_seed(seed))
    table = np.array(read_table(x)[0])
    response = None if y is None else np.array(read_response(y, len(table)))
    labels = None if response is None else _labels(response)
    if response is not None and labels is None:
        response = _real(response)
    _check_needs(scheme, response, labels, groups)
    members = None if groups is None else _members(groups, len(table))
    count = round(share * len(table))
    task = _Task(table, response, labels, members, *robust_location_scale(table), count, random)
    outlier = np.zeros(len(table), bool)
    if count:
        outlier[SCHEMES[scheme](task)] = True
    return Dirty(table, response, outlier)


def _paper(task: _Task) -> np.ndarray:
    noisy, flipped = _some(task), _some(task)
    columns = _half(task)
    task.x[np.ix_(noisy, columns)] = task.random.normal(0, NOISE, (len(noisy), len(columns)))
    _falsify(task, flipped)
    return np.union1d(noisy, flipped)


def _flips(task: _Task) -> np.ndarray:
    rows = _some(task)
    _falsify(task, rows)
    return rows


def _structured_flips(task: _Task) -> np.ndarray:
    direction = task.random.normal(size=task.x.shape[1])
    along = ((task.x - task.centre) / task.scale) @ direction
    rows = np.argsort(-along, kind="stable")[: task.wanted]
    _falsify(task, rows)
    return rows


def _leverage(task: _Task) -> np.ndarray:
    rows = _some(task)
    corners = FAR * task.random.choice([-1.0, 1.0], (CORNERS, task.x.shape[1]))
    # Where the bulk is in two minds no response is wrong, so of a few corners the clearest is taken.
    corner = corners[0 if task.y is None else np.abs(_bulk_side(task, corners)).argmax()]
    _place(task, rows, corner + 0.1 * task.random.normal(size=(len(rows), len(corner))))
    return rows


def _heavy_tails(task: _Task) -> np.ndarray:
    rows = _some(task)
    task.x[rows] += task.scale * task.random.standard_cauchy((len(rows), task.x.shape[1]))
    return rows


def _duplicates(task: _Task) -> np.ndarray:
    rows = _some(task)
    shape = (TEMPLATES, task.x.shape[1])
    dirty = FAR * task.random.choice([-1.0, 1.0], shape) * task.random.uniform(0.5, 1.5, shape)
    which = np.arange(len(rows)) % TEMPLATES
    _place(task, rows, dirty[which], which)
    return rows


def _group(task: _Task) -> np.ndarray:
    assert task.groups is not None
    _, member = np.unique(task.groups, return_inverse=True)
    distance = np.abs(np.bincount(member) - task.wanted)
    chosen = task.random.choice(np.flatnonzero(distance == distance.min()))
    rows = np.flatnonzero(member == chosen)
    columns = _half(task)
    noise = task.random.normal(0, NOISE, (len(rows), len(columns)))
    task.x[np.ix_(rows, columns)] = task.centre[columns] + task.scale[columns] * noise
    if task.y is not None:
        _falsify(task, rows)
    return rows


SCHEMES: dict[str, Callable[[_Task], np.ndarray]] = {
    "paper": _paper,
    "flips": _flips,
    "structured-flips": _structured_flips,
    "leverage": _leverage,
    "heavy-tails": _heavy_tails,
    "duplicates": _duplicates,
    "group": _group,
    "response-shift": _flips,
}
_NEED_LABELS = ("paper", "flips", "structured-flips")


def _some(task: _Task) -> np.ndarray:
    return task.random.permutation(len(task.x))[: task.wanted]


def _half(task: _Task) -> np.ndarray:
    columns = task.x.shape[1]
    return task.random.permutation(columns)[: max(1, columns // 2)]


def _falsify(task: _Task, rows: np.ndarray) -> None:
    """Give rows the other label, or a shifted response."""
    assert task.y is not None
    if task.labels is not None:
        task.y[rows] = np.where(task.y[rows] == task.labels[0], task.labels[1], task.labels[0])
    else:
        task.y[rows] += FAR * robust_location_scale(task.y[:, None])[1]


def _place(task: _Task, rows: np.ndarray, cells: np.ndarray, which: np.ndarray | None = None) -> None:
    """Put rows at places given in robust scales, with the response the bulk would not have there."""
    if task.y is not None:
        expected = _bulk_side(task, cells)
        if task.labels is not None:
            task.y[rows] = np.where(expected > 0, task.labels[0], task.labels[1])
        else:
            centre, scale = (float(part[0]) for part in robust_location_scale(task.y[:, None]))
            # Copies of one row share their response; the rows of a cluster do not.
            jitter = 0.1 * task.random.normal(size=len(rows)) if which is None else 0.0
            task.y[rows] = centre + scale * (jitter - FAR * np.where(expected > 0, 1.0, -1.0))
    task.x[rows] = task.centre + task.scale * cells


def _bulk_side(task: _Task, cells: np.ndarray) -> np.ndarray:
    """Return on which side of its middle a straight line through the clean rows expects the response."""
    assert task.y is not None
    standard = (task.x - task.centre) / task.scale
    y = (task.y == task.labels[1]).astype(float) if task.labels is not None else task.y
    standard -= standard.mean(0)
    gram = standard.T @ standard
    # A little ridge, since one-hot columns add up to one and leave the line open.
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) / len(gram) + 1e-12
    return cells @ np.linalg.solve(gram, standard.T @ (y - y.mean()))


def _labels(y: np.ndarray) -> np.ndarray | None:
    """Return the two labels, or None if there are not two values."""
    if y.dtype.kind in "iubf":
        values = np.unique(y)
    else:
        # By first appearance: labels of different types cannot be sorted, and a set has no fixed order.
        values = np.array(list(dict.fromkeys(y.tolist())), y.dtype)
    return values if len(values) == 2 else None


def _real(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind in "iuf":
        return y.astype(np.float64)
    raise ValueError(f"y: expected two labels or real numbers, got {len(set(y.tolist()))} values such as {y[0]!r}.")


def _members(groups: Any, rows: int) -> np.ndarray:
    members = np.asarray(groups)
    if members.shape != (rows,):
        raise ValueError(f"groups: expected the group of each of the {rows} rows of x, got shape {members.shape}.")
    return members


def _check_needs(scheme: str, y: np.ndarray | None, labels: np.ndarray | None, groups: Any) -> None:
    if scheme in _NEED_LABELS and labels is None:
        received = "no response" if y is None else f"{len(np.unique(y))} values"
        remedy = "pass y, or choose 'heavy-tails'" if y is None else "choose 'response-shift' for a real response"
        raise ValueError(f"y: the scheme {scheme!r} flips labels and needs two of them, got {received}; {remedy}.")
    if scheme == "response-shift" and (y is None or labels is not None):
        received = "no response" if y is None else "two labels"
        remedy = "pass y, or choose 'heavy-tails'" if y is None else "choose 'flips' for labels"
        raise ValueError(f"y: the scheme 'response-shift' needs a real response, got {received}; {remedy}.")
    if scheme == "group" and groups is None:
        raise ValueError("groups: the scheme 'group' needs each row's group, got none; pass groups, one a row.")
    if scheme != "group" and groups is not None:
        raise ValueError(f"groups: the scheme {scheme!r} has no use for groups; leave them out, or choose 'group'.")
