"""Numbers of all rows, written and read in pieces: whatever holds them, the same file."""

import gc

import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest

from betacores import row_numbers
from betacores.row_numbers import read_numbers, write_numbers
from betacores.sources.numbers import Numbers


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(row_numbers, "PIECE", 1000)


@pytest.fixture
def numbers():
    return np.random.default_rng(0).uniform(size=3500).astype(np.float32)


class OnlyPieces:
    """Numbers of which nobody may ask for more than a piece."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, part):
        assert part.stop - part.start <= 1000
        return self.numbers[part]


def test_pieces_are_all_that_is_asked_for(tmp_path, numbers):
    write_numbers(tmp_path / "n.parquet", {"score": OnlyPieces(numbers), "covariate_score": None})
    about = pq.read_metadata(tmp_path / "n.parquet")
    assert [about.row_group(k).num_rows for k in range(about.num_row_groups)] == [1000, 1000, 1000, 500]
    found = read_numbers(tmp_path / "n.parquet")
    assert list(found) == ["score"]
    assert found["score"].dtype == np.float32
    assert np.array_equal(found["score"], numbers)


def test_maps_and_arrays_of_a_device(tmp_path, numbers):
    mapped = Numbers(None, len(numbers), 500).filled(lambda first: [numbers]).mapped()
    gc.collect()
    groups = np.arange(3500) % 7
    write_numbers(tmp_path / "n.parquet", {"score": mapped, "covariate_score": jnp.asarray(numbers), "group": groups})
    found = read_numbers(tmp_path / "n.parquet")
    assert np.array_equal(found["score"], numbers)
    assert np.array_equal(found["covariate_score"], numbers)
    assert np.array_equal(found["group"], groups)


def test_very_many_come_back_as_a_map(tmp_path, numbers, monkeypatch):
    monkeypatch.setattr(row_numbers, "MOST_HELD", 2000)
    write_numbers(tmp_path / "n.parquet", {"score": numbers, "group": np.arange(3500)})
    found = read_numbers(tmp_path / "n.parquet")
    assert isinstance(found["score"], np.memmap)
    assert np.array_equal(found["score"], numbers)
    assert np.array_equal(found["group"], np.arange(3500))


def test_dask_arrays(tmp_path, numbers):
    da = pytest.importorskip("dask.array")
    write_numbers(tmp_path / "n.parquet", {"score": da.from_array(numbers, chunks=1300)})
    assert np.array_equal(read_numbers(tmp_path / "n.parquet")["score"], numbers)


def test_results_on_workers_of_a_cluster_that_is_not_the_current_one(tmp_path, numbers):
    distributed = pytest.importorskip("distributed")
    da = pytest.importorskip("dask.array")
    with distributed.Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as client:
        parts = [client.submit(lambda part: part, part, pure=False) for part in (numbers[:1300], numbers[1300:])]
        scores = da.concatenate(
            [da.from_delayed(part, (length,), np.float32) for part, length in zip(parts, (1300, 2200), strict=True)]
        )
        write_numbers(tmp_path / "n.parquet", {"score": scores})
    assert np.array_equal(read_numbers(tmp_path / "n.parquet")["score"], numbers)


def test_no_rows(tmp_path):
    write_numbers(tmp_path / "n.parquet", {"score": np.zeros(0, np.float32)})
    assert len(read_numbers(tmp_path / "n.parquet")["score"]) == 0
