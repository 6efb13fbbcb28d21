"""Where rows come from, and the passes over them."""

from betacores.sources.arrays import ArraySource
from betacores.sources.base import WIDE, Block, Source, block_program, by_chunks, collect, fold, over_chunks, reduce
from betacores.sources.choice import Choice, choose
from betacores.sources.pool import Pool

__all__ = [
    "WIDE",
    "ArraySource",
    "Block",
    "Choice",
    "Pool",
    "Source",
    "block_program",
    "by_chunks",
    "choose",
    "collect",
    "fold",
    "over_chunks",
    "reduce",
]
