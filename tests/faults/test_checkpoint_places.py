"""Where a checkpoint cannot be: said by the name of the argument, with a remedy, before any row is read."""

import sys
from pathlib import Path

import numpy as np
import pytest

import betacores as bc
from betacores.checkpoints import checkpoint_folder

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no /proc")


def refused(place, kind, said):
    """The table is no table, and a run that got as far as that would say so."""
    with pytest.raises(kind, match=rf"^checkpoint: .*{said}"):
        bc.summarize(None, checkpoint=place)


@pytest.mark.parametrize("place", [5, True, 0.5, b"notes", ["notes"]], ids=repr)
def test_what_is_no_name_is_refused(place):
    refused(place, TypeError, r"expected the name of a folder, got .*; name one, such as 'notes'")


@pytest.mark.parametrize("place", ["", "  "])
def test_no_name_does_not_mean_the_current_folder(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(place, ValueError, "expected the name of a folder, got '.*'; name one, such as 'notes'")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("deep", ["notes", "very/deep/notes"])
def test_no_folder_can_be_inside_a_file(deep, tmp_path):
    (tmp_path / "file").write_text("mine")
    refused(tmp_path / "file" / deep, NotADirectoryError, "cannot be made, since .*file is no folder; choose another")


@pytest.mark.parametrize("place", ["/proc/xx", "/proc/xx/notes", "/sys/xx"])
@LINUX
def test_places_that_cannot_be_written_to(place):
    refused(place, OSError, r"cannot be written to \(.*\); choose another folder")


@pytest.mark.parametrize("name", ["n" * 300, "nothing\0"], ids=["long", "null"])
def test_names_that_no_folder_can_have(name, tmp_path):
    refused(str(tmp_path / name), OSError, r"cannot be used \(.*\); choose another folder")


def test_a_link_to_nothing_is_no_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    refused(tmp_path / "link", FileExistsError, "is no folder; name a folder")


def test_to_look_writes_nothing(tmp_path):
    assert checkpoint_folder(str(tmp_path / "deep" / "notes")) == tmp_path / "deep" / "notes"
    assert checkpoint_folder(tmp_path) == tmp_path
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_later_is_told_with_a_remedy(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"^checkpoint: .*cannot be written \(no space left on device\); make room"):
        bc.summarize(np.random.default_rng(0).normal(size=(200, 2)), checkpoint=Path(tmp_path / "notes"))
