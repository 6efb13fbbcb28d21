"""The table of the group experiment: patients of Hospital Readmissions in groups, some of which are made dirty.

As in the β-Cores paper: cells of age, race and gender, each in three parts of quality 0, 1 and 2. In a group of quality
q a share q · 10 % of the rows gets N(0, 5²) noise in half of the columns, and an equal share, drawn independently, its
labels flipped. Columns are ten principal components of unit variance; test rows stay clean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from betacores.datasets import HospitalGroup, hospital_groups, hospital_readmissions
from betacores.datasets.contamination import NOISE
from betacores.groups import Groups, read_groups

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Share of noisy rows, and of flipped labels, for each step of quality.
SHARE = 0.1


class Table(NamedTuple):
    """Rows in groups, what was done to them, and rows to be predicted."""

    x: Float[np.ndarray, "rows columns"]
    y: Int[np.ndarray, " rows"]
    groups: Groups
    dirty: Bool[np.ndarray, " rows"]
    test: tuple[np.ndarray, np.ndarray]

    @property
    def labels(self) -> list[HospitalGroup]:
        """What the rows of each group have in common."""
        return self.groups.labels

    @property
    def quality(self) -> Int[np.ndarray, " groups"]:
        """Of each group."""
        return np.array([label.quality for label in self.labels])

    @property
    def dirty_groups(self) -> Bool[np.ndarray, " groups"]:
        """Which groups have dirty rows."""
        return np.bincount(self.groups.codes, self.dirty, minlength=len(self.groups)) > 0


def grouped_table(seed: int, *, contaminated: bool, as_published: bool = False) -> Table:
    """Return the table of a trial.

    Parameters
    ----------
    seed
        Draws the groups, the dirt, and the balanced test rows.
    contaminated
        Whether groups of quality 1 and 2 are made dirty.
    as_published
        Whether the components are made as published, from columns among which is the answer.
    """
    split = hospital_readmissions(seed=seed, as_published=as_published)
    labels = hospital_groups(seed=seed)
    inside = np.array([label is not None for label in labels])
    groups, _ = read_groups([label for label in labels if label is not None], None, int(inside.sum()))
    scale = split.x_train.std(0)
    x, y = split.x_train[inside] / scale, split.y_train[inside]
    dirty = np.zeros(len(x), bool)
    if contaminated:
        random = np.random.default_rng([seed, 1])
        for place, label in enumerate(groups.labels):
            dirty[_made_dirty(x, y, groups.members(np.array([place])), SHARE * label.quality, random)] = True
    return Table(x, y, groups, dirty, (split.x_test / scale, split.y_test))


def _made_dirty(
    x: np.ndarray, y: np.ndarray, members: Int[np.ndarray, " m"], share: float, random: np.random.Generator
) -> np.ndarray:
    """Make a share of a group's rows dirty, in place, and return which; every group has noisy columns of its own."""
    count = round(share * len(members))
    noisy, flipped = random.permutation(members)[:count], random.permutation(members)[:count]
    columns = random.permutation(x.shape[1])[: x.shape[1] // 2]
    x[np.ix_(noisy, columns)] = random.normal(0, NOISE, (count, len(columns)))
    y[flipped] = 1 - y[flipped]
    return np.union1d(noisy, flipped)
