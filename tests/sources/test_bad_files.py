"""Files that are not what they should be: said with the file and the row, before any work or as soon as it is seen."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scale_tables import QUICK, ROWS, arrow_table, in_pieces, logistic_table, written

import betacores as bc
from betacores.opening import opened

X, Y = logistic_table()
TABLE = arrow_table(X, y=Y)
CUTS = [40_000, 90_000]


@pytest.fixture
def files(tmp_path):
    """Three files of one table."""
    return in_pieces(TABLE, tmp_path / "rows", CUTS)


def harm(file):
    """Break the pages of the column b, and nothing else."""
    about = pq.read_metadata(file).row_group(0).column(1)
    held, start = bytearray(file.read_bytes()), about.dictionary_page_offset or about.data_page_offset
    held[start : start + 60] = b"\xff" * 60
    file.write_bytes(held)


def refused(data, *words, kind=ValueError, target="y", **given):
    with pytest.raises(kind) as caught:
        bc.summarize(data, target=target, **{**QUICK, **given})
    for word in words:
        assert str(word) in str(caught.value)


class TestFilesThatDoNotAgree:
    def test_another_type(self, files):
        written(arrow_table(X[:10].astype(np.float64), y=Y[:10]), files[1])
        refused(files, files[1], "'a' is double", "float in", files[0], "same types")

    @pytest.mark.parametrize("more", [{"y": Y[:10], "z": Y[:10]}, {}], ids=["one more", "one less"])
    def test_other_columns(self, files, more):
        written(arrow_table(X[:10], **more), files[2])
        refused(files[0].parent, files[2], "other columns", "'z'" if more else "'y'")

    def test_nothing_in_it(self, files):
        files[1].write_bytes(b"")
        refused(files, files[1], "0 bytes")

    def test_no_parquet(self, files):
        files[1].write_bytes(b"a,b,c\n1,2,3\n" * 100)
        refused(files, files[1], "no whole Parquet file", "again")

    def test_cut_short_before_the_run(self, files):
        files[2].write_bytes(files[2].read_bytes()[:-100])
        refused(files, files[2], "no whole Parquet file")

    def test_no_rows_in_one_is_no_matter(self, files):
        written(TABLE.slice(0, 0), files[0].parent / "part-000a.parquet")
        reader = opened(files[0].parent, None, "y", None, None)
        assert len(reader.files) == 4
        assert np.array_equal(np.concatenate([cut.made().x for cut in reader.cuts()]), X)
        assert reader.where(40_000).endswith("part-001.parquet, row 0")


class TestFilesThatChange:
    """In mid-run, between passes and within one."""

    @pytest.fixture(params=[0, 65_536], ids=["between passes", "within a pass"])
    def then(self, request):
        def when(harm):
            done = []

            def on_pass(stage, rows, total):
                if stage == "mode" and rows == request.param and not done:
                    done.append(harm())

            return on_pass

        return when

    def test_gone(self, files, then, tmp_path):
        refused(files, files[2], "is gone", kind=OSError, on_pass=then(lambda: os.unlink(files[2])))

    def test_cut_short(self, files, then):
        held = files[2].read_bytes()
        harm = then(lambda: files[2].write_bytes(held[: len(held) // 2]))
        refused(files, files[2], kind=OSError, on_pass=harm)

    def test_written_again(self, files, then):
        harm = then(lambda: written(TABLE.slice(0, 77), files[2]))
        refused(files, files[2], "run again", kind=OSError, on_pass=harm)

    def test_array_gone_or_cut_short(self, tmp_path, then):
        np.save(tmp_path / "x.npy", X)
        held = (tmp_path / "x.npy").read_bytes()
        for harm in (
            lambda: os.unlink(tmp_path / "x.npy"),
            lambda: (tmp_path / "x.npy").write_bytes(held[: len(held) // 2]),
        ):
            refused(tmp_path / "x.npy", "x.npy", kind=OSError, target=None, y=Y, on_pass=then(harm))
            (tmp_path / "x.npy").write_bytes(held)


class TestFilesThatWereBrokenBefore:
    """Their ends are whole, and say nothing of what is before."""

    @pytest.fixture(params=[ROWS, 900], ids=["streamed", "held"])
    def broken(self, request, tmp_path):
        rows = request.param
        files = in_pieces(TABLE.slice(0, rows), tmp_path / "rows", [rows // 3, 2 * rows // 3])
        harm(files[1])
        return files

    def test_file_is_named_and_nobody_is_told_to_run_again(self, broken):
        with pytest.raises(OSError, match=r"part-001\.parquet is damaged.*leave it out") as caught:
            bc.summarize(broken[0].parent, target="y", **QUICK)
        assert "again when" not in str(caught.value)
        assert "Run again" not in str(caught.value)
        # And it can be left out.
        assert bc.summarize([broken[0], broken[2]], target="y", **QUICK).indices.size

    @pytest.mark.parametrize("name", ["a", "b"])
    def test_with_a_filter(self, broken, name):
        refused(broken, broken[1], "is damaged", kind=OSError, filter=ds.field(name) > 0)

    def test_file_that_changed_is_told_from_one_that_was_broken(self, tmp_path):
        files = in_pieces(TABLE.slice(0, 900), tmp_path, [300])
        reader = opened(tmp_path, None, "y", None, None)
        harm(files[1])
        reader.check_unchanged = lambda: None  # it changes just after
        with pytest.raises(OSError, match=r"part-001\.parquet has changed since the run began.*at rest"):
            list(reader.cuts())
        files[1].unlink()
        with pytest.raises(OSError, match=r"part-001\.parquet is gone"):
            list(reader.cuts())


class TestCells:
    """Far down, in a later file."""

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_cell_that_is_no_number_is_named(self, tmp_path, value):
        x = X.copy()
        x[120_000, 1] = value
        paths = in_pieces(arrow_table(x, y=Y), tmp_path, CUTS)
        refused(tmp_path, f"{paths[2]}, row 30000, column 'b' is {value}", "filter=")

    def test_null_is_named(self, tmp_path):
        whole = TABLE.set_column(1, "b", pa.array(np.arange(ROWS), mask=np.arange(ROWS) == 100_001))
        paths = in_pieces(whole, tmp_path, CUTS)
        refused(tmp_path, f"{paths[2]}, row 10001, column 'b' is nan")
        # And can be left out.
        reader = opened(tmp_path, None, "y", None, ds.field("b").is_valid())
        assert reader.row_count == ROWS - 1
        assert np.isfinite(np.concatenate([cut.made().x for cut in reader.cuts()])).all()

    def test_row_is_counted_among_those_that_pass_the_filter(self, tmp_path):
        x = X.copy()
        x[:, 0] = np.arange(ROWS)
        x[120_000, 1] = np.nan
        paths = in_pieces(arrow_table(x, y=Y), tmp_path, CUTS)
        refused(tmp_path, f"{paths[2]}, row 29999 of those that pass", filter=ds.field("a") != 90_000)

    def test_response_that_is_missing(self, tmp_path):
        words = np.array(["no", "yes"])[Y].tolist()
        words[100_000] = None
        path = written(arrow_table(X, y=words), tmp_path / "rows.parquet")
        refused(path, f"y: {path}, row 100000 is missing")
        numbers = Y.astype(float)
        numbers[100_000] = np.nan
        written(arrow_table(X, y=numbers), path)
        refused(path, f"y: {path}, row 100000 is nan")
        whole = pa.array(Y, mask=np.arange(ROWS) == 100_000)
        written(arrow_table(X, y=whole), path)
        refused(path, f"y: {path}, row 100000 is nan")

    def test_array_with_a_cell_that_is_no_number(self, tmp_path):
        x = X.copy()
        x[120_000, 1] = np.nan
        np.save(tmp_path / "x.npy", x)
        place = f"{tmp_path / 'x.npy'}, row 120000, column 'x1' is nan"
        refused(tmp_path / "x.npy", place, "write the array again", target=None, y=Y)
        np.save(tmp_path / "x.npy", x[119_000:121_000])
        place = f"{tmp_path / 'x.npy'}, row 1000, column 'x1' is nan"
        refused(tmp_path / "x.npy", place, "write the array again", target=None, y=Y[119_000:121_000])

    def test_response_beside_an_array_with_a_cell_that_is_no_number(self, tmp_path):
        y = Y.astype(float)
        y[100_000] = np.nan
        np.save(tmp_path / "x.npy", X)
        np.save(tmp_path / "y.npy", y)
        refused(tmp_path / "x.npy", f"y: {tmp_path / 'y.npy'}, row 100000 is nan", target=None, y=tmp_path / "y.npy")
        refused(tmp_path / "x.npy", "y: row 100000 is nan", "write the array again", target=None, y=y)

    def test_column_that_never_changes(self, tmp_path):
        x = X.copy()
        x[:, 2] = 4
        refused(written(arrow_table(x, y=Y), tmp_path / "rows.parquet"), "constant", "'c' (always 4)")

    def test_response_that_never_changes(self, tmp_path):
        refused(written(arrow_table(X, y=np.ones(ROWS)), tmp_path / "rows.parquet"), "y: ", model="logistic")

    def test_too_many_labels_and_words_for_numbers(self, tmp_path):
        path = written(arrow_table(X, y=[f"w{k}" for k in range(ROWS)]), tmp_path / "rows.parquet")
        refused(path, "y: ", model="logistic")
        refused(path, "y: expected numbers", model="linear")


class TestAsked:
    def test_columns_that_are_not_there(self, files):
        refused(files, "target: ", "no column 'z'", "'a', 'b', 'c', 'y'", target="z")
        refused(files, "columns: ", "no column 'q'", columns=["a", "q"])
        with pytest.raises(ValueError, match="y: for files name the column"):
            bc.summarize(files, Y)

    def test_filter_that_leaves_too_little(self, files):
        refused(files, "filter: ", "at least two rows", "got 0", "1000000000", filter=ds.field("a") > 1e9)
        refused(files, "filter: ", "got 1", filter=ds.field("a") == TABLE["a"].to_numpy().max())
        refused(files, "at most the", "ask for fewer", filter=ds.field("a") > 4, size=100_000)

    def test_filter_of_another_kind(self, files):
        refused(files, "filter: ", "pyarrow.dataset", kind=TypeError, filter="a > 3")
        refused(files, "filter: ", "q", "they have 'a', 'b'", filter=ds.field("q") > 3)
        refused(files, "filter: ", "does not fit", filter=ds.field("a") == "east")

    def test_weights_are_for_memory(self, files):
        refused(files, "sample_weight: ", sample_weight=np.ones(ROWS))

    def test_names_are_for_tables(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        for name, value in {"target": "y", "columns": ["a"], "filter": ds.field("a") > 0}.items():
            refused(tmp_path / "x.npy", f"{name}: ", **{"target": None, name: value})
        for name, value in {"columns": ["a"], "filter": ds.field("a") > 0}.items():
            refused(X, f"{name}: ", "for files", target=None, **{name: value})

    def test_paths_that_lead_nowhere(self, tmp_path):
        refused(tmp_path / "rows.parquet", "no file", tmp_path, kind=FileNotFoundError)
        refused(tmp_path / "*.parquet", "no file", kind=FileNotFoundError)
        refused(tmp_path, "holds no Parquet file", tmp_path, kind=FileNotFoundError)
        refused(tmp_path / "x.npy", "no file", kind=FileNotFoundError, target=None)
        refused([tmp_path / "rows.parquet"], "no file", kind=FileNotFoundError)

    def test_arrays_of_another_kind(self, tmp_path):
        np.save(tmp_path / "x.npy", X[:, 0])
        refused(tmp_path / "x.npy", "rows and columns", "(140001,)", target=None)
        np.save(tmp_path / "x.npy", X.astype(complex))
        refused(tmp_path / "x.npy", "complex", target=None)
        np.save(tmp_path / "x.npy", X)
        refused(tmp_path / "x.npy", "y: expected one value", "140001", target=None, y=Y[:-1])
        refused(tmp_path / "x.npy", "y: expected numbers", target=None, y=np.array(["no", "yes"])[Y])
        (tmp_path / "x.npy").write_bytes(b"no array")
        refused(tmp_path / "x.npy", "no whole .npy file", target=None)
        (tmp_path / "x.npy").write_bytes(b"")
        refused(tmp_path / "x.npy", "no whole .npy file", target=None)

    def test_several_arrays_in_one_file(self, tmp_path):
        np.savez(tmp_path / "both.npz", x=X, y=Y)
        np.save(tmp_path / "x.npy", X)
        refused(tmp_path / "both.npz", "data: ", "both.npz", "several arrays", target=None)
        refused(tmp_path / "x.npy", "y: ", "both.npz", "several arrays", target=None, y=tmp_path / "both.npz")

    def test_path_of_responses_for_rows_in_memory(self):
        refused(X, "y: ", "'y.npy'", "numpy.load", target=None, y="y.npy")

    def test_addresses_elsewhere(self, tmp_path):
        np.save(tmp_path / "x.npy", X)
        for data in ("s3://store/rows.parquet", ["gs://store/rows.parquet"], "https://here.org/x.npy"):
            refused(data, "data: ", "only local paths", "store" if "store" in str(data) else "here.org", target=None)
        refused(tmp_path / "x.npy", "y: ", "only local paths", "s3://store/y.npy", target=None, y="s3://store/y.npy")

    def test_objects_are_never_unpickled(self, tmp_path):
        np.save(tmp_path / "x.npy", np.array([[1, "a"], [2, "b"]], object), allow_pickle=True)
        refused(tmp_path / "x.npy", "no whole .npy file of numbers", target=None)

    def test_names_that_the_files_have_twice(self, tmp_path):
        path = written(pa.table([X[:, 0], X[:, 1], Y], names=["a", "a", "y"]), tmp_path / "twice.parquet")
        refused(path, "'a'", "twice")
