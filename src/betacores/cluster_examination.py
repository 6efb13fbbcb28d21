"""The first look at a table on a cluster: what its partitions say of themselves, put together and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betacores.examination import Encoding, Findings, check_size, settle, wanted_response
from betacores.inputs import Problem
from betacores.responses import MOST_LABELS
from betacores.samples import large_sample
from betacores.sources.choice import choose
from betacores.sources.cluster import nothing

if TYPE_CHECKING:
    import jax

    from betacores.models import Model
    from betacores.sources.dask_tables import DaskTable


def examined_on_cluster(table: DaskTable, model: str | Model, key: jax.Array) -> Problem:
    """Return the problem of a table on a cluster.

    Parameters
    ----------
    table
        The table, whose partitions have been looked at.
    model
        The model, its name, or ``"auto"``.
    key
        Decides which rows the sample is of.
    """
    check_size(table.row_count, table.columns)
    _check_partitions(table, wanted_response(model))
    settled = settle(table.columns, _together(table), model)
    source = table.source(Encoding(settled.labels))
    ids = large_sample(key, source.row_count, len(source.columns))
    source.known = choose(source, nothing, (), ids).asked
    settled.model.check(source.known.rows)
    return Problem(settled.model, source, None, None, settled.labels, settled.notes)


def _check_partitions(table: DaskTable, response: str) -> None:
    for k, found in enumerate(table.found):
        if found.bad is not None:
            row, column, value = found.bad
            raise ValueError(
                f"data: partition {k}, row {row}, column {table.columns[column]!r} is {value}; drop or fill such cells."
            )
        if found.missing is not None:
            raise ValueError(f"y: partition {k}, row {found.missing} is missing or not finite; drop or fill it.")
        least = min((value for value in found.values or [] if not found.words), default=1.0)
        if (response == "count" and (least < 0 or not found.whole)) or (response == "positive" and least <= 0):
            expected = "counts: whole numbers, 0 or more" if response == "count" else "numbers above 0"
            raise ValueError(f"y: expected {expected}; partition {k} holds others. Drop them, or choose another model.")


def _together(table: DaskTable) -> Findings:
    parts = [found for found in table.found if found.rows]
    values: np.ndarray | None = None
    if all(found.values is not None for found in parts):
        distinct = sorted({value for found in parts for value in found.values or []})
        values = np.array(distinct) if len(distinct) <= MOST_LABELS else None
    return Findings(
        np.min([found.low for found in parts], 0),
        np.max([found.high for found in parts], 0),
        values,
        any(found.words for found in parts) if table.has_response else None,
        sum(found.beyond for found in parts),
    )
