"""The table a coreset was made of, for those who want to look at its rows again: reports, explanations, exports."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Origin:
    """The table a coreset was made of. Held in memory beside the coreset, never written with it.

    Attributes
    ----------
    x, y
        Every row as the model was shown it, in the units of the table: columns as `Coreset.columns`, and the response.
    frame
        The table as it was handed in, with words, missing cells and columns that were left out; None if it was an
        array, or ``x`` is all there is to see.
    sources
        For every column of ``x`` the column of ``frame`` it was made from.
    target
        What the response is called; None if nobody said.
    """

    x: Float[np.ndarray, "rows columns"]
    y: np.ndarray | None
    frame: Any = None
    sources: list[str] = field(default_factory=list)
    target: str | None = None
