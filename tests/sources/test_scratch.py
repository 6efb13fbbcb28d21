"""Rows decoded once and read back: the same coreset, only where there is room, and nothing that stays behind."""

import contextlib
import gc
import os
import stat
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scale_tables import QUICK, arrow_table, assert_identical, logistic_table, written

import betacores as bc
from betacores.sources import scratch
from betacores.sources.base import BLOCK_ROWS
from betacores.sources.npy import NpyReader
from betacores.sources.parquet import ParquetReader
from betacores.sources.scratch import Scratch, scratch_for

pytestmark = pytest.mark.skipif(not hasattr(os, "pwritev"), reason="the system does not write at places of a file")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    x, y = logistic_table()
    return written(arrow_table(x, y=y), tmp_path_factory.mktemp("rows") / "rows.parquet")


@pytest.fixture
def decoded(monkeypatch):
    """The numbers of the first blocks of the passes that decoded the file."""
    passes = []

    def noted(self, first=0):
        passes.append(first)
        return cuts(self, first)

    cuts = ParquetReader.cuts
    monkeypatch.setattr(ParquetReader, "cuts", noted)
    return passes


@pytest.mark.parametrize("kind", ["numbers", "words", "long numbers", "large cells", "none"])
def test_the_file_is_decoded_once_and_the_coreset_is_that_of_decoding_it_in_all_passes(
    kind, decoded, tmp_path, monkeypatch
):
    x, y = logistic_table()
    # Numbers that double precision does not tell apart are not kept; words are, by the pass after the check.
    labels = {"words": np.array(["no", "yes"])[y], "long numbers": 2**60 + y}.get(kind, y)
    if kind == "large cells":
        x = x.astype(np.float64)
        x[7, 0], x[-1, 2] = 1e300, -1e13
    file = written(arrow_table(x, **({} if kind == "none" else {"y": labels})), tmp_path / "rows.parquet")
    settings = {**QUICK, "target": None if kind == "none" else "y"}
    coreset = bc.summarize(file, **settings)
    passes = sum(coreset.info.passes.values())
    assert passes > 3
    assert len(decoded) == {"words": 2, "long numbers": passes}.get(kind, 1)
    decoded.clear()
    monkeypatch.setattr(scratch, "MOST_BYTES", 0)
    again = bc.summarize(file, **settings)
    assert len(decoded) == passes
    assert_identical(coreset, again)


@pytest.mark.parametrize("responds", [True, False])
def test_blocks_come_back_as_they_were_whatever_the_order_they_were_written_in(responds):
    rows, columns = 2 * BLOCK_ROWS + 17, 3
    x = np.random.default_rng(0).normal(size=(rows, columns)).astype(np.float32)
    y = np.random.default_rng(1).normal(size=rows) if responds else None
    kept = Scratch(rows, columns, responds, BLOCK_ROWS)
    for start in (2 * BLOCK_ROWS, 0, BLOCK_ROWS):
        assert not kept.whole
        part = slice(start, start + BLOCK_ROWS)
        kept.write(x[part].astype(np.float64), None if y is None else y[part], start)
    assert kept.whole
    for start in (0, BLOCK_ROWS, 2 * BLOCK_ROWS):
        part = slice(start, start + BLOCK_ROWS)
        cells, response = kept.read(start, min(BLOCK_ROWS, rows - start))
        np.testing.assert_array_equal(cells, x[part])
        assert (response is None) if y is None else np.array_equal(response, y[part])
        # Where it begins lets JAX take it without another copy.
        assert cells.ctypes.data % 64 == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_what_the_disk_has_no_room_for_is_decoded_again():
    """A device that is always full stands for the disk."""
    kept = Scratch(2 * BLOCK_ROWS, 1, False, BLOCK_ROWS)
    kept._file.close()
    cells = np.ones((BLOCK_ROWS, 1), np.float32)
    with open("/dev/full", "r+b", buffering=0) as full:
        kept._file = full
        kept.write(cells, None, 0)
    # Nor are others kept from then on: without the first they are of no use.
    with tempfile.TemporaryFile() as kept._file:
        kept.write(cells, None, BLOCK_ROWS)
        assert os.fstat(kept._file.fileno()).st_size == 0
        assert not kept.whole


def test_a_file_that_changes_is_found_out_though_its_rows_are_kept(file, tmp_path):
    path = Path(tmp_path / "rows.parquet")
    path.write_bytes(file.read_bytes())

    def touched(stage, seen, rows):
        if stage == "survey":
            os.utime(path, ns=(0, 0))

    with pytest.raises(OSError, match="has changed since the run began"):
        bc.summarize(path, target="y", on_pass=touched, **QUICK)


class TestNoCopy:
    def test_of_a_table_that_is_large_against_memory_or_disk(self, file, monkeypatch):
        reader = ParquetReader(file, target="y")
        assert scratch_for(reader, BLOCK_ROWS) is not None
        for name in ("MOST_BYTES", "OF_MEMORY", "OF_DISK"):
            with monkeypatch.context() as patch:
                patch.setattr(scratch, name, 1e-9)
                assert scratch_for(reader, BLOCK_ROWS) is None

    @pytest.mark.skipif(scratch._kind_of_disk("/dev/shm") != "tmpfs", reason="no folder is in memory here")
    def test_in_memory(self, file, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
        assert scratch_for(ParquetReader(file, target="y"), BLOCK_ROWS) is None

    def test_where_nothing_can_be_written(self, file, tmp_path, monkeypatch):
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
        assert scratch_for(ParquetReader(file, target="y"), BLOCK_ROWS) is None

    def test_of_what_is_numbers_already(self, tmp_path):
        np.save(tmp_path / "x.npy", np.ones((100, 2), np.float32))
        assert scratch_for(NpyReader(tmp_path / "x.npy"), BLOCK_ROWS) is None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_the_copy_goes_with_the_run(file):
    def unnamed():
        """Return the bytes of open files that have no name any longer."""
        gc.collect()
        total = 0
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                found = os.fstat(int(name))
                total += found.st_size * (stat.S_ISREG(found.st_mode) and found.st_nlink == 0)
        return total

    before = unnamed()
    coreset = bc.summarize(file, target="y", **QUICK)
    # What may stay, as long as the coreset does, is one number a row: its scores.
    assert unnamed() <= before + 4 * len(coreset.scores)
