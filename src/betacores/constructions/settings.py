"""Settings of the constructions: one meaning and one check for each name, whichever construction takes it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from betacores.checks import check_choice, check_number


def _whole(name: str, at_least: int) -> Callable[[Any], Any]:
    return lambda value: check_number(name, value, at_least=at_least, whole=True)


def _rows_or_all(name: str) -> Callable[[Any], Any]:
    return lambda value: value is None or check_number(name, value, at_least=1, whole=True)


def _check_rate(value: Any, steps: int) -> None:
    for rate in [value(t) for t in range(1, steps + 1)] if callable(value) else [value]:
        check_number("learning_rate", rate, above=0)


def _sizes(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"sizes: it must be a list of whole numbers, got {value!r}.")
    for size in value:
        check_number("sizes", size, at_least=1, whole=True)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "draws": _whole("draws", 2),
    "steps": _whole("steps", 1),
    "iterations": _whole("iterations", 1),
    "candidates": _whole("candidates", 1),
    "exchanges": _whole("exchanges", 0),
    "polish": _whole("polish", 0),
    "batch_select": _rows_or_all("batch_select"),
    "batch_optimise": _rows_or_all("batch_optimise"),
    "optimiser": lambda value: check_choice("optimiser", value, ("adam", "sgd")),
    "sampler_target": lambda value: check_choice("sampler_target", value, ("beta", "classical")),
    "screen": lambda value: check_number("screen", value, at_least=0, below=1),
    "tolerance": lambda value: check_number("tolerance", value, above=0),
    "damping": lambda value: check_number("damping", value, at_least=0),
    "sizes": _sizes,
}


def checked(given: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return all settings of a construction, those given before its defaults, after checking their names and values."""
    for name in given:
        if name in defaults:
            continue
        if name in ("weights", "sample_weight"):
            raise TypeError(
                f"{name}: weights of input rows are not supported here; give sample_weight= to method='pursuit', or "
                "repeat rows."
            )
        near = difflib.get_close_matches(name, defaults, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        taken = f" It takes: {', '.join(defaults)}." if defaults else " It takes no settings of its own."
        raise TypeError(f"{name!r} is not a setting of this method.{hint}{taken}")
    settings = {**defaults, **given}
    for name, value in settings.items():
        if name in CHECKS:
            CHECKS[name](value)
    if "learning_rate" in settings:
        _check_rate(settings["learning_rate"], settings["steps"])
    return settings
