"""Which columns of a table are asked for: the response, groups, and the covariates that are left."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Newton's method solves for all coefficients at once; with more, hours go by.
MOST_COLUMNS = 2000
# Words beyond so many are hardly categories; if many are numbers, others are likely mistakes.
FEW_WORDS = 30
# Of a column of words the encoder makes no more: its levels, one for rare ones, one for missing cells.
MOST_LEVELS = 22
# From this share of numbers on, the encoder takes the column for numbers.
FEW_STRAYS = 0.9
# Models of numbers, and those of counts among them.
COUNTS = ("poisson", "negative-binomial")
TWO_VALUED = ("logistic", "noisy-logistic")
NUMERIC = ("linear", "gaussian", "student-t", "gamma", *COUNTS)
# Words of more kinds are hardly classes.
MOST_CLASSES = 20
NUMBER = r"^\s*[-+]?(\d[\d,]*\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"


class Wanted(NamedTuple):
    """What a person asked for, by the names of columns."""

    target: str | None = None
    groups: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    words: Sequence[str] = ()
    drop_missing_target: bool = False


class Asked(NamedTuple):
    """The rows asked for: whole, their covariates, response and labels of groups; and what there is to note."""

    whole: pa.Table
    data: pa.Table
    y: np.ndarray | None
    groups: list[Any] | None
    notes: list[str]


def asked_for(table: pa.Table, wanted: Wanted) -> Asked:
    """Return what was asked for, or say what is wrong with it."""
    names, notes = table.column_names, []
    dropped = {name for pattern in wanted.drop for name in matching("--drop", pattern, names)}
    kept = {name for pattern in wanted.keep for name in matching("--keep", pattern, names)} or set(names)
    words = {name for pattern in wanted.words for name in matching("--words", pattern, names)}
    target = wanted.target
    for option, named in (("--target", [target] if target is not None else []), ("--groups", wanted.groups)):
        for name in named:
            check_there(option, name, names)
    if target is not None and (target in wanted.groups or target in dropped):
        raise ValueError(f"--target: {target!r} cannot be a group or left out as well.")
    if target is not None and wanted.drop_missing_target:
        present = pc.invert(_missing(table[target]))
        left = pc.sum(present).as_py() or 0
        if left < len(table):
            notes.append(f"{len(table) - left:,} rows without {target!r} were left out; rows are numbered without them")
            table = table.filter(present)
    y = None
    if target is not None:
        column, note = tidied(table[target], target)
        notes += [note] if note else []
        y = response(column, target)
    chosen = [n for n in names if n in kept and n not in dropped and n != target and n not in wanted.groups]
    if not chosen:
        raise ValueError("There is no column left to learn from beside the target, the groups and those left out.")
    _check_not_too_many(len(chosen))
    columns = {name: _covariate(table[name], name, name in words) for name in chosen}
    _check_not_too_many(sum(_made_of(column) for column in columns.values()))
    return Asked(table, pa.table(columns), y, _labels(table, wanted.groups), notes)


def _check_not_too_many(columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise ValueError(
            f"{columns:,} columns, words told apart, are more than can be fitted ({MOST_COLUMNS:,}); name those that "
            "matter with --keep, or leave some out with --drop (both take patterns like 'x1*')."
        )


def _made_of(column: pa.ChunkedArray) -> int:
    """Return the largest number of columns that the encoder makes of one."""
    words = pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)
    return min(len(pc.unique(column)), MOST_LEVELS) if words else 1


def suited_model(model: str, y: np.ndarray | None, target: str | None) -> tuple[str, str]:
    """Return the model asked for, if it suits the response, or the one that does, and why."""
    from betacores.checks import check_choice
    from betacores.cli.names import DENSITIES, MODELS

    check_choice("--model", model, MODELS)
    if model == "auto":
        return _guessed_model(y, target)
    if y is None and model not in DENSITIES:
        raise ValueError(f"--model: {model!r} needs a response; name its column with --target.")
    if y is not None and model in DENSITIES:
        raise ValueError(f"--model: {model!r} is of rows without a response; leave --target out.")
    if y is not None and model in NUMERIC and y.dtype.kind not in "fiu":
        raise ValueError(f"--model: {model!r} is for numbers, {target!r} holds {y[0].item()!r}; use {_of_words(y)!r}.")
    if y is not None and model in TWO_VALUED and (values := len(np.unique(y))) != 2:
        other = "linear" if y.dtype.kind in "fiu" else _of_words(y)
        raise ValueError(f"--model: {model!r} is for two values, {target!r} has {values:,}; use {other!r}.")
    if y is not None and model in COUNTS and ((y < 0) | (y != np.floor(y))).any():
        wrong = y[(y < 0) | (y != np.floor(y))][0]
        raise ValueError(f"--model: {model!r} is for counts, {target!r} holds {wrong:g}; use 'linear'.")
    if y is not None and model == "gamma" and (y <= 0).any():
        raise ValueError(f"--model: 'gamma' is for numbers above 0, {target!r} holds {y[y <= 0][0]:g}; use 'gaussian'.")
    return model, ""


def _of_words(y: np.ndarray) -> str:
    return "logistic" if len(np.unique(y)) == 2 else "softmax"


def _guessed_model(y: np.ndarray | None, target: str | None) -> tuple[str, str]:
    if y is None:
        return "gaussian-mean", "model: 'gaussian-mean', since no --target was given"
    values = np.unique(y)
    if len(values) == 2:
        first, second = values.tolist()
        return "logistic", f"model: 'logistic', since {target!r} has two values, {first!r} and {second!r}"
    if values.dtype.kind not in "fiub":
        return "softmax", f"model: 'softmax', since {target!r} has {len(values)} different words"
    said = f"model: 'linear', since {target!r} is a number with {len(values):,} values"
    if np.any(values % 1) or values[0] < 0:
        return "linear", said
    other = (
        "softmax if they are codes of classes"
        if len(values) <= MOST_CLASSES
        else "negative-binomial if they are counts"
    )
    return "linear", f"{said}; choose --model {other}"


def tidied(column: pa.ChunkedArray, name: str) -> tuple[pa.ChunkedArray, str]:
    """Return words that are few but for capitals, and for spaces and dots at their ends, as few; and say so."""
    if not pa.types.is_string(_plain_type(column.type)):
        return column, ""
    column = pc.cast(column, pa.string())
    # The usual spelling comes first, and the others are taken for it.
    counts = sorted(pc.value_counts(pc.drop_null(column)).to_pylist(), key=lambda one: -one["counts"])
    usual: dict[str, str] = {}
    for word in (one["values"] for one in counts):
        usual.setdefault(word.strip(" .").casefold(), word)
    if not 2 <= len(usual) <= MOST_CLASSES or len(counts) == len(usual):
        return column, ""
    spelt = {one["values"]: usual[one["values"].strip(" .").casefold()] for one in counts}
    encoded = pc.dictionary_encode(column).combine_chunks()
    words = pa.array([spelt[word] for word in encoded.dictionary.to_pylist()], pa.string())
    strange = next(word for word, own in spelt.items() if word != own)
    note = f"{name!r}: words that differ in capitals, spaces or dots only were taken for one, such as {strange!r} and "
    return pa.chunked_array([words.take(encoded.indices)]), note + repr(spelt[strange])


def response(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """Return the response: numbers, or words of which there are a few."""
    kind = _plain_type(column.type)
    if not (pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind) or _is_number(kind)):
        raise ValueError(f"--target: column {name!r} holds {column.type}; expected numbers, or words of a few kinds.")
    missing = pc.sum(_missing(column)).as_py() or 0
    if missing:
        first = int(np.argmax(_missing(column).to_numpy()))
        raise ValueError(
            f"--target: {missing:,} of {len(column):,} cells of {name!r} are missing, the first in row {first}; "
            "fill them, or leave those rows out with --drop-missing-target."
        )
    values = pc.unique(column)
    if len(values) < 2:
        held = repr(values[0].as_py()) if len(values) else "nothing"
        raise ValueError(f"--target: column {name!r} is constant, always {held}; there is nothing to learn.")
    if pa.types.is_string(kind) and len(values) > 2:
        share, word = _numbers_among(pc.cast(column, kind))
        if share >= 0.5:
            raise ValueError(
                f"--target: {share:.1%} of the cells of {name!r} are numbers, the others words such as {word!r}; "
                f"correct them, or say --na {word!r} --drop-missing-target."
            )
        if len(values) > MOST_CLASSES:
            shown = ", ".join(repr(value.as_py()) for value in values[:4])
            raise ValueError(
                f"--target: {name!r} holds {len(values):,} different words, such as {shown}; a response has at most "
                f"{MOST_CLASSES}, or is a number. Put some together (this one or any other), or choose another column."
            )
    found = pc.cast(column, kind).to_numpy()
    return found.astype(str) if found.dtype == object else found


def _covariate(column: pa.ChunkedArray, name: str, as_words: bool) -> pa.ChunkedArray:
    if as_words:
        # Declared words, which the encoder then takes for nothing else.
        return pc.dictionary_encode(pc.cast(column, pa.string()))
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        _check_not_mixed(column, name)
    return column


def _check_not_mixed(column: pa.ChunkedArray, name: str) -> None:
    """Say so if many cells are numbers, too many for codes, and many are not; a few are taken for missing ones."""
    share, word = _numbers_among(column)
    if 0.5 <= share < FEW_STRAYS and len(pc.unique(column)) > FEW_WORDS:
        raise ValueError(
            f"column {name!r}: {share:.0%} of its cells are numbers, the others words such as {word!r}; correct them, "
            f"or say --na {word!r} if that means missing, --words {name} if all are words, or --drop {name}."
        )


def _numbers_among(column: pa.ChunkedArray) -> tuple[float, str | None]:
    """Return which share of the cells that are not missing are numbers, and the first that is not."""
    present = pc.drop_null(column)
    number = pc.match_substring_regex(present, NUMBER)
    word = next((one.as_py() for one in pc.filter(present, pc.invert(number))[:1]), None)
    return pc.mean(number).as_py() or 0.0, word


def _labels(table: pa.Table, groups: Sequence[str]) -> list[Any] | None:
    if not groups:
        return None
    for name in groups:
        if table[name].null_count:
            raise ValueError(
                f"--groups: {table[name].null_count:,} cells of {name!r} are missing; give them a name of their own."
            )
    columns = [table[name].to_pylist() for name in groups]
    return list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]


def matching(option: str, pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that a pattern means, or say that there are none."""
    if pattern in names:
        return [pattern]
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        check_there(option, pattern, names)
    return found


def check_there(option: str, name: str, names: Sequence[str]) -> None:
    """Complain if there is no column of this name."""
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    shown = ", ".join(map(repr, names[:10])) + (" and more" if len(names) > 10 else "")
    raise ValueError(f"{option}: there is no column {name!r}; there are {shown}.{hint}")


def _missing(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that a dictionary, a decimal number or a large string is as good as."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.float64() if pa.types.is_decimal(kind) else kind
