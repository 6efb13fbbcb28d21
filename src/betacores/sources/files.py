"""Rows that stay in files: read block by block, a little ahead of the computation, at every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from betacores.models.base import Rows
from betacores.sources.arrays import padded_block
from betacores.sources.base import LARGEST_CELL, Block, Source
from betacores.sources.numbers import Numbers
from betacores.sources.pool import Pool
from betacores.sources.reader import Raw, Reader, ahead

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
    """

    def __init__(
        self,
        reader: Reader,
        encode: Callable[[Any], np.ndarray],
        known: Pool | None = None,
        trust: Numbers | None = None,
    ):
        self.reader, self.encode, self.known, self.trust = reader, encode, known, trust
        self.row_count, self.columns = reader.row_count, reader.columns

    def trusting(self, trust: Any) -> FileSource:
        """Return the same rows, each counting as much less as it is trusted less."""
        source = FileSource(self.reader, self.encode, self.known, trust)
        source.watch, source.journal = self.watch, self.journal
        return source

    def blocks(self, first: int = 0) -> Iterator[Block]:
        """Yield all rows in canonical blocks, read ahead of the computation."""
        return ahead(self._read(first))

    def _read(self, first: int) -> Iterator[Block]:
        for raw in self.reader.blocks(first):
            rows, count = self.encoded(raw), len(raw.x)
            trust = None if self.trust is None else self.trust.between(raw.start, raw.start + count)
            weights = np.ones(count, np.float32) if trust is None else trust
            yield padded_block(rows, weights, trust, raw.start, self.block_rows)

    def encoded(self, raw: Raw) -> Rows:
        """Return rows as the model takes them."""
        x = raw.x
        if x.size and (x.max() > LARGEST_CELL or x.min() < -LARGEST_CELL):
            x = np.clip(x, -LARGEST_CELL, LARGEST_CELL)
        return Rows(np.asarray(x, np.float32), None if raw.y is None else self.encode(raw.y))

    def take(self, ids: np.ndarray) -> Rows:
        """Return rows by their numbers; those that are not known are read."""
        if self.known is not None and np.isin(ids, self.known.ids).all():
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
