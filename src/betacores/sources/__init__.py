"""Where rows come from, and the passes over them."""

from betacores.sources.arrays import ArraySource
from betacores.sources.base import Block, Source, collect, reduce

__all__ = ["ArraySource", "Block", "Source", "collect", "reduce"]
