"""Rows that stay in files: read block by block, a little ahead of the computation, at every pass.

What must be decoded is decoded once and read back in later passes, where there is room for that (`scratch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.models.base import Rows
from betacores.sources.arrays import padded_block
from betacores.sources.base import LARGEST_CELL, Block, Source
from betacores.sources.crew import hands, side_by_side
from betacores.sources.numbers import Numbers
from betacores.sources.pool import Pool
from betacores.sources.reader import Cut, Raw, Reader, ahead
from betacores.sources.scratch import Scratch

if TYPE_CHECKING:
    from jaxtyping import Float


class FileSource(Source):
    """Rows of files, as a model takes them.

    Parameters
    ----------
    reader
        Reads the files.
    encode
        Makes numbers of a block's responses.
    known
        Rows that need not be read again.
    trust
        How far rows are trusted, if they are not all.
    scratch
        Where rows are kept as they are computed with, if they are.
    """

    def __init__(
        self,
        reader: Reader,
        encode: Callable[[Any], np.ndarray],
        known: Pool | None = None,
        trust: Numbers | None = None,
        scratch: Scratch | None = None,
    ):
        self.reader, self.encode, self.known, self.trust, self.scratch = reader, encode, known, trust, scratch
        self.row_count, self.columns = reader.row_count, reader.columns

    def trusting(self, trust: Any) -> FileSource:
        """Return the same rows, each counting as much less as it is trusted less."""
        source = FileSource(self.reader, self.encode, self.known, trust, self.scratch)
        source.watch, source.journal = self.watch, self.journal
        return source

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield all rows in canonical blocks, read ahead of the computation."""
        return ahead(self._made(*read) for read in self._cuts(first))

    def each(
        self,
        work: Callable[..., Any],
        arguments: tuple,
        combine: Callable[[Any, Any], Any],
        settled: Callable[[Any], Any],
        first: int = 0,
    ) -> Iterator[tuple[int, Any]]:
        """Yield what work on the blocks gives; one thread reads them, and those who work on them put them together."""
        if hands() == 1:
            return super().each(work, arguments, combine, settled, first)

        def made_and_done(read: tuple[Cut, Any], *given: Any) -> Any:
            return work(self._made(*read), *given)

        return side_by_side(made_and_done, ahead(self._cuts(first)), arguments, first)

    def _cuts(self, first: int) -> Iterator[tuple[Cut, Any]]:
        scratch = self.scratch
        for cut in self._kept(scratch, first) if scratch is not None and scratch.whole else self._decoded(first):
            yield cut, None if self.trust is None else self.trust.between(cut.start, cut.start + cut.rows)

    def _kept(self, scratch: Scratch, first: int) -> Iterator[Cut]:
        self.reader.check_unchanged()
        for start in range(first * self.block_rows, self.row_count, self.block_rows):
            count = min(self.block_rows, self.row_count - start)
            yield Cut(start, count, partial(self._read_back, scratch, start, count))

    def _read_back(self, scratch: Scratch, start: int, count: int) -> Rows:
        x, y = scratch.read(start, count)
        if y is None:
            return Rows(x)
        return Rows(x, y.astype(np.float32) if self.reader.response == "words" else self.encode(y))

    def _decoded(self, first: int) -> Iterator[Cut]:
        for cut in self.reader.cuts(first):
            yield cut._replace(made=partial(self._as_kept, cut), exact=None)

    def _as_kept(self, cut: Cut) -> Rows:
        rows = self.encoded(cut.made())
        # Numbers were kept by the check, which knows no labels yet; words are, as they are encoded.
        if self.scratch is not None and self.reader.response == "words":
            self.scratch.write(rows.x, rows.y, cut.start)
        return rows

    def _made(self, cut: Cut, trust: Any) -> Block:
        weights = np.ones(cut.rows, np.float32) if trust is None else trust
        return padded_block(cut.made(), weights, trust, cut.start, self.block_rows)

    def encoded(self, raw: Raw) -> Rows:
        """Return rows as the model takes them."""
        x = raw.x
        if x.size and (x.max() > LARGEST_CELL or x.min() < -LARGEST_CELL):
            x = np.clip(x, -LARGEST_CELL, LARGEST_CELL)
        return Rows(np.asarray(x, np.float32), None if raw.y is None else self.encode(raw.y))

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers; those that are not known are read."""
        if self.known is not None and self.known.holds(ids):
            return self.known.take(ids)
        order = np.unique(ids)
        found = Pool(order, self.encoded(self.reader.rows(order)), np.ones(len(order), np.float32))
        return found.take(ids)

    def as_given(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows by their numbers as the files have them."""
        order, back = np.unique(ids, return_inverse=True)
        if not len(order):
            return np.zeros((0, len(self.columns))), None
        raw = self.reader.rows(order)
        return raw.x[back], None if raw.y is None else raw.y[back]

    def weights_of(self, ids: np.ndarray) -> Float[np.ndarray, " n"]:
        """Return how much rows count, by their numbers."""
        return np.ones(len(ids), np.float32) if self.trust is None else self.trust.at(ids)

    def as_array(self, numbers: Numbers | None) -> Any:
        """Return numbers in a file as an array that is read as it is looked at."""
        return None if numbers is None else numbers.mapped()

    def identity(self) -> Any:
        """Return what tells the files from others."""
        return self.reader.identity()

    def keep(self, parts_from: Callable[[int], Iterable[np.ndarray]], arguments: tuple) -> Numbers:
        """Return numbers that come block by block as a file of them."""
        if self.journal is None:
            numbers = Numbers(None, self.row_count, self.block_rows)
        else:
            numbers = self.journal.numbers(arguments, self.row_count, self.block_rows)
        return numbers.filled(parts_from)
