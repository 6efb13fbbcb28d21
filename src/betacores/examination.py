"""The first look at a table that stays where it is: one pass that checks every cell and brings a sample of rows along.

What `inputs` finds of a table in memory is found here block by block: numbers that are not finite, columns that are
constant, the labels or the kind of the response, and what model that speaks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.inputs import Problem, bound_model, chosen_model
from betacores.models import Model
from betacores.number_tables import complain_of_constant
from betacores.responses import MOST_LABELS, check_few_labels, check_numbers, several_labels, two_labels
from betacores.samples import large_sample
from betacores.sources.base import LARGEST_CELL
from betacores.sources.cells import clipped, told_of_large_cells
from betacores.sources.crew import side_by_side
from betacores.sources.extremes import Extremes, extremes_of
from betacores.sources.files import FileSource
from betacores.sources.pool import Pool
from betacores.sources.reader import Cut, Raw, Reader, ahead, as_numpy, exactly
from betacores.sources.scratch import Scratch, scratch_for

if TYPE_CHECKING:
    import jax

# Of so few different values a block is compared with each.
FEW_VALUES = 8


class Findings(NamedTuple):
    """What the pass found of all rows.

    ``values`` are the response's different values, in order; None if there are many. ``words`` says whether they are
    words, None without a response. ``low`` and ``high`` are the extremes of the columns, ``beyond`` the number of cells
    that are too large.
    """

    low: np.ndarray
    high: np.ndarray
    values: np.ndarray | None
    words: bool | None
    beyond: int


class Settled(NamedTuple):
    """The model for the table, the labels of its response if it is one of labels, and what to say."""

    model: Model
    labels: np.ndarray | None
    notes: tuple[str, ...]


def settle(columns: list[str], found: Findings, model: str | Model) -> Settled:
    """Choose the model if that was left open, and check that it fits the table."""
    responds = found.words is not None
    many = MOST_LABELS + 1
    values = many if found.values is None else len(found.values)
    if found.words and model == "auto" and found.values is not None:
        check_few_labels(found.values)
    chosen, note = chosen_model(model, values if responds else None, words=bool(found.words))
    labels = None
    if responds and chosen.response in ("binary", "classes"):
        given = np.arange(many) if found.values is None else found.values
        labels = two_labels(given) if chosen.response == "binary" else several_labels(given)
    if found.words and labels is None:
        said = "words" if found.values is None else repr(found.values[0].item())
        raise ValueError(f"y: expected numbers, got {said}; choose model='logistic' or 'softmax' for labels.")
    complain_of_constant(columns, np.flatnonzero(found.low == found.high), found.low, "leave out")
    bound = bound_model(chosen, columns, labels, None, has_response=responds)
    return Settled(bound, labels, (*([note] if note else []), *told_of_large_cells(found.beyond)))


def wanted_response(model: str | Model) -> str:
    """Return the kind of response that was asked for; nothing if that was left open."""
    return "" if model == "auto" else chosen_model(model, None)[0].response


def check_size(rows: int, columns: list[str]) -> None:
    """Complain if there is next to nothing."""
    if rows < 2 or not columns:
        raise ValueError(
            f"data: expected at least two rows and one column, got {rows} rows and {len(columns)} columns."
        )


def check_held(reader: Reader, held: Any, model: str | Model) -> None:
    """Complain of cells of a table that was read into memory, as files and their rows, which it knows no longer.

    Parameters
    ----------
    reader, held
        Who read the table, and what it gave.
    model
        The model, its name, or ``"auto"``.
    """
    response = wanted_response(model)
    named = _named(model, reader.columns)
    for cut in reader.cuts_of(held):
        raw = exactly(cut)
        if not np.isfinite(raw.x).all():
            raise _not_finite(reader, raw)
        named = _checked_cells(named, reader, raw)
        if raw.y is not None:
            _check_response(reader, raw, response)


def examined(
    reader: Reader, model: str | Model, key: jax.Array, seen: Callable[[int, int], None] | None = None
) -> Problem:
    """Return the problem of a table on disk, after a pass that checks every cell.

    Parameters
    ----------
    reader
        Reads the table.
    model
        The model, its name, or ``"auto"``.
    key
        Decides which rows the sample is of.
    seen
        Called with the number of rows seen, and of all rows.
    """
    check_size(reader.row_count, reader.columns)
    ids = large_sample(key, reader.row_count, len(reader.columns))
    scratch = scratch_for(reader, FileSource.block_rows)
    found, sample, named = _pass(reader, ids, model, seen, scratch)
    settled = settle(reader.columns, found, named or model)
    source = FileSource(reader, Encoding(settled.labels), scratch=scratch)
    source.known = Pool(ids, source.encoded(sample), np.ones(len(ids), np.float32))
    settled.model.check(source.known.rows)
    return Problem(settled.model, source, None, None, settled.labels, settled.notes)


class Encoding:
    """Makes numbers of responses: two labels become −1 and +1, more become their places."""

    def __init__(self, labels: np.ndarray | None):
        self.labels = labels

    def __call__(self, column: Any) -> np.ndarray:
        """Return the numbers of a column."""
        if self.labels is None:
            return clipped(column)
        if isinstance(column, np.ndarray) and len(self.labels) == 2:
            return (column == self.labels[1]) * np.float32(2) - np.float32(1)
        if isinstance(column, np.ndarray):
            places = np.searchsorted(self.labels, column)
        else:
            import pyarrow as pa
            import pyarrow.compute as pc

            places = pc.index_in(column, value_set=pa.array(self.labels.tolist(), column.type)).to_numpy()
        return (2 * places - 1 if len(self.labels) == 2 else places).astype(np.float32)


def _pass(
    reader: Reader,
    ids: np.ndarray,
    model: str | Model,
    seen: Callable[[int, int], None] | None,
    scratch: Scratch | None,
) -> tuple[Findings, Raw, Model | None]:
    response = wanted_response(model)
    named = _named(model, reader.columns)
    extremes = Extremes(len(reader.columns))
    xs, ys, beyond = [], [], 0
    values: set | None = set()
    for _, (cut, raw, below, above) in side_by_side(_looked_at, ahead(reader.cuts()), (scratch,)):
        # Also where a cell is no number.
        if not max(-below.min(), above.max()) < np.float32(LARGEST_CELL):
            exact = exactly(cut)
            if not np.isfinite(exact.x).all():
                raise _not_finite(reader, exact)
            beyond += int((np.abs(exact.x) > LARGEST_CELL).sum())
        if named is not None:
            named = _checked_cells(named, reader, exactly(cut))
        extremes.add(below, above, cut)
        here = ids[slice(*np.searchsorted(ids, [raw.start, raw.start + len(raw.x)]))] - raw.start
        # In the precision they are computed in: the sample of a long table is what takes most memory.
        xs.append(clipped(raw.x[here]))
        if raw.y is not None:
            _check_response(reader, raw, response)
            values = values if values is None else _with_values_of(raw.y, values)
            ys.append(as_numpy(raw.y.take(here)))
        if seen is not None:
            seen(raw.start + len(raw.x), reader.row_count)
    y = np.concatenate(ys) if ys else None
    kept = (
        None
        if values is None or y is None
        else np.array(sorted(values), None if reader.response == "words" else y.dtype)
    )
    words = None if reader.response is None else reader.response == "words"
    return Findings(extremes.low, extremes.high, kept, words, beyond), Raw(np.concatenate(xs), y, 0), named


def _named(model: str | Model, columns: list[str]) -> Model | None:
    """Return the model that was named, for a table's columns; None if it waits for labels or takes any cells."""
    if model == "auto" or wanted_response(model) in ("binary", "classes"):
        return None
    bound = chosen_model(model, None)[0].bound(columns, None)
    return None if type(bound).check_rows is Model.check_rows else bound


def _with_values_of(column: Any, known: set) -> set | None:
    """Return the different values known so far and those of a block; None if they are many."""
    if not isinstance(column, np.ndarray):
        known = known | set(column.unique().to_pylist())
    # Most blocks of labels bring no new one, and to look for the known ones is quicker than to sort all.
    elif len(known) > FEW_VALUES or sum(np.count_nonzero(column == value) for value in known) < len(column):
        known = known | set(np.unique(column).tolist())
    return known if len(known) <= MOST_LABELS else None


def _checked_cells(model: Model | None, reader: Reader, raw: Raw) -> Model | None:
    """Return a model that was named after it has seen the cells of a block."""
    try:
        return None if model is None else model.check_rows(raw.x, reader.columns)
    except ValueError as error:
        raise ValueError(f"{error} Rows are counted from {reader.where(raw.start)}.") from None


def _looked_at(cut: Cut, scratch: Scratch | None) -> tuple[Cut, Raw, np.ndarray, np.ndarray]:
    """Return rows with the extremes of their columns; they are kept, if they are to be and have no words."""
    raw = cut.made()
    below, above = extremes_of(raw.x)
    if scratch is not None and (raw.y is None or isinstance(raw.y, np.ndarray)):
        small = max(-below.min(), above.max()) <= LARGEST_CELL
        scratch.write(raw.x if small else clipped(raw.x), raw.y, raw.start)
    return cut, raw, below, above


def _check_response(reader: Reader, raw: Raw, response: str) -> None:
    column = raw.y
    if isinstance(column, np.ndarray):
        wrong = ~np.isfinite(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
    else:
        wrong = np.asarray(column.is_null()) if column.null_count else np.zeros(len(column), bool)
    if wrong.any():
        row = int(wrong.argmax())
        place = reader.where(raw.start + row, response=True)
        said = f"is {column[row]}" if isinstance(column, np.ndarray) else "is missing"
        raise ValueError(f"y: {place} {said}; {reader.remedy}.")
    if isinstance(column, np.ndarray):
        check_numbers(column, response, lambda row: reader.where(raw.start + row, response=True))


def _not_finite(reader: Reader, raw: Raw) -> ValueError:
    row, column = np.argwhere(~np.isfinite(raw.x))[0]
    return ValueError(
        f"data: {reader.where(raw.start + int(row))}, column {reader.columns[column]!r} is {raw.x[row, column]}; "
        f"{reader.remedy}."
    )
