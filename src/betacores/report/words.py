"""Numbers and cells as people read them."""

from __future__ import annotations

import math
import numbers
from typing import Any

LONGEST_CELL = 80
MISSING = "missing"
# Smaller numbers may be years, and need no separator to be read.
SEPARATED = 10_000


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a few significant digits and thousands separators."""
    if value is None or math.isnan(value):
        return "not known"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 1e9 or size < 1e-4:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        text = f"{mantissa}e{int(exponent)}"
    elif size >= 1000:
        text = f"{size:,.0f}" if size >= SEPARATED else f"{size:.0f}"
    else:
        text = f"{size:.{max(digits - 1 - math.floor(math.log10(size)), 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"−{text}" if value < 0 and text.strip("0.,") else text


def fixed(value: float) -> str:
    """Return a score with two decimals, as columns of them are read."""
    return f"{value:.2f}"


def count(value: int) -> str:
    """Return a whole number with thousands separators."""
    return f"{value:,}"


def percent(share: float) -> str:
    """Return a share in percent, with as many digits as are of use."""
    return f"{_percent(share)} %"


def percent_interval(low: float, high: float) -> str:
    """Return two shares in percent; the unit is said once."""
    return f"{_percent(low)}–{_percent(high)} %" if _percent(low) != _percent(high) else percent(low)


def _percent(share: float) -> str:
    value = 100 * share
    if value == 0:
        return "0"
    if value < 0.01:
        return "<0.01"
    if 99.9 < value < 100:
        return ">99.9"
    digits = 2 if value < 0.1 else 1 if value < 10 else 0
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def unbroken(text: str) -> str:
    """Return a sentence of ours in which no number is parted from its unit at the end of a line."""
    return text.replace(" %", "\u00a0%").replace("–", "\u2060–\u2060").replace(" ± ", "\u00a0±\u00a0")


def seconds(value: float) -> str:
    """Return a duration."""
    if value < 0.01:
        return "<0.01 s"
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s" if value < 120 else f"{value / 60:.1f} min"


def is_missing(value: Any) -> bool:
    """Tell whether a cell holds nothing."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        # pandas.NA will not be compared.
        return True


def is_number(value: Any) -> bool:
    """Tell whether a cell is a number, and not just true or false."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not is_missing(value)


def cell(value: Any) -> str:
    """Return a cell of the table as text: nothing is rounded to whole numbers, and nothing is endless."""
    if is_missing(value):
        return MISSING
    value = value.item() if hasattr(value, "item") and getattr(value, "size", 1) == 1 else value
    if is_number(value):
        exact = float(value)
        if math.isfinite(exact) and exact == int(exact) and abs(exact) < 1e15:
            text = f"{int(exact):,}" if abs(exact) >= SEPARATED else f"{int(exact)}"
            return text.replace("-", "−")
        return number(exact, 4)
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    text = " ".join(text.split()) if text.strip() else repr(text)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def listed(names: list[str]) -> str:
    """Return names in a sentence."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it; numbers that are none become None."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return getattr(value, "__name__", repr(value)) if callable(value) else str(value)
