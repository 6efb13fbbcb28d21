"""Raw files: found where the documentation says, refused when they are not what they should be."""

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betacores.datasets import files

TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two empty places to look into; no file of the person who runs the tests is seen."""
    data, cache = tmp_path / "data", tmp_path / "cache" / "betacores"
    for folder in data, cache:
        folder.mkdir(parents=True)
    monkeypatch.setenv("BETACORES_DATA", str(data))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return data, cache


@pytest.fixture
def known(monkeypatch, tmp_path):
    """A small table registered as if it were Adult."""
    path = tmp_path / "original.parquet"
    pq.write_table(TABLE, path)
    entry = files.FILES["adult"]._replace(sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setitem(files.FILES, "adult", entry)
    return path


def test_both_places_are_looked_into_and_the_first_counts(folders, known):
    data, cache = folders
    (cache / "adult.parquet").write_bytes(known.read_bytes())
    assert files.find("adult") == cache / "adult.parquet"
    (data / "adult.parquet").write_bytes(known.read_bytes())
    assert files.find("adult") == data / "adult.parquet"


def test_columns_are_read(folders, known):
    (folders[0] / "adult.parquet").write_bytes(known.read_bytes())
    assert files.read("adult", columns=["b"]).to_pydict() == {"b": ["x", "y"]}
    assert files.column_names("adult") == ["a", "b"]
    assert files.arrays(TABLE)["b"].tolist() == ["x", "y"]


@pytest.mark.parametrize("name", files.FILES)
def test_a_missing_file_is_named_with_its_places_and_its_source(folders, name):
    with pytest.raises(FileNotFoundError) as error:
        files.find(name)
    for part in (files.FILES[name].file, *map(str, folders), files.FILES[name].source, "path="):
        assert part in str(error.value)


def test_an_unset_variable_is_mentioned(folders, monkeypatch):
    monkeypatch.delenv("BETACORES_DATA")
    with pytest.raises(FileNotFoundError, match="BETACORES_DATA is not set"):
        files.find("covtype")


@pytest.mark.parametrize("cache", ["", "relative/folder"])
def test_the_cache_folder_falls_back_to_the_home_folder(monkeypatch, tmp_path, cache):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    assert files.places()[-1] == tmp_path / ".cache" / "betacores"


def test_a_changed_file_is_refused_and_not_skipped(folders, known):
    data, cache = folders
    (cache / "adult.parquet").write_bytes(known.read_bytes())
    pq.write_table(TABLE.slice(1), data / "adult.parquet")
    with pytest.raises(ValueError, match=r"SHA-256 is .*, expected .*pass path="):
        files.find("adult")


def test_a_file_of_ones_own_needs_only_the_columns(folders, tmp_path):
    path = tmp_path / "mine.parquet"
    pq.write_table(TABLE, path)
    assert files.find("adult", path=path, columns=["a"]) == path
    with pytest.raises(ValueError, match="lacks columns: 'c', 'd'"):
        files.find("adult", path=str(path), columns=["a", "c", "d"])
    with pytest.raises(ValueError, match="and 4 more"):
        files.find("adult", path=path, columns=list("cdefghijk"))


def test_what_is_no_parquet_file_is_refused(folders, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,x\n")
    with pytest.raises(ValueError, match="not a Parquet file"):
        files.find("adult", path=path)
    with pytest.raises(FileNotFoundError, match="is not a file"):
        files.find("adult", path=tmp_path)


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'adult'"):
        files.find("adults")


@pytest.mark.data
@pytest.mark.parametrize("name", files.FILES)
def test_the_real_file_is_the_known_one(name):
    try:
        found = files.find(name)
    except FileNotFoundError:
        pytest.skip(f"BETACORES_DATA does not hold {files.FILES[name].file}")
    assert found.name == files.FILES[name].file
