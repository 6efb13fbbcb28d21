"""Columns of files: read by their names, in whatever order each file has them, and of every type that is taken."""

import jax
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from scale_tables import NAMES, QUICK, ROWS, arrow_table, assert_same, logistic_table, written

import betacores as bc
from betacores.opening import opened
from betacores.reading import Table, read
from betacores.sources.watch import Watch

X, Y = logistic_table()
TABLE = arrow_table(X, y=Y)
WORDS = np.array(["no", "yes"])[Y]
ORDERS = [["a", "b", "c", "y"], ["y", "c", "b", "a"], ["b", "y", "a", "c"]]


@pytest.fixture(scope="module")
def from_memory():
    return bc.summarize(X, Y, **QUICK)


def shuffled(folder, rows=ROWS, **more):
    """Files with columns in other orders, under folders; the last has more of them."""
    ends = [0, rows // 3, rows // 2, rows]
    for k, order in enumerate(ORDERS):
        part = TABLE.slice(ends[k], ends[k + 1] - ends[k]).select(order)
        for name, column in (more if k == 2 else {}).items():
            part = part.add_column(0, name, pa.array(column[ends[k] : ends[k + 1]]))
        written(part, folder / f"part={k}" / "rows.parquet")
    return folder


class TestOrder:
    def test_same_coreset_as_from_memory(self, tmp_path, from_memory):
        ours = bc.summarize(shuffled(tmp_path), target="y", **QUICK)
        assert ours.columns == NAMES
        assert_same(ours, from_memory)

    def test_with_a_filter(self, tmp_path):
        keep = X[:, 1] > -0.5
        ours = bc.summarize(shuffled(tmp_path), target="y", filter=ds.field("b") > -0.5, **QUICK)
        assert_same(ours, bc.summarize(X[keep], Y[keep], **QUICK))

    def test_rows_by_number_and_partitions(self, tmp_path):
        reader = opened(shuffled(tmp_path), None, "y", ["c", "part", "a"], None)
        ids = np.array([5, 60_000, 75_000, ROWS - 1])
        found = reader.rows(ids)
        assert np.array_equal(found.x, np.column_stack([X[ids, 2], [0, 1, 2, 2], X[ids, 0]]))
        assert np.array_equal(found.y, Y[ids])
        assert np.array_equal(np.concatenate([cut.made().x for cut in reader.cuts()])[ids], found.x)

    def test_held_in_memory(self, tmp_path):
        settings = {"groups": "part", "max_groups": 2, "beta": 0.5, "guard": None}
        ours = bc.summarize(shuffled(tmp_path, 900), target="y", **settings)
        labels = np.repeat([0, 1, 2], [300, 150, 450])
        assert ours.columns == NAMES
        assert_same(ours, bc.summarize(X[:900], Y[:900], **{**settings, "groups": labels}))

    def test_files_that_differ_in_whether_cells_may_be_missing(self, tmp_path):
        never = pa.schema([pa.field(one.name, one.type, nullable=False) for one in TABLE.schema])
        written(TABLE.slice(0, 500), tmp_path / "0.parquet")
        written(TABLE.slice(500, 500).cast(never), tmp_path / "1.parquet")
        reader = opened(tmp_path, None, "y", None, None)
        assert np.array_equal(reader.rows(np.arange(1000)).x, X[:1000])
        assert reader.table().num_rows == 1000


class TestMoreColumns:
    def test_are_no_matter_if_nobody_asks_for_them(self, tmp_path, from_memory):
        shuffled(tmp_path, town=WORDS)
        assert_same(bc.summarize(tmp_path, target="y", columns=NAMES, **QUICK), from_memory)

    def test_are_refused_if_they_may_be_meant(self, tmp_path):
        shuffled(tmp_path, town=WORDS)
        with pytest.raises(ValueError, match=r"part=2.*other columns than.*'town'.*all files must have the same"):
            bc.summarize(tmp_path, target="y", **QUICK)

    @pytest.mark.parametrize("asked", [{"columns": ["a", "z"]}, {"columns": ["a"], "filter": ds.field("z") > 0}])
    def test_are_refused_if_another_file_lacks_them(self, tmp_path, asked):
        written(TABLE.append_column("z", pa.array(X[:, 0])), tmp_path / "0.parquet")
        written(TABLE, tmp_path / "1.parquet")
        with pytest.raises(ValueError, match=r"1\.parquet has other columns than .*0\.parquet \('z'\).*are read"):
            bc.summarize(tmp_path, target="y", **QUICK, **asked)
        assert opened(tmp_path, None, "y", ["a"], ds.field("b") > 0).row_count == 2 * np.count_nonzero(X[:, 1] > 0)

    def test_types_matter_only_of_those_that_are_read(self, tmp_path):
        written(TABLE, tmp_path / "0.parquet")
        written(
            arrow_table(X[:10].astype(np.float64), y=Y[:10]).drop(["a"]).append_column("a", TABLE["a"][:10]),
            tmp_path / "1.parquet",
        )
        assert opened(tmp_path, None, "y", ["a"], None).row_count == ROWS + 10
        with pytest.raises(ValueError, match=r"'b' is double in .*1\.parquet and float in .*0\.parquet.*same types"):
            opened(tmp_path, None, "y", ["a", "b"], None)

    def test_a_column_that_only_later_files_have(self, tmp_path):
        shuffled(tmp_path, town=WORDS)
        with pytest.raises(ValueError, match=r"columns: .*part=0.* has no column 'town'; it has 'a', 'b', 'c', 'y'"):
            opened(tmp_path, None, "y", ["a", "town"], None)


KINDS = {
    "string_view": pa.string_view(),
    "large_string": pa.large_string(),
    "binary_view": pa.binary_view(),
    "large_binary": pa.large_binary(),
    "dictionary": pa.dictionary(pa.int8(), pa.large_string()),
}


class TestTypesOfResponses:
    @pytest.mark.parametrize("rows", [ROWS, 900])
    @pytest.mark.parametrize("kind", KINDS)
    def test_words_of_every_kind(self, tmp_path, kind, rows, from_memory):
        plain = pa.array(WORDS[:rows]).cast(pa.binary() if "binary" in kind else pa.string())
        labels = plain.dictionary_encode() if kind == "dictionary" else plain.cast(KINDS[kind])
        path = written(arrow_table(X[:rows], y=labels), tmp_path / "rows.parquet")
        ours = bc.summarize(path, target="y", **QUICK)
        memory = from_memory if rows == ROWS else bc.summarize(X[:rows], Y[:rows], **QUICK)
        assert np.array_equal(ours.indices, memory.indices)
        given = WORDS[:rows][ours.indices]
        assert ours.y.tolist() == (given.astype("S") if "binary" in kind else given).tolist()

    def test_filter_by_words_that_arrow_cannot_compare(self, tmp_path):
        path = written(arrow_table(X, y=pa.array(WORDS).cast(pa.string_view())), tmp_path / "rows.parquet")
        chosen = (ds.field("y") == "yes") | (ds.field("a") > 0)
        keep = (WORDS == "yes") | (X[:, 0] > 0)
        reader = opened(path, None, "y", None, chosen)
        assert reader.row_count == keep.sum()
        assert np.array_equal(np.concatenate([cut.made().x for cut in reader.cuts()]), X[keep])
        assert reader.table()["y"].to_pylist() == WORDS[keep].tolist()

    @pytest.mark.parametrize("cell", [{"u": 1}, [1, 2]], ids=["struct", "list"])
    def test_several_values_a_row(self, tmp_path, cell):
        path = written(arrow_table(X[:50], y=pa.array([cell] * 50)), tmp_path / "rows.parquet")
        with pytest.raises(
            ValueError, match=rf"target: column 'y' holds {'struct' if 'u' in cell else 'list'}<.*a row"
        ):
            bc.summarize(path, target="y", **QUICK)


class TestAskedFor:
    @pytest.fixture
    def path(self, tmp_path):
        return written(TABLE.slice(0, 900), tmp_path / "rows.parquet")

    @pytest.mark.parametrize(
        ("columns", "kind", "said"),
        [
            (["a", "a"], ValueError, "'a' is named twice"),
            ([], ValueError, r"one name at least, got \[\]"),
            (["a", "y"], ValueError, "'y' is the response"),
            ("ab", ValueError, "no column 'ab'"),
            ({"a", "b"}, TypeError, "in order"),
            (3, TypeError, "got 3"),
            (["a", 3], TypeError, "got 3"),
        ],
    )
    def test_names_that_cannot_be_meant(self, path, columns, kind, said):
        with pytest.raises(kind, match=f"columns: .*{said}"):
            bc.summarize(path, target="y", columns=columns, **QUICK)

    def test_one_name(self, path):
        assert bc.summarize(path, target="y", columns="b", **QUICK).columns == ["b"]
        assert opened(path, None, "y", np.array(["c", "a"]), None).columns == ["c", "a"]

    def test_filter_by_number(self, path):
        with pytest.raises(ValueError, match=r"filter: .*name them"):
            bc.summarize(path, target="y", filter=ds.field(0) > 0, **QUICK)

    def test_filter_that_fails_on_rows(self, path):
        with pytest.raises(ValueError, match=r"filter: .* fails on the rows of .*rows\.parquet .*truncated"):
            bc.summarize(path, target="y", filter=ds.field("a").cast(pa.int32()) > 0, **QUICK)

    @pytest.mark.parametrize("columns", [[], ["a", "a"], ["a", "y"]])
    def test_the_same_of_a_collection_before_anything_is_sent_to_a_cluster(self, columns):
        collection = pytest.importorskip("dask.dataframe").from_pandas(TABLE.slice(0, 90).to_pandas(), npartitions=2)
        table = Table(collection, target="y", columns=columns)
        with pytest.raises(ValueError, match=r"columns: "):
            read(table, "auto", jax.random.key(0), Watch(None), streamed=True)
