"""Labels of groups and classes as JSON can hold them: text and numbers as they are, tuples as lists, others by kind.

What is of none of these kinds, an interval of pandas say, comes back as text.
"""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any, NamedTuple

import numpy as np


class Kind(NamedTuple):
    """A kind of label, and how to make it of its text."""

    of: type
    text: Any
    made: Any


# A kind that is also another, as a datetime is a date, stands before it.
KINDS = {
    "datetime": Kind(datetime.datetime, lambda label: label.isoformat(), datetime.datetime.fromisoformat),
    "date": Kind(datetime.date, lambda label: label.isoformat(), datetime.date.fromisoformat),
    "time": Kind(datetime.time, lambda label: label.isoformat(), datetime.time.fromisoformat),
    "duration": Kind(
        datetime.timedelta,
        lambda label: [label.days, label.seconds, label.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    "bytes": Kind(bytes, lambda label: label.decode("latin-1"), lambda text: text.encode("latin-1")),
    "decimal": Kind(decimal.Decimal, str, decimal.Decimal),
    "uuid": Kind(uuid.UUID, str, uuid.UUID),
    # Only those that are not finite.
    "float": Kind(float, repr, float),
}


def as_json(label: Any) -> Any:
    """Return a label as JSON can hold it."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [as_json(part) for part in label]
    if isinstance(label, (str, int)) or (isinstance(label, float) and np.isfinite(label)):
        return label
    for name, kind in KINDS.items():
        if isinstance(label, kind.of):
            return {name: kind.text(label)}
    return {"text": str(label)}


def in_microseconds(labels: np.ndarray) -> np.ndarray:
    """Return an array of labels of which `tolist` makes plain values: of times in finer units it makes numbers."""
    return labels.astype(f"{labels.dtype.kind}8[us]") if labels.dtype.kind in "mM" else labels


def from_json(stored: Any) -> Any:
    """Return the label that was stored."""
    if isinstance(stored, list):
        return tuple(from_json(part) for part in stored)
    if isinstance(stored, dict):
        ((name, value),) = stored.items()
        return KINDS[name].made(value) if name in KINDS else value
    return stored
