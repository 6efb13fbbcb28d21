"""How to get the same coreset again: settings, timings, versions, and the call."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from betacores.constructions import METHODS
from betacores.coreset import Coreset
from betacores.report.words import number, plain, seconds
from betacores.scores import default_score_beta

# Settings that are arguments of `summarize`, in its order; those of the method come after them.
ARGUMENTS = ("model", "size", "beta", "method", "readout", "guard", "score_beta", "weights_by", "seed")
DEFAULTS: dict[str, Any] = {
    "size": "auto",
    "method": "pursuit",
    "readout": "classical",
    "guard": "auto",
    "weights_by": None,
}


def settings_section(coreset: Coreset, command: str | None) -> dict[str, Any]:
    """Return what decided the result, and how long its parts took."""
    import jax

    from betacores import __version__

    return {
        "command": command,
        "python": None if command else python_call(coreset),
        "own_prior": _own_prior(coreset),
        "settings": [{"name": str(name), "value": _said(value)} for name, value in coreset.info.settings.items()],
        "timings": [
            {"name": name, "seconds": float(v), "text": seconds(v)} for name, v in coreset.info.timings.items()
        ],
        "total": seconds(sum(coreset.info.timings.values())),
        "seed": plain(coreset.info.settings.get("seed")),
        "versions": {
            "betacores": __version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def python_call(coreset: Coreset) -> str:
    """Return the call of `summarize` that makes the same coreset of the same table."""
    asked = dict(coreset.info.settings)
    if coreset.method == "merge":
        return _merging_call(coreset, asked)
    arguments = ["data"] + ([] if coreset.y is None else ["y"])
    if coreset.info.tuning is not None:
        asked["beta"] = "auto"
    if asked.get("score_beta") == default_score_beta(coreset.model, len(coreset.columns), coreset.beta):
        asked.pop("score_beta")
    grouped = coreset.grouping is not None
    if grouped:
        arguments.append("groups=groups")
        asked.pop("groups", None)
        if asked.get("size") != "auto":
            asked["max_groups"] = asked.get("size")
        asked.pop("size", None)
    if asked.pop("sample_weight", None) is not None:
        arguments.append("sample_weight=sample_weight")
    model = asked.pop("model", coreset.model.name)
    arguments.append(f"model={'model' if _own_prior(coreset) else repr(model)}")
    names = [name for name in ARGUMENTS if name in asked]
    names += [name for name in asked if name not in names]
    # The guard of methods that have none is None by itself.
    if asked.get("guard") is None and coreset.method != "pursuit":
        names = [name for name in names if name != "guard"]
    usual = DEFAULTS | METHODS[coreset.method].defaults if coreset.method in METHODS else DEFAULTS
    for name in names:
        value = asked[name]
        if name in usual and (value is usual[name] or (np.ndim(value) == 0 and value == usual[name])):
            continue
        arguments.append(f"{name}={_argument(value)}")
    lines = ",\n    ".join(arguments)
    return f"import betacores as bc\n\ncoreset = bc.summarize(\n    {lines},\n)"


def _merging_call(coreset: Coreset, asked: dict[str, Any]) -> str:
    """Return the call that merges the same coresets, or the last update of a stream."""
    if asked.get("updates"):
        return f"coreset = coreset.update(data{'' if coreset.y is None else ', y'})  # for the {asked['updates']}. time"
    size, seed = _argument(asked.get("size")), _argument(asked.get("seed"))
    return f"import betacores as bc\n\ncoreset = bc.merge(coresets, size={size}, seed={seed})"


def _argument(value: Any) -> str:
    if callable(value):
        return getattr(value, "__name__", "function")
    return repr(plain(value))


def _said(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, np.integer)):
        return str(value)
    if isinstance(value, (float, np.floating)):
        return number(float(value), 4)
    if callable(value):
        return getattr(value, "__name__", "a function")
    text = str(plain(value))
    return text if len(text) <= 200 else text[:199] + "…"


def _own_prior(coreset: Coreset) -> bool:
    """Tell whether the prior is not the default one: a person's own, or that of an estimator, which scales columns."""
    prior = getattr(coreset.model, "prior", None)
    if prior is None:
        return True
    return not (
        np.ndim(prior.precision) == 0 and float(prior.precision) == 1 and np.ndim(prior.mean) == 0 and prior.mean == 0
    )
