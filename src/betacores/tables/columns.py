"""How one column becomes numbers: decided on the rows of `fit`, done alike to any others.

A plan says which columns a source column gives, how they are called, and how to fill them. A column of numbers gives

    (value − centre) / scale,   and a 0/1 column that tells its missing cells, if `fit` saw any;

a column of words one 0/1 column for every level but the most frequent, which is told by zeros in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from betacores.robust import robust_location_scale
from betacores.sources.base import LARGEST_CELL
from betacores.tables.reading import Cells, Numbers, Other, Words

if TYPE_CHECKING:
    from jaxtyping import Float

# Medians of more rows are no better.
SEEN_ROWS = 100_000
# A level that fewer rows hold has no column of its own: this share of the rows that have a word, and on small tables
# this many rows, or a tenth of them.
RARE_SHARE = 0.01
RARE_ROWS = 5
POOLED = "other (rare)"
MISSING = "missing"
# Beyond this many times the usual distance from the median, a cell says no more about the scale.
FAR = 10.0


@dataclass(frozen=True)
class NumberPlan:
    """A column of numbers.

    Attributes
    ----------
    fill
        What stands for a missing cell, in the units given: the median.
    centre, scale
        Of the units made; 0 and 1 for those given.
    varies, flagged
        Whether there is a column of the values, and one that tells missing cells.
    words_allowed
        Whether words, which `fit` saw among numbers written as texts, are missing cells and no mistake.
    """

    fill: float
    centre: float = 0.0
    scale: float = 1.0
    varies: bool = True
    flagged: bool = False
    words_allowed: bool = False

    def endings(self) -> list[str]:
        """Return what is added to the name of the column, for each column it gives."""
        return [""] * self.varies + [f" {MISSING}"] * self.flagged

    def columns(self, cells: Cells) -> Iterator[Float[np.ndarray, " rows"]]:
        """Return the columns it gives."""
        assert isinstance(cells, Numbers)
        missing = cells.missing
        if self.varies:
            yield self._within(np.where(missing, self.fill, cells.values))
        if self.flagged:
            yield missing.astype(np.float64)

    def _within(self, values: np.ndarray) -> np.ndarray:
        if self.centre == 0 and self.scale == 1:
            return values
        # What single precision can take; absurd cells stay absurd.
        with np.errstate(over="ignore"):
            return np.clip((values - self.centre) / self.scale, -LARGEST_CELL, LARGEST_CELL)


@dataclass(frozen=True)
class WordPlan:
    """A column of words.

    Attributes
    ----------
    reference
        The most frequent level, told by zeros.
    levels
        Those with a column of their own, the most frequent first.
    pooled
        Whether a column stands for all other levels; without one, levels never seen count as the reference.
    flagged
        Whether there is a column that tells missing cells; without one they count as the reference.
    """

    reference: str
    levels: tuple[str, ...]
    pooled: bool = False
    flagged: bool = False

    def endings(self) -> list[str]:
        """Return what is added to the name of the column, for each column it gives."""
        told = [*self.levels, *([POOLED] * self.pooled), *([MISSING] * self.flagged)]
        return [f"={level}" for level in told]

    def columns(self, cells: Cells) -> Iterator[Float[np.ndarray, " rows"]]:
        """Return the columns it gives."""
        assert isinstance(cells, Words)
        count = len(self.levels)
        places = {level: place for place, level in enumerate(self.levels)} | {self.reference: -1}
        unknown = count if self.pooled else -1
        # The last place is that of code -1, a missing cell.
        own = [*(places.get(level, unknown) for level in cells.levels), count + self.pooled if self.flagged else -1]
        place = np.array(own, np.int64)[cells.codes]
        for k in range(count + self.pooled + self.flagged):
            yield (place == k).astype(np.float64)


Plan = NumberPlan | WordPlan


def plan_of(cells: Cells, scale: str | None, max_levels: int) -> tuple[Plan | None, list[str]]:
    """Return how to encode a column, None if it is left out, and what to say of it."""
    if isinstance(cells, Other):
        return None, [f"left out: it holds values of the kind {cells.kind}, which no number stands for"]
    if cells.missing.all():
        return None, ["left out: every cell is missing"]
    if isinstance(cells, Words):
        return _word_plan(cells, max_levels)
    return _number_plan(cells, scale)


def _number_plan(cells: Numbers, scale: str | None) -> tuple[Plan | None, list[str]]:
    missing = int(cells.missing.sum())
    present = cells.values[~cells.missing] if missing else cells.values
    low, high = present.min(), present.max()
    varies = bool(low < high)
    if not varies and not missing:
        return None, [f"left out: every cell is {low:g}"]
    some = present[:: -(-len(present) // SEEN_ROWS)]
    fill, centre, unit = float(np.median(some)), 0.0, 1.0
    if scale == "robust" and varies:
        two_valued = bool(((present == low) | (present == high)).all())
        centre, unit = (float(low), float(high - low)) if two_valued else _location_scale(some, fill)
    notes = []
    if missing:
        parts = [f"{cells.infinite:,} infinite"] * bool(cells.infinite)
        parts += [f"{cells.strays:,} words, such as {cells.stray!r}"] * bool(cells.strays)
        of_them = f" ({' and '.join(parts)} among them)" if parts else ""
        notes.append(
            f"{missing:,} of {len(cells.values):,} cells missing{of_them}, filled with the median, {fill:g}, and told "
            "by a column of their own"
        )
    if not varies:
        notes.append(f"left out but for its missing cells: every other is {low:g}")
    return NumberPlan(fill, centre, unit, varies, bool(missing), bool(cells.strays)), notes


def _location_scale(values: np.ndarray, median: float) -> tuple[float, float]:
    """Return median and robust scale, of columns too in which most cells are equal and some of the others wild."""
    with np.errstate(over="ignore"):
        away = np.abs(values - median)
        reach = FAR * np.median(away[away > 0])
        centre, unit = robust_location_scale(np.clip(values, median - reach, median + reach)[:, None])
    found = float(unit[0])
    return float(centre[0]), found if np.isfinite(found) else 1.0


def _word_plan(cells: Words, max_levels: int) -> tuple[Plan | None, list[str]]:
    seen = cells.codes[cells.codes >= 0]
    rows, missing = len(seen), len(cells.codes) - len(seen)
    counts = np.bincount(seen, minlength=len(cells.levels))
    held = np.flatnonzero(counts)
    notes = [f"{missing:,} of {len(cells.codes):,} cells missing, told by a column of their own"] * bool(missing)
    if len(held) == 1:
        only = cells.levels[held[0]]
        if not missing:
            return None, [f"left out: every cell is {_short(only)}"]
        return WordPlan(only, (), flagged=True), notes
    least = max(2.0, min(RARE_ROWS, rows / 10), RARE_SHARE * rows)
    often = np.flatnonzero(counts >= least).tolist()
    if not often:
        return None, [
            f"left out: it has {len(held):,} different words in {rows:,} rows, none of them often enough to learn from"
        ]
    often.sort(key=lambda j: (-counts[j], cells.levels[j]))
    kept = often[: max_levels + 1]
    pooled = len(held) - len(kept)
    if pooled:
        share = 1 - counts[kept].sum() / rows
        what = "the least frequent level" if pooled == 1 else f"the {pooled:,} least frequent levels"
        notes.append(f"{what}, in {share:.2%} of the rows that have one, counted as {POOLED!r}")
    levels = [cells.levels[j] for j in kept]
    return WordPlan(levels[0], tuple(levels[1:]), bool(pooled), bool(missing)), notes


def _short(word: str) -> str:
    return repr(word if len(word) <= 40 else word[:37] + "...")
