"""How summaries were made, so that new rows can be summarised in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from betacores.coreset import Coreset
from betacores.models import LinearRegression
from betacores.scores import default_score_beta

# What belongs to one table, or is decided anew for every one.
OF_THE_TABLE = ("model", "seed", "sample_weight", "groups", "weights_by", "init")


def how_made(coreset: Coreset) -> dict[str, Any]:
    """Return the settings that rows like those of a coreset are to be summarised with."""
    asked = dict(coreset.info.settings)
    if coreset.method == "merge":
        return dict(asked.get("summaries", {}))
    made = {name: value for name, value in asked.items() if name not in OF_THE_TABLE}
    if coreset.grouping is not None:
        # That many groups were asked for; how many rows that is was left open.
        made["size"] = "auto"
    if coreset.info.tuning is not None:
        made["beta"] = "auto"
    if made.get("score_beta") == default_score_beta(coreset.model, len(coreset.columns), coreset.beta):
        made["score_beta"] = None
    if isinstance(coreset.model, LinearRegression):
        estimated = any(note.startswith("noise: ") for note in coreset.info.notes)
        made["noise"] = "auto" if estimated else coreset.model.noise
    return made


def common_settings(made: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the settings that all have in common; others are left to their defaults."""
    first = made[0]
    return {name: value for name, value in first.items() if all(one.get(name, _Missing) == value for one in made[1:])}


class _Missing:
    """No value of any setting."""
