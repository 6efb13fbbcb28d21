"""The rows that fit least, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.coreset import Coreset
from betacores.report.reasons import DOUBT, Reasons, counted, in_words
from betacores.report.table import Table
from betacores.report.words import cell, is_missing, is_number, plain

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# So many are listed even if none is doubted.
FEWEST = 20


def suspicious_rows(coreset: Coreset, believed: Float[np.ndarray, " rows"]) -> Bool[np.ndarray, " rows"]:
    """Tell the rows to colour: as many as the contamination says there are, those believed least, if they are doubted.

    A fixed limit would not do: of clean rows, too, some are unlikely, and how many depends on the model.
    """
    many = round(coreset.contamination * len(believed))
    marked = np.zeros(len(believed), bool)
    if many:
        marked[np.argpartition(believed, many - 1)[:many]] = True
    return marked & (believed < DOUBT)


def least_believed(believed: np.ndarray, most: int) -> Int[np.ndarray, " n"]:
    """Return the rows to list, the least believed first: all that are doubted, up to so many."""
    shown = min(most, len(believed), max(FEWEST, int((believed < DOUBT).sum())))
    if not shown:
        return np.zeros(0, int)
    # Ties are in the order of rows, so that the same table gives the same list.
    limit = np.partition(believed, shown - 1)[shown - 1]
    rows = np.flatnonzero(believed <= limit)
    return rows[np.argsort(believed[rows], kind="stable")][:shown]


def suspicious_section(
    coreset: Coreset, table: Table, reasons: Reasons, believed: np.ndarray, marked: np.ndarray, most: int
) -> dict[str, Any]:
    """Return the least believed rows with reasons and cells."""
    rows = least_believed(believed, most)
    why = reasons.of(rows)
    blamed = counted(why)
    columns = table.shown([entry["column"] for entry in blamed])
    cells = cells_of(table, columns, rows)
    responses = table.responses(rows)
    return {
        "total": int(marked.sum()),
        "listed": len(rows),
        "target": table.target if responses else None,
        "columns": columns,
        "more_columns": len(table.names) - len(columns),
        "blamed": blamed[:8],
        "rows": [
            {
                "row": int(row),
                "belief": float(believed[row]),
                "marked": bool(marked[row]),
                "reasons": [{**reason, "text": in_words(reason)} for reason in why[place]],
                "odd": [name for name in {reason["column"] for reason in why[place]} if name is not None],
                "response": as_cell(responses[place]) if responses else None,
                "cells": cells[place],
            }
            for place, row in enumerate(rows.tolist())
        ],
    }


def cells_of(table: Table, columns: list[str], rows: Int[np.ndarray, " n"]) -> list[list[dict[str, Any]]]:
    """Return some rows' cells in some columns."""
    by_column = [[as_cell(value) for value in table.cells(name, rows)] for name in columns]
    return [list(cells) for cells in zip(*by_column, strict=True)] if by_column else [[] for _ in rows]


def as_cell(value: Any) -> dict[str, Any]:
    """Return a cell as text, with the number to sort by if it is one."""
    text = cell(value)
    if is_missing(value):
        return {"text": text, "missing": True}
    return {"text": text, "number": plain(float(value))} if is_number(value) else {"text": text}
