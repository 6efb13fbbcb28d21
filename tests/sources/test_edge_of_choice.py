"""Of rows that tie for the last place the ones of lowest number are picked."""

import numpy as np
import pytest

from betacores.sources import choice


@pytest.mark.parametrize("count", [0, 1, 7, 20, 50])
def test_ties_at_the_edge_are_settled_by_row_numbers(count):
    random = np.random.default_rng(count)
    ids, priority = random.permutation(40), random.integers(0, 4, 40).astype(np.float32)
    kept = choice._cut([ids, priority, ids * 2], count)
    best = sorted(range(40), key=lambda k: (-priority[k], ids[k]))[:count]
    assert set(kept[0].tolist()) == {int(ids[k]) for k in best}
    np.testing.assert_array_equal(kept[2], 2 * kept[0])
