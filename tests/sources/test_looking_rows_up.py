"""Rows looked up in Parquet files by number are those of the table, and nothing of their precision is lost."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from betacores.examination import Encoding
from betacores.sources.extremes import Extremes, extremes_of
from betacores.sources.parquet import ParquetReader
from betacores.sources.reader import Cut, Raw

ROWS = 500


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    return pa.table(
        {
            "a": random.standard_normal(ROWS),
            "b": random.integers(0, 2**40, ROWS),
            "c": random.standard_normal(ROWS).astype(np.float32),
            "word": random.choice(["no", "yes"], ROWS),
        }
    )


@pytest.fixture
def folder(table, tmp_path):
    for k, (start, stop) in enumerate([(0, 130), (130, 131), (131, ROWS)]):
        pq.write_table(table.slice(start, stop - start), tmp_path / f"part{k}.parquet", row_group_size=50)
    return tmp_path


@pytest.mark.parametrize("target", ["word", "c"])
@pytest.mark.parametrize("least", [None, 0.0])
def test_rows_are_found_by_number(table, folder, target, least):
    names = ["a", "b"]
    reader = ParquetReader(
        folder, columns=names, target=target, filter=None if least is None else ds.field("a") > least
    )
    whole = table if least is None else table.filter(ds.field("a") > least)
    ids = np.random.default_rng(1).choice(whole.num_rows, 60, replace=False)
    found = reader.rows(ids)
    expected = whole.take(np.sort(ids))
    np.testing.assert_array_equal(found.x, np.column_stack([expected[name].to_numpy() for name in names]))
    assert found.x.dtype == np.float64
    assert found.y.tolist() == expected[target].to_pylist()


@pytest.mark.parametrize("rows", [64, 65, 640, 1])
def test_extremes_of_columns(rows):
    x = np.random.default_rng(rows).standard_normal((rows, 3))
    low, high = extremes_of(x)
    np.testing.assert_array_equal(low, x.min(0))
    np.testing.assert_array_equal(high, x.max(0))


def test_extremes_tell_of_what_is_no_number():
    x = np.zeros((128, 2))
    x[77, 1] = np.nan
    low, high = extremes_of(x)
    assert np.isnan([low[1], high[1]]).all()
    assert low[0] == high[0] == 0


def test_two_labels_are_minus_and_plus_one():
    labels = np.array([2.0, 5.0])
    np.testing.assert_array_equal(Encoding(labels)(np.array([5.0, 2.0, 2.0])), np.float32([1, -1, -1]))


def test_columns_that_single_precision_takes_for_constant_are_looked_at_exactly():
    # In turn: alike to single precision, constant, and apart in it from the second block on.
    x = np.column_stack([1 + 1e-12 * np.arange(192), np.full(192, 0.1), np.repeat([0.0, 3.0, 3.0], 64)])
    found, asked = Extremes(3), []

    def cut(block):
        cells = x[64 * block : 64 * (block + 1)]
        return Cut(64 * block, 64, None, lambda: asked.append(block) or Raw(cells, None, 64 * block))

    for block in range(3):
        below, above = extremes_of(x[64 * block : 64 * (block + 1)].astype(np.float32))
        found.add(below, above, cut(block))
    np.testing.assert_array_equal(found.low, x.min(0))
    np.testing.assert_array_equal(found.high, x.max(0))
    assert asked == [0, 1, 2]


def test_columns_that_single_precision_tells_apart_are_not_looked_at_again():
    x = np.random.default_rng(0).standard_normal((128, 2)).astype(np.float32)
    found = Extremes(2)
    found.add(*extremes_of(x), Cut(0, 128, None, lambda: pytest.fail("nobody needs to know")))
    np.testing.assert_array_equal([found.low, found.high], [x.min(0), x.max(0)])
