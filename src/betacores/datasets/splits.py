"""A data set split into training and test rows, and prepared.

Whatever is learned from the data (means, scales, levels of categories, principal components) is learned from the
training rows only.

``preparation="paper"``
    Numeric columns standardised by mean and standard deviation, categories one-hot, and for Adult, Phishing and
    Hospital Readmissions the first ten principal components of these. (The paper's published code then scales each
    component to unit variance, which the paper does not mention; that is left to the caller.)
``preparation="robust"``
    Numeric columns centred by the median and divided by a robust scale, columns of two values mapped to 0 and 1,
    categories one-hot, no components: far-off cells stay visible and do not move the other rows.

Columns that are constant in the training rows are dropped; a level that only test rows have is zero in all columns.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from betacores.checks import check_choice, check_seed
from betacores.datasets.files import arrays, column_names, read
from betacores.robust import robust_location_scale

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped

PathLike = str | os.PathLike[str] | None
PREPARATIONS = ("paper", "robust")
COMPONENTS = 10


class Split(NamedTuple):
    """Training and test rows, their responses, and the names of the columns."""

    x_train: Float[np.ndarray, "rows columns"]
    y_train: Shaped[np.ndarray, " rows"]
    x_test: Float[np.ndarray, "others columns"]
    y_test: Shaped[np.ndarray, " others"]
    columns: tuple[str, ...]


def check_settings(preparation: str, seed: int) -> None:
    """Check the settings that all data sets have."""
    check_choice("preparation", preparation, PREPARATIONS)
    check_seed(seed)


def random_tenth(
    name: str,
    target: str,
    preparation: str,
    seed: int,
    path: PathLike,
    numeric: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    flags: Sequence[str] = (),
    aside: int = 0,
) -> Split:
    """Return a data set of which a random tenth is for testing; by default all other columns are numeric."""
    check_settings(preparation, seed)
    if numeric is None:
        numeric = [column for column in column_names(name, path=path) if column != target]
    raw = arrays(read(name, path=path, columns=[*numeric, *categories, *flags, target]))
    rows = np.random.default_rng(seed).permutation(len(raw[target]))
    cut = len(rows) - len(rows) // 10
    y = raw[target].astype(np.float64)
    return prepare(raw, y, rows[: cut - aside], rows[cut:], preparation, numeric, categories, flags)


def prepare(
    raw: dict[str, np.ndarray],
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    preparation: str,
    numeric: Sequence[str] = (),
    categories: Sequence[str] = (),
    flags: Sequence[str] = (),
    components: int | None = None,
) -> Split:
    """Return the split, in which flags are columns that the paper's preparation leaves as they are."""
    names, parts = [*numeric, *flags], []
    for name in names:
        column = raw[name].astype(np.float64)
        if preparation == "robust" or name not in flags:
            centre, scale = _location_scale(column[train], preparation)
            column = (column - centre) / scale
        parts.append(column)
    for name in categories:
        for level in np.unique(raw[name][train]):
            names.append(f"{name}={level}")
            parts.append((raw[name] == level).astype(np.float64))
    varies = [bool((column[train] != column[train[0]]).any()) for column in parts]
    names = [name for name, kept in zip(names, varies, strict=True) if kept]
    parts = [part for part, kept in zip(parts, varies, strict=True) if kept]
    x_train, x_test = (np.column_stack([part[rows] for part in parts]) for rows in (train, test))
    if components is not None and preparation == "paper":
        x_train, x_test = _principal_components(x_train, x_test, components)
        names = [f"component {i + 1}" for i in range(x_train.shape[1])]
    return Split(x_train, y[train], x_test, y[test], tuple(names))


def balanced_rows(rows: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Return all rows of the rarer label and as many of the other, in their order."""
    few, many = sorted((rows[y[rows] == label] for label in (0, 1)), key=len)
    return np.sort(np.concatenate([few, np.random.default_rng(seed).permutation(many)[: len(few)]]))


def _location_scale(column: np.ndarray, preparation: str) -> tuple[float, float]:
    low, high = column.min(), column.max()
    if low == high:
        return low, 1.0
    if preparation == "paper":
        return column.mean(), column.std()
    if np.all((column == low) | (column == high)):
        return low, high - low
    centre, scale = robust_location_scale(column[:, None])
    return centre[0], scale[0]


def _principal_components(x_train: np.ndarray, x_test: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    mean = x_train.mean(0)
    _, vectors = np.linalg.eigh(np.cov(x_train, rowvar=False))
    axes = vectors[:, ::-1][:, :count]
    # An axis has no sign of its own; fixing it makes every machine return the same numbers.
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    return (x_train - mean) @ axes, (x_test - mean) @ axes
