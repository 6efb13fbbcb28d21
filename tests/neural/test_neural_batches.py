"""Who is in which batch once the initial rows are taken out."""

import numpy as np
import pytest

from betacores.groups import Groups, read_groups
from betacores.neural.fit import _batches


def dealt(count=100, batches=None, batch_size=10, initial=None, seed=0):
    return _batches(count, batches, batch_size, initial, np.random.default_rng(seed))


def check_partition(found, count):
    assert found.codes.shape == (count,)
    assert found.codes.min() == 0
    assert np.bincount(found.codes, minlength=len(found)).tolist() == found.sizes.tolist()
    assert sorted(found.members(np.arange(len(found))).tolist()) == list(range(count))
    assert found.labels[0] is None
    assert all(label is not None for label in found.labels[1:])


@pytest.mark.parametrize("count", [1, 2, 3, 9, 10, 11, 57, 100])
@pytest.mark.parametrize("initial", [None, 1, 7])
def test_rows_dealt_out_are_a_partition_into_batches_of_one_size(count, initial):
    found = dealt(count, initial=initial)
    check_partition(found, count)
    others = found.sizes[1:]
    assert (others > 0).all()
    assert (others[:-1] == 10).all()
    assert found.labels[1:] == list(range(len(others)))
    if initial is not None:
        assert found.sizes[0] == min(initial, count)
    assert 1 <= found.sizes[0] <= count


def test_rows_are_dealt_out_at_random_and_by_the_generator():
    one, again, other = dealt(seed=1), dealt(seed=1), dealt(seed=2)
    assert one.codes.tolist() == again.codes.tolist() != other.codes.tolist()
    assert abs(np.corrcoef(one.codes, np.arange(100))[0, 1]) < 0.4


@pytest.mark.parametrize("initial", [np.array([5, 3, 99]), np.array([3, 3, 5, 99])])
def test_initial_rows_come_first_and_only_once(initial):
    found = dealt(initial=initial)
    check_partition(found, 100)
    assert found.members(np.array([0])).tolist() == [3, 5, 99]


def test_labels_go_with_their_rows():
    given, _ = read_groups(list("ccbbbadd"), None, 8)
    found = dealt(8, given, initial=np.array([2, 6]))
    check_partition(found, 8)
    assert found.labels == [None, "c", "b", "a", "d"]
    assert [found.labels[code] for code in found.codes] == ["c", "c", None, "b", "b", "a", None, "d"]
    assert given.labels == ["c", "b", "a", "d"]
    assert given.codes.tolist() == [0, 0, 1, 1, 1, 2, 3, 3], "what was given must stay as it was"


def test_batches_of_which_nothing_is_left_are_gone():
    given, _ = read_groups(list("ccbbbadd"), None, 8)
    found = dealt(8, given, initial=np.array([0, 1, 5]))
    check_partition(found, 8)
    assert found.labels == [None, "b", "d"]
    assert dealt(8, given, initial=np.arange(8)).labels == [None]


def test_labels_of_any_kind():
    given = Groups([("a", 1), None, 3.5], np.array([0, 1, 2, 1]))
    found = dealt(4, given, initial=np.array([3]))
    assert found.labels == [None, ("a", 1), None, 3.5]
    assert found.codes.tolist() == [1, 2, 3, 0]
