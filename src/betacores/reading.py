"""From what was handed in to a checked problem: tables in memory, and tables that stay where they are."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from betacores.device_examination import examined_on_device
from betacores.examination import check_held, examined
from betacores.groups import Groups, read_groups
from betacores.inputs import Problem, read_problem
from betacores.number_tables import is_frame
from betacores.opening import chosen_columns, is_dask, opened, stays
from betacores.origin import Origin
from betacores.responses import named_response
from betacores.sources.base import BLOCK_ROWS
from betacores.sources.device import on_accelerator

if TYPE_CHECKING:
    import jax

    from betacores.models import Model
    from betacores.sources.reader import Reader
    from betacores.sources.watch import Watch


class Table(NamedTuple):
    """What was handed in: the table or where it is, the response or its name, groups, and the weights of rows."""

    data: Any
    y: Any = None
    target: str | None = None
    groups: Any = None
    weights: Any = None
    columns: Any = None
    filter: Any = None


class Found(NamedTuple):
    """The problem, the groups if there are any, and the table itself if it is in memory."""

    problem: Problem
    grouping: Groups | None = None
    origin: Origin | None = None


def read(
    table: Table, model: str | Model, key: jax.Array, watch: Watch, *, streamed: bool, client: Any = None
) -> Found:
    """Return what a table is, after checking it.

    Parameters
    ----------
    table, model
        What was handed in.
    key
        Decides which rows of a table on disk are brought along as a sample.
    watch
        Is told of the first pass over such a table.
    streamed
        Whether rows can be left where they are; if not, they are read into memory.
    client
        The cluster of a table on one.
    """
    if is_dask(table.data):
        return Found(_on_cluster(table, model, key, watch, client, streamed))
    if on_accelerator(table.data) and streamed and table.weights is None and table.target is None:
        return Found(examined_on_device(table.data, table.y, model))
    if client is not None:
        raise ValueError("client: it is for Dask collections; leave it out, or pass one as data.")
    if not stays(table.data):
        for name, value in (("columns", table.columns), ("filter", table.filter)):
            if value is not None:
                raise ValueError(f"{name}: it is for files; choose the columns and rows of a table before.")
        if isinstance(table.y, (str, os.PathLike)):
            rows = f"{len(table.data)} rows" if hasattr(table.data, "__len__") else "rows"
            raise ValueError(
                f"y: expected one value for each of the {rows} of data, got {table.y!r}; name a column of data as "
                "target=..., or load the file, numpy.load(...)."
            )
        return _in_memory(table, model)
    reader = opened(table.data, table.y, table.target, table.columns, table.filter, table.groups)
    if streamed and table.weights is not None:
        raise ValueError("sample_weight: weights of rows are for tables in memory; read the file, or leave them out.")
    if table.filter is not None and reader.row_count < 2:
        raise ValueError(
            f"filter: at least two rows must pass it, got {reader.row_count} for {table.filter}; choose another, or "
            "leave it out."
        )
    if not streamed or reader.row_count <= BLOCK_ROWS:
        return _in_memory(_held(table, reader, model), model)
    watch.stage = "check"
    watch.begins(reader.row_count)
    problem = examined(reader, model, key, lambda rows, _: watch.saw(rows))
    watch.ends()
    return Found(problem)


def _on_cluster(table: Table, model: str | Model, key: jax.Array, watch: Watch, client: Any, streamed: bool) -> Problem:
    from betacores.cluster_examination import examined_on_cluster
    from betacores.sources.dask_tables import DaskTable

    if not streamed or table.weights is not None or table.filter is not None:
        raise ValueError(
            "data: on a cluster, method='pursuit' or 'uniform' chooses single rows of equal weight, without groups and "
            "with guard='auto' or None; filter the collection itself, or bring it here with data.compute()."
        )
    watch.stage = "check"
    watch.begins(0)
    columns = chosen_columns(table.columns, table.target) if hasattr(table.data, "columns") else table.columns
    found = DaskTable(client, table.data, table.y, table.target, columns)
    problem = examined_on_cluster(found, model, key)
    watch.ends()
    return problem


def _held(table: Table, reader: Reader, model: str | Model) -> Table:
    """Return a table on disk as one in memory, its cells checked while it is known where they are from."""
    held = reader.table()
    check_held(reader, held, model)
    if isinstance(held, tuple):
        return table._replace(data=held[0], y=held[1])
    return table._replace(data=held)


def _in_memory(table: Table, model: str | Model) -> Found:
    frame, groups = table.data, table.groups
    data, y, target = named_response(frame, table.y, table.target, groups)
    grouping = None
    if groups is not None:
        grouping, data = read_groups(groups, data, len(data))
    problem = read_problem(data, y, model, table.weights)
    _check_counted_labels(problem)
    origin = Origin(problem.x, problem.y, target=target)
    if is_frame(frame):
        origin = replace(origin, frame=frame, sources=list(problem.source.columns))
    return Found(problem, grouping, origin)


def _check_counted_labels(problem: Problem) -> None:
    if problem.labels is None or problem.y is None:
        return
    counted = problem.y[problem.source.weights > 0]
    if (counted == counted[0]).all():
        raise ValueError("sample_weight: the rows that count are all of one class; rows of both classes are needed.")
