"""Summaries of summaries: sites that cannot share rows, days of a stream.

`merge` puts several coresets together, `update` one coreset and new rows.
"""

from betacores.merging.joining import merge
from betacores.merging.stream import update

__all__ = ["merge", "update"]
