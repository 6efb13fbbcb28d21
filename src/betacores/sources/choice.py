"""Rows picked out of all in one pass: those of greatest priority, and those asked for by number.

Every block gives its own best rows, and of two sets of best rows the better are kept, so that the pass is a fold like
any other and holds few more rows than are wanted. Equal priorities are settled by row numbers: what is picked does not
depend on how the rows were read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows
from betacores.sampling import mixed
from betacores.sources.base import Block, Source, fold
from betacores.sources.device import gathered
from betacores.sources.pool import Pool

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int, UInt32

NEVER = -np.inf
# Rows that are held beyond those wanted before the worst are let go, by the number wanted.
WAITING = 0.25


class Choice(NamedTuple):
    """What a pass picked: a pool for every priority, the rows asked for, and sums over all rows."""

    best: list[Pool]
    asked: Pool
    sums: Float[np.ndarray, " k"]


def choose(
    source: Source,
    look: Callable[..., tuple[Any, Any]],
    counts: tuple[int, ...],
    asked: Int[np.ndarray, " a"],
    *arguments: Any,
) -> Choice:
    """Return the rows of greatest priority, as many as wanted of each kind, and rows asked for by number.

    Parameters
    ----------
    source
        The rows.
    look
        `look(rows, weights, trust, start, length, *arguments)` returns priorities, one array a kind, −∞ for rows that
        are never to be picked, and an array of sums over the block.
    counts
        How many rows of each kind are wanted.
    asked
        Numbers of further rows, in order.
    """
    edges = Edges(counts)
    everything = fold(source, best_of_block, (look, edges, asked, *arguments), _Better(edges), as_it_is)
    *kept, sums = everything
    pools = [_pool(_cut(kept[5 * k : 5 * k + 5], most)) for k, most in enumerate((*counts, len(asked)))]
    return Choice(pools[:-1], pools[-1], sums)


def best_of_block(block: Block, look: Callable[..., Any], edges: Edges, asked: np.ndarray, *arguments: Any) -> tuple:
    """Return the rows of a block that may be among the best of all, those that were asked for, and sums."""
    priorities, sums = look(
        block.rows, block.weights, block.trust, two_words(block.start), np.int32(block.length), *arguments
    )
    on_host = isinstance(block.rows.x, np.ndarray)
    kept: list[Any] = []
    for count, edge, priority in zip(edges.counts, edges.least, priorities, strict=True):
        largest = _largest if on_host else _largest_on_device
        kept += _rows_at(block, *largest(priority, block.length, count, edge))
    first, last = np.searchsorted(asked, [block.start, block.start + block.length])
    places = asked[first:last] - block.start
    kept += _rows_at(block, places, np.zeros(len(places), np.float32))
    return (*kept, np.asarray(sums, np.float64))


def _largest(priority: Any, length: int, count: int, edge: float) -> tuple[np.ndarray, np.ndarray]:
    """Return where the largest of a block's priorities are, and their values; none below what is known to be beaten."""
    values = np.asarray(priority)[:length]
    places = np.flatnonzero(values >= edge if edge > NEVER else values > NEVER)
    if len(places) > count:
        edge = np.partition(values[places], -count)[-count]
        # All that tie at the edge: row numbers settle it, when all are put together.
        places = places[values[places] >= edge]
    return places, values[places]


def _largest_on_device(priority: Any, length: int, count: int, edge: float) -> tuple[np.ndarray, np.ndarray]:
    values, places = (np.asarray(a) for a in _top(priority, min(count, len(priority))))
    real = (values > NEVER) & (values >= edge) & (places < length)
    return places[real], values[real]


@partial(jax.jit, static_argnames="count")
def _top(priority: Float[Array, " n"], count: int) -> tuple[Float[Array, " count"], Int[Array, " count"]]:
    """Return the largest numbers and where they are."""
    together = 64
    groups = len(priority) // together
    if groups < 2 * count or len(priority) % together:
        return jax.lax.top_k(priority, count)
    # They are in the groups with the largest maxima: two short sorts in place of a long one.
    table = priority.reshape(groups, together)
    _, best = jax.lax.top_k(table.max(1), count)
    best = jnp.sort(best)
    values, places = jax.lax.top_k(table[best].ravel(), count)
    return values, best[places // together] * together + places % together


def _rows_at(block: Block, places: np.ndarray, priority: np.ndarray) -> list[np.ndarray]:
    arrays: tuple[Any, ...] = (*block.rows, block.weights)
    x: Any
    if isinstance(block.rows.x, np.ndarray):
        x, y, weights = (None if array is None else array[places] for array in arrays)
    else:
        x, y, weights = gathered(arrays, places)
    response = np.zeros((len(places), 0), np.float32) if y is None else y[:, None]
    return [block.start + places.astype(np.int64), priority, x, response, weights]


class Edges:
    """How many rows of each kind are wanted, and the least priority of those picked so far, once they are as many.

    A row below it is beaten for good. Whoever looks at a block reads what is known by then, if he is told at all: what
    is picked in the end does not depend on it.
    """

    def __init__(self, counts: tuple[int, ...]):
        self.counts, self.least = counts, [NEVER] * len(counts)

    def __repr__(self) -> str:
        """Tell it from others by what is wanted, whatever was seen."""
        return f"best {self.counts}"


class _Better:
    """Puts two sets of picked rows together."""

    def __init__(self, edges: Edges):
        self.edges = edges

    def __call__(self, one: tuple, other: tuple) -> tuple:
        """Return the better rows of two sets."""
        kept: list[Any] = []
        for kind, k in enumerate(range(0, len(one) - 1, 5)):
            both = [np.concatenate([a, b]) for a, b in zip(one[k : k + 5], other[k : k + 5], strict=True)]
            # The longer one waits, the fewer times rows are copied; and the more are let in that are beaten already.
            if kind < len(self.edges.counts) and len(both[0]) > (1 + WAITING) * self.edges.counts[kind]:
                both = _cut(both, self.edges.counts[kind])
                self.edges.least[kind] = float(both[1].min(initial=np.inf))
            kept += both
        return (*kept, one[-1] + other[-1])


def _cut(kept: list[np.ndarray], count: int) -> list[np.ndarray]:
    ids, priority = kept[:2]
    if len(ids) <= count:
        return kept
    if not count:
        return [part[:0] for part in kept]
    edge = np.partition(priority, -count)[-count]
    better, equal = np.flatnonzero(priority > edge), np.flatnonzero(priority == edge)
    # Of rows that tie at the edge those of the lowest numbers.
    equal = equal[np.argsort(ids[equal], kind="stable")[: count - len(better)]]
    places = np.sort(np.concatenate([better, equal]))
    return [part[places] for part in kept]


def as_it_is(result: tuple) -> tuple:
    """Return what a block gave: rows and sums, settled already."""
    return result


def _pool(kept: tuple | list) -> Pool:
    ids, _, x, y, weights = kept
    order = np.argsort(ids)
    return Pool(ids[order], Rows(x[order], y[order, 0] if y.shape[1] else None), weights[order])


def uniforms(words: UInt32[Array, "2"], start: UInt32[Array, "2"], count: int) -> Float[Array, " n"]:
    """Return a random number in (0, 1] for each of consecutive rows, by key and row number alone; fine near 0.

    Parameters
    ----------
    words
        The key: two random words.
    start
        Number of the first row, as `two_words` writes it.
    count
        Number of rows.
    """
    number = start[0] + jnp.arange(count, dtype=jnp.uint32)
    coarse, fine = (mixed(mixed(number ^ word) + mixed(start[1] ^ ~word)) for word in words)
    # The second word is what 32 bits leave of a billion rows' smallest numbers.
    return (coarse.astype(jnp.float32) + (fine.astype(jnp.float32) + 1) * np.float32(2**-32)) * np.float32(2**-32)


def two_words(number: int) -> UInt32[np.ndarray, "2"]:
    """Return a row number as its lower and upper 32 bits."""
    return np.array([number & 0xFFFFFFFF, number >> 32], np.uint32)
