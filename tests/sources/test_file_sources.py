"""Rows that stay in files: whatever the files are like, the coreset is that of the table in memory."""

import json
import os
import subprocess
import sys

import jax
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scale_tables import NAMES, QUICK, ROWS, arrow_table, assert_same, in_pieces, logistic_table, written

import betacores as bc
from betacores.examination import examined
from betacores.opening import opened
from betacores.samples import large_sample
from betacores.sources import ArraySource
from betacores.sources.base import BLOCK_ROWS
from betacores.sources.files import FileSource

X, Y = logistic_table()
TABLE = arrow_table(X, y=Y)


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """The same table in every form that files may have."""
    root = tmp_path_factory.mktemp("tables")
    written(TABLE, root / "one.parquet")
    in_pieces(TABLE, root / "several", [1, 20_000, 66_000, 66_001, 131_100])
    ends = [0, 50_001, 90_000, ROWS]
    for k, region in enumerate(["east", "north", "west"]):
        part = TABLE.slice(ends[k], ends[k + 1] - ends[k])
        written(part, root / "hive" / f"region={region}" / f"year={2019 + k}" / "rows.parquet")
    np.save(root / "x.npy", X)
    np.save(root / "y.npy", Y)
    return root


@pytest.fixture(scope="module")
def from_memory():
    return bc.summarize(X, Y, **QUICK)


LAYOUTS = {
    "one file": lambda root: root / "one.parquet",
    "path as text": lambda root: str(root / "one.parquet"),
    "folder": lambda root: root / "several",
    "pattern": lambda root: str(root / "several" / "part-*.parquet"),
    "deep pattern": lambda root: str(root / "hive" / "**" / "*.parquet"),
    "list": lambda root: [root / "several" / f"part-{k:03d}.parquet" for k in range(6)],
    "partitions": lambda root: root / "hive",
}


def assert_same_blocks(reader, x, y, labels=None):
    encode = (lambda c: (2 * np.asarray(c) - 1).astype(np.float32)) if labels is None else labels
    found = list(FileSource(reader, encode).blocks())
    expected = list(ArraySource(x, y).blocks())
    assert len(found) == len(expected) == 3
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine.start, mine.length) == (theirs.start, theirs.length)
        # The last block is padded further than one of a short table in memory.
        assert np.array_equal(mine.rows.x[: mine.length], theirs.rows.x[: mine.length])
        assert np.array_equal(mine.rows.y[: mine.length], theirs.rows.y[: mine.length])
        assert mine.rows.x.dtype == np.float32
        assert mine.weights.sum() == mine.length
        assert len(mine.weights) == BLOCK_ROWS


@pytest.mark.parametrize("layout", LAYOUTS)
def test_blocks_are_those_of_memory_however_the_rows_are_cut_into_files(disk, layout):
    reader = opened(LAYOUTS[layout](disk), None, "y", None, None)
    assert reader.row_count == ROWS
    assert reader.columns == NAMES
    assert_same_blocks(reader, X, (2 * Y - 1).astype(np.float32))


def test_blocks_of_numpy_files_and_maps_are_those_of_memory(disk):
    mapped = np.load(disk / "x.npy", mmap_mode="r")
    for x, y in [(disk / "x.npy", disk / "y.npy"), (mapped, Y), (mapped, np.load(disk / "y.npy", mmap_mode="r"))]:
        assert_same_blocks(opened(x, y, None, None, None), X, (2 * Y - 1).astype(np.float32))


def test_later_blocks_are_read_without_the_earlier_ones(disk):
    """A pass that was interrupted begins in the middle, of a file or of a row group."""
    for layout in ("one file", "list", "partitions"):
        source = FileSource(opened(LAYOUTS[layout](disk), None, "y", None, None), np.asarray)
        for first in range(4):
            rest = list(source.blocks(first))
            assert [block.start for block in rest] == [BLOCK_ROWS * k for k in range(first, 3)]
            if rest:
                held = np.concatenate([block.rows.x[: block.length] for block in rest])
                assert np.array_equal(held, X[first * BLOCK_ROWS :])


def test_rows_by_number_come_in_the_order_asked_for(disk):
    ids = np.array([131_099, 3, 131_100, 65_536, 65_535, 3, ROWS - 1, 66_000])
    for layout in ("one file", "folder", "partitions"):
        source = FileSource(opened(LAYOUTS[layout](disk), None, "y", None, None), np.asarray)
        rows = source.take(ids)
        assert np.array_equal(rows.x, X[ids])
        assert np.array_equal(rows.y, Y[ids])
        given, y = source.as_given(ids)
        assert np.array_equal(given, X[ids])
        assert np.array_equal(y, Y[ids])


@pytest.mark.parametrize("layout", ["one file", "folder", "partitions"])
def test_same_seed_same_coreset_from_parquet_and_from_memory(disk, layout, from_memory):
    assert_same(bc.summarize(LAYOUTS[layout](disk), target="y", **QUICK), from_memory)


def test_same_seed_same_coreset_from_numpy_files(disk, from_memory):
    assert_same(bc.summarize(disk / "x.npy", disk / "y.npy", **QUICK), from_memory)
    for y in (Y, Y.tolist()):
        assert_same(bc.summarize(np.load(disk / "x.npy", mmap_mode="r"), y, **QUICK), from_memory)


@pytest.mark.slow
def test_defaults_give_the_same_coreset_too(disk):
    """Guard, choice of β, exchanges, and a size that is left open."""
    told = []
    ours = bc.summarize(disk / "several", target="y", on_pass=lambda *now: told.append(now))
    memory = bc.summarize(X, Y)
    assert_same(ours, memory)
    assert ours.info.kl_estimate == pytest.approx(memory.info.kl_estimate, rel=1e-4)
    assert {stage for stage, _, _ in told} == {"check", *memory.info.passes}
    assert {total for _, _, total in told} == {ROWS}
    assert {rows for stage, rows, _ in told if stage == "survey"} == {0, BLOCK_ROWS, 2 * BLOCK_ROWS, ROWS}


def test_another_seed_chooses_other_rows_in_both(disk, from_memory):
    ours = bc.summarize(disk / "one.parquet", target="y", **QUICK, seed=5)
    assert_same(ours, bc.summarize(X, Y, **QUICK, seed=5))
    assert not np.array_equal(ours.indices, from_memory.indices)


def test_double_precision_whole_numbers_and_truth_values_are_covariates(tmp_path):
    rng = np.random.default_rng(1)
    columns = {
        "a": rng.normal(size=ROWS) / 3,
        "b": rng.integers(-5, 6, ROWS).astype(np.int16),
        "c": rng.random(ROWS) < 0.3,
    }
    x = np.column_stack([np.asarray(column, np.float64) for column in columns.values()])
    y = x @ [1.0, 0.5, -1.0] + rng.normal(size=ROWS)
    reader = opened(written(pa.table({**columns, "y": y}), tmp_path / "mixed.parquet"), None, "y", None, None)
    assert_same_blocks(reader, x.astype(np.float32), y.astype(np.float32), lambda c: c.astype(np.float32))
    ours = bc.summarize(tmp_path / "mixed.parquet", target="y", model="linear", **QUICK)
    assert_same(ours, bc.summarize(x, y, model="linear", **QUICK))
    # As the file has them, not as single precision does.
    assert np.array_equal(ours.X, x[ours.indices])
    assert np.array_equal(ours.y, y[ours.indices])


WORDS = np.array(["no", "yes"])[Y]


@pytest.mark.parametrize(
    ("stored", "given"),
    [
        (pa.array(Y == 1), Y == 1),
        (pa.array(Y * 2.0 - 1), Y * 2.0 - 1),
        (pa.array(WORDS), WORDS),
        (pa.array(WORDS).dictionary_encode(), WORDS),
    ],
    ids=["bool", "float", "text", "dictionary"],
)
def test_labels_of_every_kind_come_back_as_they_were(tmp_path, stored, given, from_memory):
    path = written(arrow_table(X, label=stored), tmp_path / "labels.parquet")
    ours = bc.summarize(path, target="label", **QUICK)
    assert np.array_equal(ours.indices, from_memory.indices)
    assert np.array_equal(np.asarray(ours.scores), from_memory.scores)
    assert ours.y.tolist() == given[ours.indices].tolist()
    assert ours.labels.tolist() == np.unique(given).tolist()


def test_rows_without_a_response(tmp_path):
    path = written(arrow_table(X), tmp_path / "rows.parquet")
    ours = bc.summarize(path, **QUICK)
    assert ours.y is None
    assert_same(ours, bc.summarize(X, **QUICK))


class TestChoosing:
    """Columns and rows of files."""

    def test_filter_is_the_filtered_table(self, disk):
        keep = (X[:, 0] > -1) & (Y >= 0)
        chosen = ds.field("a") > -1
        assert np.count_nonzero(keep) > BLOCK_ROWS
        for name in ("one.parquet", "several"):
            ours = bc.summarize(disk / name, target="y", filter=chosen, **QUICK)
            assert_same(ours, bc.summarize(X[keep], Y[keep], **QUICK))

    def test_filter_by_partition_opens_no_other_file(self, disk):
        reader = opened(disk / "hive", None, "y", None, ds.field("region") != "north")
        assert reader.row_count == ROWS - 39_999
        assert not any("north" in piece.path for piece in reader._pieces)
        held = np.concatenate([cut.made().x for cut in reader.cuts()])
        assert np.array_equal(held, np.concatenate([X[:50_001], X[90_000:]]))

    def test_filter_by_a_column_that_is_no_covariate(self, disk):
        reader = opened(disk / "hive", None, "y", ["b"], (ds.field("a") > 0) & (ds.field("year") >= 2020))
        keep = (X[:, 0] > 0) & (np.arange(ROWS) >= 50_001)
        assert reader.row_count == keep.sum()
        assert np.array_equal(np.concatenate([cut.made().x for cut in reader.cuts()]), X[keep][:, 1:2])

    def test_row_groups_that_the_filter_rules_out_are_not_read(self, tmp_path):
        table = pa.table({"when": np.arange(ROWS), "a": X[:, 0], "y": Y})
        reader = opened(written(table, tmp_path / "t.parquet", 10_000), None, "y", ["a"], ds.field("when") >= 95_000)
        assert reader._pieces[0].row_groups == [9, 10, 11, 12, 13, 14]
        assert np.array_equal(np.concatenate([cut.made().x for cut in reader.cuts()])[:, 0], X[95_000:, 0])

    def test_columns_that_nobody_asked_for_are_not_read(self, disk, monkeypatch):
        asked = []
        plain = pq.ParquetFile.iter_batches
        monkeypatch.setattr(
            pq.ParquetFile, "iter_batches", lambda self, *a, **k: asked.append(k["columns"]) or plain(self, *a, **k)
        )
        reader = opened(disk / "one.parquet", None, "y", ["c", "a"], None)
        held = np.concatenate([cut.made().x for cut in reader.cuts()])
        assert np.array_equal(held, X[:, [2, 0]])
        list(opened(disk / "one.parquet", None, None, ["c"], ds.field("y") == 1).cuts())
        assert asked == [["c", "a", "y"], ["c", "y"]]

    @pytest.mark.slow
    def test_columns_prune_the_coreset(self, disk):
        ours = bc.summarize(disk / "several", target="y", columns=["c", "a"], **QUICK)
        assert ours.columns == ["c", "a"]
        assert_same(ours, bc.summarize(X[:, [2, 0]], Y, **QUICK))

    def test_words_are_left_out_with_columns(self, tmp_path):
        path = written(arrow_table(X, y=Y, town=WORDS), tmp_path / "t.parquet")
        with pytest.raises(ValueError, match=r"'town' is not numeric.*columns="):
            bc.summarize(path, target="y", **QUICK)
        assert opened(path, None, "y", NAMES, None).columns == NAMES

    def test_a_partition_may_be_a_covariate_if_it_is_asked_for(self, disk):
        reader = opened(disk / "hive", None, "y", ["a", "year"], None)
        held = np.concatenate([cut.made().x for cut in reader.cuts()])
        year = np.repeat([2019, 2020, 2021], [50_001, 39_999, ROWS - 90_000])
        assert np.array_equal(held, np.column_stack([X[:, 0], year.astype(np.float32)]))

    @pytest.mark.parametrize("columns", [None, ["a", "b"]])
    def test_partitions_are_groups(self, tmp_path, columns):
        some = TABLE.slice(0, 900)
        for k, region in enumerate(["east", "north", "west"]):
            written(some.slice(300 * k, 300), tmp_path / f"region={region}" / "rows.parquet")
        settings = {"max_groups": 2, "beta": 0.5, "guard": None}
        ours = bc.summarize(tmp_path, target="y", groups="region", columns=columns, **settings)
        labels = np.repeat(["east", "north", "west"], 300)
        x = X[:900] if columns is None else X[:900, :2]
        memory = bc.summarize(x, Y[:900], groups=labels, **settings)
        assert list(ours.groups) == list(memory.groups)
        assert ours.columns == NAMES[: x.shape[1]]
        assert_same(ours, memory)

    def test_groups_named_by_words_in_the_file(self, tmp_path):
        path = written(arrow_table(X[:600], y=Y[:600], town=np.repeat(["A", "B", "C"], 200)), tmp_path / "t.parquet")
        ours = bc.summarize(path, target="y", groups="town", max_groups=2, beta=0.5, guard=None)
        assert set(ours.groups) <= {"A", "B", "C"}
        assert ours.columns == NAMES
        with pytest.raises(ValueError, match=r"groups.*no column 'city'"):
            bc.summarize(path, target="y", columns=["a"], groups="city", max_groups=2)


def test_short_files_are_tables_in_memory(tmp_path):
    """Up to one block there is nothing to gain, and everything works that needs all rows."""
    path = written(TABLE.slice(0, 2000), tmp_path / "short.parquet")
    ours = bc.summarize(path, target="y", **QUICK)
    assert type(ours.scores) is np.ndarray
    assert "check" not in ours.info.passes
    assert_same(ours, bc.summarize(X[:2000], Y[:2000], **QUICK))


def test_sample_brought_along_is_uniform_and_not_the_first_rows(disk):
    key = jax.random.key(3)
    problem = examined(opened(disk / "several", None, "y", None, None), "auto", key)
    ids = problem.source.known.ids
    assert np.array_equal(ids, large_sample(key, ROWS, X.shape[1]))
    assert np.array_equal(problem.source.known.rows.x, X[ids])
    # Every tenth of the rows has its share: a binomial deviates by 5 standard deviations in a million years.
    share = np.bincount(ids * 10 // ROWS, minlength=10) / len(ids)
    spread = np.sqrt(0.09 / len(ids) * (1 - len(ids) / ROWS))
    assert np.abs(share - 0.1).max() < 5 * spread


def test_scores_are_read_as_they_are_looked_at(disk):
    ours = bc.summarize(disk / "one.parquet", target="y", **QUICK)
    assert isinstance(ours.scores, np.memmap)
    assert ours.scores.shape == (ROWS,)


WITHOUT = """
import json, sys
import pyarrow.dataset  # asks for the version of pandas, were it hidden already
for name in ("jaxtyping", "narwhals", "equinox", "threadpoolctl", "blackjax", "typer", "rich", "jinja2", "pandas",
             "polars", "numpyro", "arviz", "matplotlib", "dask", "distributed", "beartype"):
    sys.modules[name] = None
import numpy as np
import betacores as bc
folder, kept = sys.argv[1], []
X, y = np.load(folder + "/x.npy"), np.load(folder + "/y.npy")
quick = json.loads(sys.argv[2])
for data in [(X, y), (folder + "/x.npy", folder + "/y.npy")]:
    kept.append(bc.summarize(*data, **quick))
kept.append(bc.summarize(folder + "/rows.parquet", target="y", **quick))
draws = kept[-1].posterior(draws=100, sampler="laplace")
kept[-1].save(folder + "/coreset")
again = bc.load(folder + "/coreset")
print(json.dumps([*(one.indices.tolist() for one in kept), again.indices.tolist(), list(np.shape(draws.draws))]))
"""


def test_runs_where_only_the_numerical_packages_are_installed(tmp_path):
    """JAX, NumPy, SciPy, optax, scikit-learn and PyArrow: what a machine with an accelerator is likely to have."""
    count = BLOCK_ROWS + 2000
    np.save(tmp_path / "x.npy", X[:count])
    np.save(tmp_path / "y.npy", Y[:count])
    written(TABLE.slice(0, count), tmp_path / "rows.parquet")
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(tmp_path), json.dumps(QUICK)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    memory, npy, parquet, loaded, draws = json.loads(run.stdout)
    assert memory == npy == parquet == loaded
    assert draws == [100, 4]
