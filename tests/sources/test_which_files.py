"""Which files a path, a pattern or a list means: each of them once, or it is an error."""

import os

import numpy as np
import pytest
from scale_tables import QUICK, arrow_table, assert_same, in_pieces, logistic_table, written

import betacores as bc
from betacores.opening import opened
from betacores.sources.parquet_files import found_files

X, Y = logistic_table(900)
TABLE = arrow_table(X, y=Y)


@pytest.fixture
def folder(tmp_path):
    in_pieces(TABLE, tmp_path / "rows", [300, 600])
    return tmp_path / "rows"


class TestFilesNamedTwice:
    @pytest.mark.parametrize("how", ["file", "folder and pattern", "another way there", "link"])
    def test_is_an_error_that_names_the_file(self, folder, how, monkeypatch):
        monkeypatch.chdir(folder)
        file = folder / "part-000.parquet"
        (folder.parent / "link.parquet").symlink_to(file)
        names = {
            "file": [file, file],
            "folder and pattern": [folder, f"{folder}/*.parquet"],
            "another way there": [file, "part-000.parquet"],
            "link": [folder, folder.parent / "link.parquet"],
        }[how]
        with pytest.raises(ValueError, match=r"(part-000|link)\.parquet is named twice.*count twice"):
            bc.summarize(names, target="y", **QUICK)

    def test_different_files_of_the_same_rows_are_no_error(self, folder, tmp_path):
        written(TABLE.slice(0, 300), tmp_path / "copy.parquet")
        assert opened([folder, tmp_path / "copy.parquet"], None, "y", None, None).row_count == 1200


class TestPatternsOfFolders:
    @pytest.fixture
    def years(self, tmp_path):
        for k in range(3):
            written(TABLE.slice(300 * k, 300), tmp_path / f"year={2019 + k}" / "rows.parquet")
        return tmp_path

    @pytest.mark.parametrize("pattern", ["year=*", "*", "**", "*/rows.parquet", "year=20[12]*"])
    def test_take_the_files_in_them(self, years, pattern, monkeypatch):
        expected = [years / f"year={2019 + k}" for k in range(3)]
        reader = opened(str(years / pattern), None, "y", ["a", "year"], None)
        assert reader.files == [str(path / "rows.parquet") for path in expected]
        listed = opened(expected, None, "y", ["a", "year"], None)
        assert np.array_equal(reader.rows(np.arange(900)).x, listed.rows(np.arange(900)).x)
        monkeypatch.chdir(years)
        assert len(found_files(f"./{pattern}")[0]) == 3

    def test_give_the_same_coreset(self, years):
        assert_same(bc.summarize(str(years / "year=*"), target="y", **QUICK), bc.summarize(X, Y, **QUICK))

    def test_folders_that_are_set_aside(self, years):
        written(TABLE, years / "_old" / "rows.parquet")
        assert opened(str(years / "*"), None, "y", None, None).row_count == 900

    def test_folders_of_nothing(self, tmp_path):
        (tmp_path / "k=1").mkdir()
        with pytest.raises(FileNotFoundError, match=r"k=\* matches folders only.*no Parquet"):
            bc.summarize(os.fspath(tmp_path / "k=*"), target="y")

    def test_folder_that_is_called_like_a_file(self, folder):
        """As Spark calls them."""
        folder.rename(folder.parent / "rows.parquet")
        assert opened(folder.parent, None, "y", None, None).row_count == 900


@pytest.mark.parametrize("target", ["y", None])
@pytest.mark.parametrize("nothing", [[], ()])
def test_list_of_nothing(nothing, target):
    with pytest.raises(ValueError, match=r"data: the list names no files, got (\[\]|\(\))"):
        bc.summarize(nothing, target=target)
    with pytest.raises(ValueError, match="data: the list names no files"):
        bc.summarize(nothing, Y)
