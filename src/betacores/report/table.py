"""The table as the person knows it: its own columns and cells, beside the numbers that the model was shown."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.coreset import Coreset
from betacores.number_tables import is_frame, read_table
from betacores.origin import Origin
from betacores.responses import read_response

if TYPE_CHECKING:
    from jaxtyping import Int

# Wider tables are shown in part.
FIRST_COLUMNS, MOST_COLUMNS = 12, 20


class Table:
    """Rows of a coreset's table, by the names and values they were handed in with."""

    def __init__(self, coreset: Coreset, origin: Origin):
        self.origin = origin
        self.row_count = coreset.row_count
        self._columns = coreset.columns
        self.sources = list(origin.sources) if self._frame is not None and origin.sources else list(coreset.columns)

    @cached_property
    def _frame(self) -> Any:
        import narwhals.stable.v2 as nw

        return None if self.origin.frame is None else nw.from_native(self.origin.frame, eager_only=True)

    @property
    def target(self) -> str:
        """What the response is called."""
        return self.origin.target or "response"

    @cached_property
    def names(self) -> list[str]:
        """The columns of the table, without the response."""
        if self._frame is None:
            return list(self._columns)
        names = [str(name) for name in self._frame.columns]
        return [name for name in names if self.origin.y is None or name != self.origin.target]

    def column(self, name: str) -> list[Any]:
        """Return all cells of a column."""
        return self.cells(name, np.arange(self.row_count))

    def cells(self, name: str, rows: Int[np.ndarray, " n"]) -> list[Any]:
        """Return some cells of a column."""
        if self._frame is None or name not in self._places:
            return self.origin.x[rows, self._columns.index(name)].tolist()
        series = self._frame[self._places[name]]
        return series[rows.tolist()].to_list() if len(rows) < len(series) else series.to_list()

    def responses(self, rows: Int[np.ndarray, " n"]) -> list[Any]:
        """Return some responses; nothing for models without."""
        return [] if self.origin.y is None else self.origin.y[rows].tolist()

    @cached_property
    def _places(self) -> dict[str, Any]:
        return {str(name): name for name in self._frame.columns}

    def shown(self, wanted: list[str]) -> list[str]:
        """Return the columns to show, in the table's order: the first ones, and those wanted most, first ones first."""
        first = set(self.names[:FIRST_COLUMNS])
        for name in wanted:
            if len(first) < MOST_COLUMNS and name in self._known:
                first.add(name)
        return [name for name in self.names if name in first]

    @cached_property
    def _known(self) -> set[str]:
        return set(self.names)


def origin_of(coreset: Coreset, data: Any, y: Any) -> Origin:
    """Return the table a coreset was made of: its own, or the one a person hands in for a coreset read from disk."""
    if data is None:
        if coreset.origin is None:
            what = (
                "a merged coreset does not hold the tables of its sites; pass them, one below the other in the order "
                "of coreset.info.sites: coreset.report(data)"
                if coreset.method == "merge"
                else "a coreset read from disk does not hold its table; pass the table it was made of, rows in the "
                "same order: coreset.report(data)"
            )
            raise ValueError(
                f"data: {what}" + ("" if coreset.y is None else ", with its response: report(data, y)") + "."
            )
        return coreset.origin
    if isinstance(data, Origin):
        return _checked(coreset, data)
    x, columns = read_table(_without_others(coreset, data))
    if coreset.columns != columns:
        missing = [name for name in coreset.columns if name not in columns]
        if missing:
            raise ValueError(
                f"data: the coreset has a column {missing[0]!r}, the table has not; pass the table it was made of."
            )
        x = x[:, [columns.index(name) for name in coreset.columns]]
    if y is None and coreset.y is not None:
        raise ValueError(f"y: the model {coreset.model.name!r} has a response; pass it too: report(data, y).")
    response = None if y is None or coreset.y is None else read_response(y, len(x))
    return _checked(coreset, Origin(x, response))


def _without_others(coreset: Coreset, data: Any) -> Any:
    """Return a frame without the columns that the coreset has not, the response say or what named groups."""
    if not is_frame(data):
        return data
    import narwhals.stable.v2 as nw

    frame = nw.from_native(data, eager_only=True)
    kept = [name for name in frame.columns if str(name) in coreset.columns]
    return frame.select(kept).to_native() if len(kept) == len(coreset.columns) else data


def _checked(coreset: Coreset, origin: Origin) -> Origin:
    if len(origin.x) != coreset.row_count:
        raise ValueError(
            f"data: the coreset was made of {coreset.row_count:,} rows, the table has {len(origin.x):,}; "
            "pass the table it was made of."
        )
    return origin
