"""Tables on disk that are read into memory: what is wrong with a row is said with its file all the same."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from scale_tables import NAMES, QUICK, arrow_table, in_pieces, logistic_table

import betacores as bc
from betacores.opening import opened
from betacores.sources.base import BLOCK_ROWS

X, Y = logistic_table(1200)
CUTS, BAD = [400, 800], 950
PLACE = "part-002.parquet, row 150"

WAYS = {
    "few rows": {},
    "a method that does not stream": {"method": "giga", "beta": 0, "size": 8},
    "groups": {"groups": "town", "max_groups": 2, "beta": 0.5},
}


def refused(folder, *words, **given):
    with pytest.raises(ValueError, match="parquet, row") as caught:
        bc.summarize(folder, target="y", **{"guard": None, **given})
    for word in words:
        assert word in str(caught.value)


@pytest.fixture
def folder(tmp_path):
    def made(x=X, y=Y):
        in_pieces(arrow_table(x, y=y, town=np.arange(len(x)) // 300), tmp_path / "rows", CUTS)
        return tmp_path / "rows"

    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_cell_that_is_no_number(folder, way, value):
    x = X.copy()
    x[BAD, 1] = value
    refused(folder(x), f"{PLACE}, column 'b' is {value}", "filter=", **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_response_that_is_missing(folder, way):
    numbers, words = Y.astype(float), np.array(["no", "yes"])[Y].tolist()
    numbers[BAD], words[BAD] = np.nan, None
    refused(folder(y=numbers), "y: ", f"{PLACE} is nan", "filter=", **WAYS[way])
    refused(folder(y=words), "y: ", f"{PLACE} is missing", **WAYS[way])


def test_response_that_is_no_count(folder):
    y = Y.copy()
    y[BAD] = -3
    refused(folder(y=y), "counts", f"{PLACE} is -3", model="poisson")


def test_row_is_counted_among_those_that_pass_the_filter(folder):
    x = X.copy()
    x[BAD, 1] = np.nan
    place = f"row {np.count_nonzero(x[800:BAD, 0] > 0)} of those that pass the filter"
    x[BAD, 0] = 1
    refused(folder(x), place, filter=ds.field("a") > 0)
    # And can be left out.
    ours = bc.summarize(folder(x), target="y", columns=NAMES, filter=ds.field("b").is_valid() & ~ds.field("b").is_nan())
    assert not np.isnan(ours.X).any()


def test_cells_too_large_for_single_precision_are_no_matter(folder):
    x = X.astype(np.float64)
    x[BAD, 1] = 1e300
    ours = bc.summarize(folder(x), target="y", columns=NAMES, **QUICK)
    assert np.array_equal(ours.indices, bc.summarize(x, Y, **QUICK).indices)


def test_rows_beyond_the_first_block_are_looked_at(tmp_path):
    x, y = logistic_table(BLOCK_ROWS + 900)
    x[BLOCK_ROWS + 500, 2] = np.nan
    in_pieces(arrow_table(x, y=y), tmp_path / "rows", [BLOCK_ROWS])
    refused(tmp_path / "rows", "part-001.parquet, row 500, column 'c' is nan", method="giga", beta=0, size=8)


def test_table_in_memory_is_that_of_the_files(tmp_path):
    """Words in a dictionary, differently coded in each file, and a column that only some of the folders name."""
    table = arrow_table(X, y=Y, word=pa.array(np.array(["p", "q", "r"])[np.arange(1200) // 500]).dictionary_encode())
    for k, place in enumerate(["k=1/rows.parquet", "k=2/rows.parquet", "rows.parquet"]):
        part = table.slice(400 * k, 400)
        # Written as it is read again, with words of its own only.
        part = part.set_column(4, "word", part["word"].combine_chunks().dictionary_decode().dictionary_encode())
        in_pieces(part, (tmp_path / place).parent, [])
    held = opened(tmp_path, None, "y", NAMES, None, ["word", "k"]).table()
    assert held.column_names == [*NAMES, "y", "word", "k"]
    assert np.array_equal(np.column_stack([held[name].to_numpy() for name in NAMES]), X)
    assert held["word"].to_pylist() == table["word"].to_pylist()
    assert held["k"].to_pylist() == [1] * 400 + [2] * 400 + [None] * 400
