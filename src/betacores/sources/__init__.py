"""Where rows come from, and the passes over them."""

from betacores.sources.arrays import ArraySource
from betacores.sources.base import Block, Source, by_chunks, collect, fold, over_chunks, reduce
from betacores.sources.choice import Choice, choose
from betacores.sources.pool import Pool

__all__ = [
    "ArraySource",
    "Block",
    "Choice",
    "Pool",
    "Source",
    "by_chunks",
    "choose",
    "collect",
    "fold",
    "over_chunks",
    "reduce",
]
