"""Where rows come from, and the passes over them."""

from betacores.sources.arrays import ArraySource
from betacores.sources.base import Block, Source, by_chunks, collect, over_chunks, reduce

__all__ = ["ArraySource", "Block", "Source", "by_chunks", "collect", "over_chunks", "reduce"]
