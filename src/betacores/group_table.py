"""All groups of a table side by side: which were kept, with which weight, and how dirty each is likely to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.groups import Groups
from betacores.info import Info
from betacores.scores import beliefs

if TYPE_CHECKING:
    import pandas
    from jaxtyping import Float, Int


class Grouped:
    """The groups of a coreset, for `Coreset` to inherit: it has the fields."""

    indices: Int[np.ndarray, " m"]
    weights: Float[np.ndarray, " m"]
    scores: Float[np.ndarray, " rows"]
    covariate_scores: Float[np.ndarray, " rows"] | None
    grouping: Groups | None
    info: Info

    @property
    def groups(self) -> list[Any]:
        """Labels of the groups that were kept, in order of selection."""
        return [record["group"] for record in self.group_records() if record["rank"]]

    @property
    def group_weights(self) -> Float[np.ndarray, " k"]:
        """Weights of the groups that were kept: the mean over their rows."""
        return np.array([record["weight"] for record in self.group_records() if record["rank"]])

    @property
    def group_scores(self) -> dict[Any, float]:
        """For every group how far its rows are believed: the mean of their scores, times the trust in covariates."""
        grouping = self._grouping()
        return dict(
            zip(grouping.labels, grouping.means(beliefs(self.scores, self.covariate_scores)).tolist(), strict=True)
        )

    def group_table(self) -> pandas.DataFrame:
        """Return all groups as a pandas DataFrame, those kept first, in order of selection.

        Columns: ``group``, ``rank`` (of selection), ``weight``, ``rows``, ``score``, and the estimated
        ``contamination``, ``low`` to ``high`` being what chance in so many rows leaves open (95 %). Dirt that looks
        much like clean rows, a wrong label that was possible anyway, is not in it: the truth may be higher.
        """
        import pandas

        records = self.group_records()
        frame = pandas.DataFrame({name: [record[name] for record in records] for name in records[0]})
        return frame.assign(
            group=pandas.Series([record["group"] for record in records], dtype=object),
            rank=pandas.array([record["rank"] for record in records], dtype="Int64"),
        )

    def group_records(self) -> list[dict[str, Any]]:
        """Return what `group_table` shows as plain dictionaries; groups that were not kept have no rank."""
        return group_records(self._grouping(), beliefs(self.scores, self.covariate_scores), self.indices, self.weights)

    def _grouping(self) -> Groups:
        if self.grouping is None and self.info.sites is not None:
            raise ValueError("groups: merging chose rows one by one and let them go; ask the summaries it was given.")
        if self.grouping is None:
            raise ValueError("groups: the coreset was made of rows; pass groups= to summarize.")
        return self.grouping


def group_records(
    grouping: Groups,
    believed: Float[np.ndarray, " rows"],
    indices: Int[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"],
) -> list[dict[str, Any]]:
    """Return a dictionary for every group, those kept first, in order of selection, then the others by their scores.

    Parameters
    ----------
    grouping
        Which group every row belongs to.
    believed
        How far every row is believed.
    indices, weights
        The rows that were kept, in order of selection, and their weights.
    """
    kept = list(dict.fromkeys(grouping.codes[indices].tolist()))
    weight = np.bincount(grouping.codes[indices], weights, minlength=len(grouping)) / grouping.sizes
    score = grouping.means(believed)
    spread = np.sqrt(np.maximum(grouping.means(believed**2) - score**2, 0) / grouping.sizes)
    rank = {code: place + 1 for place, code in enumerate(kept)}
    order = [*kept, *(code for code in np.argsort(-score, kind="stable").tolist() if code not in rank)]
    return [
        {
            "group": grouping.labels[code],
            "rank": rank.get(code),
            "weight": float(weight[code]),
            "rows": int(grouping.sizes[code]),
            "score": float(score[code]),
            **{
                name: float(np.clip(1 - score[code] + shift * spread[code], 0, 1))
                for name, shift in (("contamination", 0.0), ("low", -1.96), ("high", 1.96))
            },
        }
        for code in order
    ]
