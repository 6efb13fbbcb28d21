"""Chosen rows as a pandas DataFrame: as the model saw them, or as the table was handed in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.names import distinct

if TYPE_CHECKING:
    import pandas

    from betacores.coreset import Coreset


def frame_of_rows(coreset: Coreset) -> pandas.DataFrame:
    """Return the chosen rows as the model saw them, with their weights, indexed by their numbers."""
    import pandas

    extra = [coreset.weights] if coreset.y is None else [coreset.weights, coreset.y]
    names = distinct([*coreset.columns, *(["weight", "y"][: len(extra)])])
    frame = pandas.DataFrame(coreset.X, index=pandas.Index(coreset.indices, name="row"))
    for column in extra:
        frame[frame.shape[1]] = column
    frame.columns = pandas.Index(names)
    return frame


def original_frame(coreset: Coreset) -> pandas.DataFrame:
    """Return the chosen rows of the table a coreset was made of, with their weights, indexed by their numbers."""
    import pandas

    origin = coreset.origin
    if origin is None:
        kept = (
            "the coreset was merged from others, which keep their tables; take rows coreset.indices of these, one "
            "below the other,"
            if coreset.method == "merge"
            else "the coreset was read from disk, and the table is not kept with it; take rows coreset.indices of the "
            "table"
        )
        raise ValueError(f"original: {kept} yourself.")
    if coreset.path.points is not None:
        raise ValueError(
            f"original: the points of method {coreset.method!r} are no rows of the table; use to_frame() without it."
        )
    if origin.frame is None:
        return coreset.to_frame()
    frame = _chosen(origin.frame, coreset.indices)
    taken = list(dict.fromkeys(str(name) for name in frame.columns))
    target = str(origin.target or "y")
    if origin.y is not None and (origin.target is None or target not in taken):
        frame[distinct([*taken, target])[-1]] = np.asarray(origin.y)[coreset.indices]
    frame[distinct([*dict.fromkeys([*taken, target]), "weight"])[-1]] = coreset.weights
    frame.index = pandas.Index(coreset.indices, name="row")
    return frame


def _chosen(table: Any, rows: np.ndarray) -> pandas.DataFrame:
    """Return rows of a pandas, polars or pyarrow table; names of rows that pandas keeps aside become a column."""
    import narwhals
    import pandas

    if not isinstance(table, pandas.DataFrame):
        return narwhals.from_native(table)[rows.tolist()].to_pandas()
    chosen = table.iloc[rows]
    if isinstance(table.index, pandas.RangeIndex):
        return chosen.reset_index(drop=True)
    return chosen.reset_index(allow_duplicates=True)
