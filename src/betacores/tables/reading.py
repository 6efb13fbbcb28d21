"""Columns of any kind of table, read as numbers or as words.

pandas, polars and others keep the same cells in different ways. Every column is brought to Arrow first, so that one
place decides what a cell is, and the same content gives the same answer whoever holds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Of the cells of a column of texts that are not missing, this share makes it a column of numbers.
NUMBER_SHARE = 0.9
NUMBER = r"^\s*[+-]?(\d{1,3}(,\d{3})+(\.\d*)?|\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*$"
# Codes such as 00501, which lose something as numbers.
CODE = r"^\s*[+-]?0\d"
BLANK = r"^\s*$"
NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; dates and durations are in days, truth is 1.

    Attributes
    ----------
    values
        The cells, NaN where one is missing or infinite.
    infinite
        How many of these are infinite.
    strays
        How many are words in a column of numbers otherwise; ``stray`` is one of them.
    """

    values: Float[np.ndarray, " rows"]
    infinite: int = 0
    strays: int = 0
    stray: str | None = None

    @property
    def missing(self) -> Bool[np.ndarray, " rows"]:
        """Which cells are missing."""
        return np.isnan(self.values)


@dataclass(frozen=True)
class Words:
    """A column of words: for every row the place of its word among the levels, or -1 if it is missing."""

    codes: Int[np.ndarray, " rows"]
    levels: list[str]

    @property
    def missing(self) -> Bool[np.ndarray, " rows"]:
        """Which cells are missing."""
        return self.codes < 0


@dataclass(frozen=True)
class Other:
    """A column of something that is neither, such as lists."""

    kind: str


Cells = Numbers | Words | Other
Wanted = Literal["numbers", "words", "nothing"] | None


def as_frame(data: Any) -> nw.DataFrame | None:
    """Return a DataFrame of any kind; None if it is something else."""
    try:
        frame = nw.from_native(data, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise ValueError(f"X: the column {_twice(data)!r} is there twice; rename one.") from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X: expected a table in memory, got a lazy one ({type(data).__name__}); collect it first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def read_columns(data: Any, wanted: Sequence[Wanted] | None = None) -> Iterator[Cells | None]:
    """Return the columns of a DataFrame or a two-dimensional array, one after another.

    Parameters
    ----------
    data
        The table.
    wanted
        For every column what it is to be read as; None lets its cells decide, ``"nothing"`` gives None.
    """
    frame = as_frame(data)
    if frame is not None:
        kinds = wanted or [None] * len(frame.columns)
        for kind, series in zip(kinds, frame.iter_columns(), strict=True):
            yield None if kind == "nothing" else read_column(series, kind)
        return
    cells = np.asarray(data)
    for j, kind in enumerate(wanted or [None] * cells.shape[1]):
        column = cells[:, j]
        if kind == "nothing":
            yield None
        elif column.dtype.kind in "fiub" and kind != "words":
            yield _numbers(column)
        else:
            yield _objects(column.tolist(), kind)


def read_column(series: Any, wanted: Wanted = None) -> Cells:
    """Return a column of a DataFrame, a narwhals Series."""
    if wanted is None and series.dtype in (nw.Categorical, nw.Enum):
        wanted = "words"
    if series.dtype == nw.Object:
        return _objects(series.to_list(), wanted)
    try:
        return _arrow(series.to_arrow(), wanted)
    except (pa.ArrowException, TypeError):
        # What Arrow does not know: sparse columns, complex numbers.
        values = series.to_numpy()
        if values.dtype.kind == "c":
            raise ValueError(
                f"X: Complex data not supported: column {series.name!r} holds {values[0]!r}; pass real and imaginary "
                "parts as columns."
            ) from None
        numeric = values.dtype.kind in "fiub" and wanted != "words"
        return _numbers(values) if numeric else _texts(series.to_list(), wanted)


def _twice(data: Any) -> str:
    names = [str(name) for name in getattr(data, "column_names", getattr(data, "columns", []))]
    return next((name for name in names if names.count(name) > 1), "?")


def _numbers(values: np.ndarray, **how: Any) -> Numbers:
    values = np.array(values, np.float64)
    infinite = np.isinf(values)
    values[infinite] = np.nan
    return Numbers(values, int(infinite.sum()), **how)


def _objects(values: list[Any], wanted: Wanted) -> Cells:
    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _texts(values, wanted)
    return _arrow(array, wanted)


def _texts(values: list[Any], wanted: Wanted) -> Cells:
    """Return cells of several types, each as it is written."""
    written = pa.array([None if _absent(value) else _text(value) for value in values], pa.large_string())
    return _levels(written, wanted)


def _absent(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        # pandas.NA will not be compared, and an array in a cell not as a whole.
        return not hasattr(value, "__len__")


def _text(value: Any) -> str:
    # A whole number is written as one, since columns of whole numbers become real for a missing cell.
    whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if whole else str(value)


def _arrow(array: pa.Array | pa.ChunkedArray, wanted: Wanted) -> Cells:
    if isinstance(array, pa.ChunkedArray):
        array = (array.cast(pa.large_string()) if pa.types.is_string(array.type) else array).combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _arrow(array.dictionary_decode(), wanted or "words")
    if pa.types.is_null(kind):
        return Numbers(np.full(len(array), np.nan))
    if pa.types.is_nested(kind):
        return Other(str(kind).partition("<")[0])
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _levels(array, wanted)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "string_view":
        return _levels(array.cast(pa.large_string()), wanted)
    if wanted != "words":
        if any(check(kind) for check in NUMERIC):
            return _numbers(pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
            return Numbers(_days(array))
    return _texts(array.to_pylist(), wanted)


def _days(array: pa.Array) -> np.ndarray:
    """Return dates, times and durations in days, dates since 1970."""
    kind = array.type
    if pa.types.is_date(kind):
        array, per_day = array.cast(pa.date32()).cast(pa.int32()), 1
    else:
        per_day = PER_DAY[kind.unit]
    ticks = array.cast(pa.int64())
    whole = ticks.fill_null(0).to_numpy()
    # Whole days apart, so that the same moment is the same number in every unit.
    days = whole // per_day + (whole % per_day) / per_day
    return np.where(ticks.is_null().to_numpy(zero_copy_only=False), np.nan, days)


def _levels(array: pa.Array, wanted: Wanted) -> Cells:
    """Return texts as words, or as numbers if they are to be, or are in nine of ten cells and nobody said."""
    encoded = array.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    words = encoded.dictionary
    if not len(words):
        return Words(codes, []) if wanted == "words" else Numbers(np.full(len(codes), np.nan))
    blank = _matches(words, BLANK)
    if wanted != "words":
        number = _matches(words, NUMBER)
        counts = np.bincount(codes[codes >= 0], minlength=len(words))
        share = counts[number].sum() / max(counts[~blank].sum(), 1)
        if wanted == "numbers" or (share >= NUMBER_SHARE and not _matches(words, CODE).any()):
            return _written_numbers(codes, words, number, counts * (~number & ~blank))
    codes = np.where((codes >= 0) & blank[codes], -1, codes)
    return Words(codes, words.to_pylist())


def _matches(words: pa.Array, pattern: str) -> Bool[np.ndarray, " words"]:
    return pc.match_substring_regex(words, pattern).to_numpy(zero_copy_only=False).astype(bool)


def _written_numbers(codes: np.ndarray, words: pa.Array, number: np.ndarray, strays: np.ndarray) -> Numbers:
    plain = pc.replace_substring(words.filter(pa.array(number)), ",", "")
    # The last place is that of code -1, a missing cell.
    values = np.full(len(words) + 1, np.nan)
    values[:-1][number] = [float(text) for text in plain.to_pylist()]
    first = words[int(strays.argmax())].as_py() if strays.any() else None
    return _numbers(values[codes], strays=int(strays.sum()), stray=first)
