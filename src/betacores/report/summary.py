"""The plain summary behind the page: every section as values that JSON can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from betacores.checks import check_number
from betacores.coreset import Coreset
from betacores.report.charts import histogram_section
from betacores.report.coefficients import coefficients_section, fits_of
from betacores.report.headline import headline_section
from betacores.report.picture import picture_section
from betacores.report.reasons import Reasons
from betacores.report.settings import settings_section
from betacores.report.suspicious import as_cell, cells_of, suspicious_rows, suspicious_section
from betacores.report.table import Table, origin_of
from betacores.report.words import cell, plain
from betacores.scores import beliefs

MOST_SUSPICIOUS, MOST_KEPT, MOST_GROUPS = 2000, 500, 500


def summary_of(
    coreset: Coreset, data: Any, y: Any, *, title: str | None, suspicious: int, command: str | None
) -> dict[str, Any]:
    """Return all that a report tells of a coreset."""
    check_number("suspicious", suspicious, at_least=0, below=MOST_SUSPICIOUS + 1, whole=True)
    table = Table(coreset, origin_of(coreset, data, y))
    believed = beliefs(coreset.scores, coreset.covariate_scores)
    marked = suspicious_rows(coreset, believed)
    fits = fits_of(coreset, table)
    reasons = Reasons(coreset, table, fits.scoring, believed)
    return plain(
        {
            "title": title or f"A table of {coreset.row_count:,} rows, and its coreset",
            "headline": headline_section(coreset),
            "suspicious": suspicious_section(coreset, table, reasons, believed, marked, int(suspicious)),
            "histogram": histogram_section(believed, marked),
            "kept": kept_section(coreset, table, believed),
            "coefficients": coefficients_section(coreset, table, fits),
            "groups": groups_section(coreset),
            "picture": picture_section(coreset, table, fits.scoring, believed, marked),
            "settings": settings_section(coreset, command),
        }
    )


def kept_section(coreset: Coreset, table: Table, believed: np.ndarray) -> dict[str, Any]:
    """Return the chosen rows with their weights, the heaviest first."""
    order = np.argsort(-coreset.weights, kind="stable")[:MOST_KEPT]
    rows = coreset.indices[order]
    columns = table.shown([])
    moved = coreset.path.points is not None
    if moved:
        # Points that have moved are no rows of the table.
        columns = coreset.columns[: len(columns)]
        cells = [[as_cell(value) for value in point[: len(columns)]] for point in coreset.X[order].tolist()]
    else:
        cells = cells_of(table, columns, rows)
    responses = [] if coreset.y is None else coreset.y[order].tolist()
    return {
        "total": len(coreset),
        "moved": moved,
        "target": table.target if responses else None,
        "columns": columns,
        "more_columns": (len(coreset.columns) if moved else len(table.names)) - len(columns),
        "rows": [
            {
                "row": int(row),
                "weight": float(coreset.weights[order[place]]),
                "belief": float(believed[row]),
                "response": as_cell(responses[place]) if responses else None,
                "cells": cells[place],
            }
            for place, row in enumerate(rows.tolist())
        ],
    }


def groups_section(coreset: Coreset) -> dict[str, Any] | None:
    """Return the groups, those kept first; None if there are none."""
    if coreset.grouping is None:
        return None
    records = coreset.group_records()

    def label(group: Any) -> str:
        return " · ".join(map(cell, group)) if isinstance(group, tuple) else cell(group)

    return {
        "total": len(records),
        "kept": sum(record["rank"] is not None for record in records),
        "rows": [{**record, "group": label(record["group"])} for record in records[:MOST_GROUPS]],
    }
