"""Ctrl-C while rows are chosen: the first ends the choice after the current step and keeps it, the second ends at once.

The constructions take a `KeyboardInterrupt` out of their progress callback as the wish to stop with what they have. The
signal itself may come at any time, so it only leaves word, and the callback speaks up between two steps. Before the
first step there is nothing to keep, and the signal ends the command; so does a second one. Both do that by an exception
that no construction takes for a wish to stop. Where Python drops exceptions (the collector's callbacks, finalizers) it
would be lost and the wish with it, so the signal is sent again a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from betacores.cli.outcome import Ended, complain

# Seconds until a signal whose exception was dropped is sent again.
AGAIN = 0.02


class Interruption:
    """Heeds Ctrl-C inside a ``with`` block."""

    def __init__(self) -> None:
        self.found_rows = self.asked = self.heeded = self.ending = False
        self._before: Any = None
        self._dropped: Any = None
        self._again: threading.Timer | None = None

    def __enter__(self) -> Interruption:
        # Signals are for the main thread; elsewhere nobody presses keys.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._signalled)
            self._dropped, sys.unraisablehook = sys.unraisablehook, self._send_again
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            if self._again is not None:
                self._again.cancel()
            sys.unraisablehook = self._dropped
            signal.signal(signal.SIGINT, self._before)

    def watched(self, progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
        """Return a progress callback that passes the interruption on."""

        def step(done: int, total: int) -> None:
            progress(done, total)
            self.found_rows = True
            if self.asked and not self.heeded:
                self.heeded = True
                raise KeyboardInterrupt

        return step

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.asked or self.ending or not self.found_rows:
            self.ending = True
            raise Ended
        self.asked = True
        complain("stopping after this step; Ctrl-C again ends at once.", "yellow")

    def _send_again(self, dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, Ended):
            self._dropped(dropped)
            return
        # By a thread, in a while: here and now the exception would be dropped again.
        main = threading.get_ident()
        self._again = threading.Timer(AGAIN, signal.pthread_kill, (main, signal.SIGINT))
        self._again.daemon = True
        self._again.start()
