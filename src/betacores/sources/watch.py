"""Who is told of passes over the rows: what for, how far, and how many there were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Watch:
    """Counts passes, and tells a callback how far each is.

    Attributes
    ----------
    callback
        Called with what is being done, the number of rows seen and the number of all rows.
    stage
        What is being done.
    passes
        Number of passes for each stage.
    """

    callback: Callable[[str, int, int], None] | None = None
    stage: str = ""
    passes: dict[str, int] = field(default_factory=dict)
    _rows: int = 0

    def begins(self, rows: int) -> None:
        """Note that a pass begins."""
        self._rows = rows
        self.saw(0)

    def saw(self, rows: int) -> None:
        """Tell how many rows of the pass have been seen."""
        if self.callback is not None:
            self.callback(self.stage, rows, self._rows)

    def ends(self) -> None:
        """Note that a pass is over."""
        self.passes[self.stage] = self.passes.get(self.stage, 0) + 1
