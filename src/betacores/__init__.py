"""Robust Bayesian coresets: a huge, dirty table turned into a small, weighted, cleansed summary."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betacores import datasets, models
    from betacores.comparison import compare
    from betacores.coreset import Coreset
    from betacores.estimators import CoresetClassifier, CoresetRegressor, CoresetSelector
    from betacores.front_door import summarize
    from betacores.merging import merge
    from betacores.storage import load
    from betacores.tables import make_robust_preprocessor

__version__ = "0.1.0"

__all__ = [
    "Coreset",
    "CoresetClassifier",
    "CoresetRegressor",
    "CoresetSelector",
    "__version__",
    "compare",
    "datasets",
    "load",
    "make_robust_preprocessor",
    "merge",
    "models",
    "summarize",
]

_HOMES = {
    "Coreset": "betacores.coreset",
    "CoresetClassifier": "betacores.estimators",
    "CoresetRegressor": "betacores.estimators",
    "CoresetSelector": "betacores.estimators",
    "compare": "betacores.comparison",
    "load": "betacores.storage",
    "make_robust_preprocessor": "betacores.tables",
    "merge": "betacores.merging",
    "summarize": "betacores.front_door",
}


def __getattr__(name: str) -> Any:
    # JAX takes half a second to import; the command line's help and version should not wait for it.
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in ("datasets", "models"):
        value = import_module(f"betacores.{name}")
    else:
        raise AttributeError(f"module 'betacores' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
