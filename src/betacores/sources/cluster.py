"""Rows on a Dask cluster: blocks stay on the workers, and only sums and picked rows travel.

A Dask collection comes in partitions of any length. Every worker makes of its partitions the canonical blocks that
begin there, with the first rows of the next partition where a block reaches over; so a block holds the same rows as it
would from a file, and gives the same sums. A pass is one task a partition; a worker that dies takes nothing with it but
time, since its partitions are made again on another. Every wait has a limit.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from betacores.models.base import Rows
from betacores.precision import single_precision
from betacores.sources.arrays import padded_block
from betacores.sources.base import BLOCK_ROWS, Block, Source
from betacores.sources.pool import Pool

if TYPE_CHECKING:
    from jaxtyping import Float

# Seconds without any worker, and without any task finished, after which a run is given up.
NO_WORKERS, NO_PROGRESS = 60.0, 1800.0
LOST = "client: the connection to the cluster is lost; start it again."


class Chunk(NamedTuple):
    """Consecutive canonical blocks on a worker: rows as the model takes them, from a row number on."""

    x: np.ndarray
    y: np.ndarray | None
    start: int


class Named(NamedTuple):
    """A function by its name: compiled functions do not travel, and a worker that has one keeps its program."""

    module: str
    name: str

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Named:
        """Return the name of a module's function."""
        return cls(function.__module__, function.__qualname__)

    def found(self) -> Callable[..., Any]:
        """Return the function of this name."""
        return getattr(importlib.import_module(self.module), self.name)


class ClusterSource(Source):
    """Rows of a Dask collection, as a model takes them.

    Parameters
    ----------
    client
        The cluster.
    chunks
        Futures of `Chunk`, in order.
    firsts
        Number of each chunk's first block.
    row_count, columns
        Number of rows, and names of the covariates.
    about
        What tells the collection from another.
    given
        Returns rows as the collection has them, by their numbers in order.
    known
        Rows that need not be asked for.
    trust
        Futures of how far the rows of each chunk are trusted; None if they are all.
    """

    def __init__(
        self,
        client: Any,
        chunks: list[Any],
        firsts: list[int],
        row_count: int,
        columns: list[str],
        about: Any,
        given: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None]],
        known: Pool | None = None,
        trust: list[Any] | None = None,
    ):
        self.client, self.chunks, self.firsts, self.about, self.given = client, chunks, firsts, about, given
        self.row_count, self.columns, self.known, self.trust = row_count, columns, known, trust

    def trusting(self, trust: Any) -> ClusterSource:
        """Return the same rows, each counting as much less as it is trusted less."""
        source = ClusterSource(
            self.client,
            self.chunks,
            self.firsts,
            self.row_count,
            self.columns,
            self.about,
            self.given,
            self.known,
            trust,
        )
        source.watch, source.journal = self.watch, self.journal
        return source

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield blocks brought here; for looking at them, not for passes."""
        for k, chunk in enumerate(self.chunks):
            last = self.firsts[k + 1] if k + 1 < len(self.chunks) else self.block_count
            if last > first:
                trust = None if self.trust is None else self.trust[k].result()
                yield from _blocks(chunk.result(), trust, max(first, self.firsts[k]))

    def each(
        self,
        work: Callable[..., Any],
        arguments: tuple,
        combine: Callable[[Any, Any], Any],
        settled: Callable[[Any], Any],
        first: int = 0,
    ) -> Iterator[tuple[int, Any]]:
        """Yield what the work on each chunk gave, in order; workers do them side by side."""
        ends = [*self.firsts[1:], self.block_count]
        rest = [k for k, end in enumerate(ends) if end > first]
        check_connected(self.client)
        # A task of its own, so that it is sent once to each worker, and made again if it is lost.
        sent = self.client.submit(_as_sent, [Named.of(a) if callable(a) else a for a in arguments], pure=False)
        tasks = [
            self.client.submit(
                _work,
                self.chunks[k],
                None if self.trust is None else self.trust[k],
                max(first, self.firsts[k]),
                Named.of(work),
                Named.of(settled),
                combine,
                sent,
                pure=False,
            )
            for k in rest
        ]
        for k, result in zip(rest, in_order(self.client, tasks), strict=True):
            yield ends[k], result

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers; those that are not known are asked for where they are."""
        if self.known is not None and self.known.holds(ids):
            return self.known.take(ids)
        from betacores.sources.choice import choose

        order = np.unique(ids)
        return choose(self, nothing, (), order).asked.take(ids)

    def as_given(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows by their numbers as the collection has them."""
        order, back = np.unique(ids, return_inverse=True)
        x, y = self.given(order)
        return x[back], None if y is None else y[back]

    def as_array(self, numbers: Any) -> Any:
        """Return numbers that are on the workers as a Dask array."""
        if numbers is None:
            return None
        import dask.array as da

        ends = [*(BLOCK_ROWS * first for first in self.firsts[1:]), self.row_count]
        lengths = np.diff([0, *ends])
        parts = zip(numbers, lengths.tolist(), strict=True)
        return da.concatenate([da.from_delayed(part, (length,), np.float32) for part, length in parts])

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers; asked for before any is trusted less."""
        if self.trust is not None:
            raise NotImplementedError("weights of single rows stay on the workers")
        return np.ones(len(ids), np.float32)

    def keep(self, parts_from: Callable[[int], Iterable[np.ndarray]], arguments: tuple) -> Any:
        """Return futures of numbers, one a row, that stay on the workers."""
        del parts_from
        function, *rest = arguments
        check_connected(self.client)
        tasks = [self.client.submit(_numbers_of, chunk, Named.of(function), rest, pure=False) for chunk in self.chunks]
        done = list(in_order(self.client, [self.client.submit(len, task) for task in tasks]))
        if sum(done) != self.row_count:
            raise RuntimeError(f"data: the partitions have {sum(done)} rows now, and had {self.row_count}; run again.")
        return tasks

    def identity(self) -> Any:
        """Return what tells the collection from another."""
        return self.about


def in_order(client: Any, tasks: list[Any]) -> Iterator[Any]:
    """Yield the results of tasks in order; give up if there is nobody to do them, or nothing gets done."""
    from distributed import TimeoutError as Waited

    moved = seen = time.monotonic()
    finished = 0
    for task in tasks:
        while True:
            try:
                result = task.result(timeout=1.0)
                break
            except CancelledError:
                raise ConnectionError(LOST) from None
            except (Waited, TimeoutError):
                now = time.monotonic()
                count = sum(other.status == "finished" for other in tasks)
                moved, finished = (now, count) if count > finished else (moved, finished)
                check_connected(client)
                seen = now if client.scheduler_info(n_workers=-1)["workers"] else seen
                if now - seen > NO_WORKERS:
                    raise TimeoutError(
                        f"client: the cluster has had no worker for {NO_WORKERS:.0f} seconds; start some."
                    ) from None
                if now - moved > NO_PROGRESS:
                    raise TimeoutError(
                        f"client: no task was finished for {NO_PROGRESS:.0f} seconds; look at the cluster's dashboard."
                    ) from None
        yield result


def check_connected(client: Any) -> None:
    """Complain if the cluster is no longer there."""
    if client.status != "running":
        raise ConnectionError(LOST) from None


def nothing(rows: Rows, weights: Any, trust: Any, start: Any, length: Any) -> tuple[tuple, np.ndarray]:
    """Look for nothing: a pass that only brings rows along."""
    del rows, weights, trust, start, length
    return (), np.zeros(1)


def _as_sent(given: list[Any]) -> list[Any]:
    return given


def _work(
    chunk: Chunk,
    trust: Any,
    first: int,
    work: Named,
    settled: Named,
    combine: Callable[[Any, Any], Any],
    given: list[Any],
) -> Any:
    """Do the work on the blocks of a chunk, and put what they give together; on a worker."""
    arguments = [one.found() if isinstance(one, Named) else one for one in given]
    function, settle, state = work.found(), settled.found(), None
    with single_precision():
        for block in _blocks(chunk, trust, first):
            part = settle(function(block, *arguments))
            state = part if state is None else combine(state, part)
    return state


def _numbers_of(chunk: Chunk, function: Named, given: list[Any]) -> np.ndarray:
    found = function.found()
    with single_precision():
        parts = [np.asarray(found(b.rows, *given))[: b.length] for b in _blocks(chunk, None, chunk.start // BLOCK_ROWS)]
    return np.concatenate(parts)


def _blocks(chunk: Chunk, trust: Any, first: int) -> Iterator[Block]:
    for start in range(first * BLOCK_ROWS - chunk.start, len(chunk.x), BLOCK_ROWS):
        part = slice(start, min(start + BLOCK_ROWS, len(chunk.x)))
        trusted = None if trust is None else trust[part]
        weights = np.ones(part.stop - part.start, np.float32) if trusted is None else trusted
        rows = Rows(chunk.x[part], None if chunk.y is None else chunk.y[part])
        yield padded_block(rows, weights, trusted, chunk.start + start, BLOCK_ROWS)
