"""Checkpoints: what is noted down is used if it is of this run and whole, and never otherwise."""

import json
import re
import shutil

import numpy as np
import pytest
from scale_tables import NAMES, QUICK, ROWS, arrow_table, assert_identical, logistic_table, written

import betacores as bc
from betacores.sources.base import BLOCK_ROWS

X, Y = logistic_table()


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return written(arrow_table(X, y=Y), tmp_path_factory.mktemp("rows") / "rows.parquet")


@pytest.fixture(scope="module")
def undisturbed(rows):
    return bc.summarize(rows, target="y", **QUICK)


@pytest.fixture(scope="module")
def complete(rows, tmp_path_factory):
    """The folder of a run that is over."""
    folder = tmp_path_factory.mktemp("checkpoint") / "complete"
    bc.summarize(rows, target="y", checkpoint=folder, **QUICK)
    return folder


@pytest.fixture
def folder(complete, tmp_path):
    return shutil.copytree(complete, tmp_path / "checkpoint")


class Stopped(Exception):
    pass


def stopping_at(call):
    """Return a callback that stops the run at its so-manieth call after the first look."""
    calls = iter(range(10**6))

    def on_pass(stage, rows, total):
        if stage != "check" and next(calls) == call:
            raise Stopped

    return on_pass


def test_run_stopped_at_block_after_block_ends_with_the_same_coreset(rows, undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr("betacores.sources.journal.OFTEN", 0.0)
    given = {"target": "y", "checkpoint": tmp_path / "notes", **QUICK}
    # Passes that are over tell only of their beginning, so that each run comes a block or two farther.
    stopped = 0
    for call in [1, 2, 3, 3, 4, 5, 4, 5]:
        try:
            bc.summarize(rows, on_pass=stopping_at(call), **given)
        except Stopped:
            stopped += 1
    assert stopped >= 5
    assert_identical(bc.summarize(rows, **given), undisturbed)


def test_second_run_reads_the_notes_and_computes_nothing(rows, undisturbed, folder):
    told = []
    again = bc.summarize(rows, target="y", checkpoint=folder, on_pass=lambda *now: told.append(now), **QUICK)
    assert_identical(again, undisturbed)
    assert {seen for stage, seen, _ in told if stage != "check"} == {0}
    assert ("check", ROWS, ROWS) in told
    assert not list(folder.glob(".*"))


def test_tables_in_memory_have_checkpoints_too(undisturbed, tmp_path):
    given = {"checkpoint": tmp_path / "deep" / "notes", **QUICK}
    with pytest.raises(Stopped):
        bc.summarize(X, Y, on_pass=stopping_at(6), **given)
    assert (tmp_path / "deep" / "notes" / "journal.json").exists()
    found = bc.summarize(X, Y, **given)
    assert np.array_equal(found.indices, undisturbed.indices)
    assert np.array_equal(found.scores, np.asarray(undisturbed.scores))
    other = X.copy()
    other[100_000, 2] += 1
    with pytest.raises(ValueError, match="of another run, which differs in data"):
        bc.summarize(other, Y, **given)


def test_half_a_block_at_the_end_of_the_numbers_is_written_again(rows, undisturbed, folder):
    """What a kill leaves behind: bytes whose sum was not yet noted down."""
    numbers = next(folder.glob("*.f32"))
    sums = numbers.with_name(numbers.name + ".sums")
    sums.write_bytes(sums.read_bytes()[:6])
    numbers.write_bytes(numbers.read_bytes()[: 4 * BLOCK_ROWS + 1001])
    assert_identical(bc.summarize(rows, target="y", checkpoint=folder, **QUICK), undisturbed)


def flipped(path, at):
    held = bytearray(path.read_bytes())
    held[at] ^= 1
    path.write_bytes(held)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-9])


DAMAGE = {
    "a bit of a sum": lambda folder: flipped(sorted(folder.glob("*.state"))[0], -5),
    "head of a sum": lambda folder: flipped(sorted(folder.glob("*.state"))[0], 0),
    "sum cut short": lambda folder: cut_short(sorted(folder.glob("*.state"))[-1]),
    "empty file": lambda folder: sorted(folder.glob("*.state"))[-1].write_bytes(b""),
    "a bit of the numbers": lambda folder: flipped(next(folder.glob("*.f32")), 4 * 100_000),
    "numbers cut short": lambda folder: cut_short(next(folder.glob("*.f32"))),
    "numbers gone": lambda folder: next(folder.glob("*.f32")).unlink(),
    "what the numbers are of": lambda folder: next(folder.glob("pass-*.json")).write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_an_error(rows, folder, damage):
    DAMAGE[damage](folder)
    with pytest.raises(ValueError, match=r"checkpoint: .*pass-\d+.* is damaged; delete the folder"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


def changed_bytes(path, count):
    """Yield a file's bytes with one changed: three quarters of them all over the head, the others in the body."""
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    head = whole.index(b"}\n") + 2
    places = [*np.linspace(0, head - 1, count - count // 4).astype(int), *rng.integers(head, len(whole), count // 4)]
    for place in places:
        held = bytearray(whole)
        # Another digit, where it is one: what a parser takes for a number.
        digit = chr(held[place]).isdigit()
        held[place] = 48 + (held[place] - 48 + 1) % 10 if digit else held[place] ^ (1 << int(rng.integers(8)))
        yield int(place), bytes(held)


@pytest.mark.parametrize("which", [0, -1])
def test_any_changed_byte_of_a_pass_is_an_error(rows, folder, which):
    path = sorted(folder.glob("*.state"))[which]
    whole = path.read_bytes()
    for place, held in changed_bytes(path, 40):
        path.write_bytes(held)
        with pytest.raises(ValueError, match=r"checkpoint: .*pass-\d+\.state is damaged; delete the folder"):
            bc.summarize(rows, target="y", checkpoint=folder, **QUICK)
        assert held != whole, place
    path.write_bytes(whole)


@pytest.mark.parametrize(
    "change",
    [(b'"done": 3', b'"done": 2'), (b'"done": 3', b'"done": 99'), (b'"done": 3', b'"done": "x"'), (b"false", b"true")],
    ids=repr,
)
def test_a_head_that_was_edited_is_an_error(rows, folder, change):
    path = next(path for path in sorted(folder.glob("*.state")) if change[0] in path.read_bytes())
    path.write_bytes(re.sub(*change, path.read_bytes()))
    with pytest.raises(ValueError, match=r"checkpoint: .*pass-\d+\.state is damaged"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


@pytest.mark.parametrize("name", ["journal.json", "pass-*.json", "pass-*.sums"])
def test_changed_bytes_of_the_other_files_are_an_error_or_say_nothing(rows, undisturbed, folder, name):
    path = next(folder.glob(name))
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for place in rng.choice(len(whole), min(12, len(whole)), replace=False):
        held = bytearray(whole)
        held[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(held)
        found, said = None, ""
        try:
            found = bc.summarize(rows, target="y", checkpoint=folder, **QUICK)
        except ValueError as error:
            said = str(error)
        if found is not None:
            assert_identical(found, undisturbed)
        else:
            assert said.startswith("checkpoint: "), place
            assert re.search("[dD]elete the folder|delete it to begin again", said), place
    path.write_bytes(whole)


def test_a_number_too_large_for_a_machine_is_another_pass(rows, folder):
    path = next(folder.glob("pass-*.json"))
    path.write_text('{"asked": 12e4567890}')
    with pytest.raises(ValueError, match=r"checkpoint: .* was written for another pass"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


def test_a_checkpoint_in_the_format_of_before_is_refused(rows, folder):
    place = folder / "journal.json"
    about = json.loads(place.read_text())
    del about["format"]
    place.write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"differs in format \(None there, 2 now\); choose another folder, or delete"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


def test_notes_of_another_pass_are_an_error(rows, folder):
    first, *_, last = sorted(folder.glob("*.state"))
    shutil.copy(first, last)
    with pytest.raises(ValueError, match=r"checkpoint: .* was written for another pass"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"rows"'])
def test_broken_description_is_an_error(rows, folder, text):
    (folder / "journal.json").write_text(text)
    with pytest.raises(ValueError, match=r"checkpoint: .*(cannot be read|another run).*delete"):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 1}, "settings"),
        ({"beta": 0.4}, "settings"),
        ({"size": 7}, "settings"),
        ({"columns": NAMES[:2]}, "data"),
        ({"model": "linear"}, "model"),
    ],
    ids=str,
)
def test_checkpoint_of_other_settings_is_refused(rows, folder, change, said):
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    with pytest.raises(ValueError, match=rf"checkpoint: .* of another run, which differs in .*{said}"):
        bc.summarize(rows, target="y", checkpoint=folder, **{**QUICK, **change})
    assert before == sorted((path.name, path.read_bytes()) for path in folder.iterdir())


@pytest.mark.parametrize("package", ["betacores", "jax", "numpy"])
def test_checkpoint_of_another_version_is_refused(rows, folder, package):
    place = folder / "journal.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), package: "0.0.1"}))
    with pytest.raises(ValueError, match=rf"differs in {package} \('0.0.1' there, "):
        bc.summarize(rows, target="y", checkpoint=folder, **QUICK)


def test_checkpoint_of_a_file_that_was_written_again_is_refused(tmp_path):
    path, given = tmp_path / "rows.parquet", {"target": "y", "checkpoint": tmp_path / "notes", **QUICK}
    written(arrow_table(X, y=Y), path)
    with pytest.raises(Stopped):
        bc.summarize(path, on_pass=stopping_at(1), **given)
    written(arrow_table(X[::-1], y=Y[::-1]), path)
    with pytest.raises(ValueError, match="of another run, which differs in data"):
        bc.summarize(path, **given)


def test_folder_with_other_files_is_left_alone(rows, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds other files \(thesis.tex\); name a new or empty folder"):
        bc.summarize(rows, target="y", checkpoint=tmp_path, **QUICK)
    with pytest.raises(FileExistsError, match="is a file; name a folder"):
        bc.summarize(rows, target="y", checkpoint=tmp_path / "thesis.tex", **QUICK)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_killed_while_beginning(rows, undisturbed, tmp_path):
    """A folder that holds no more than a draft is as good as empty."""
    (tmp_path / ".journal.json.1234").write_text("{")
    assert_identical(bc.summarize(rows, target="y", checkpoint=tmp_path, **QUICK), undisturbed)
