"""What is uncertain and said to be: a second mode nearly as good, and the share of dirty rows."""

import warnings

import numpy as np
import pytest

import betacores as bc


def test_a_table_of_two_nearly_equal_halves_gives_one_warning_of_the_other():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    x[:510] += 8.0
    with pytest.warns(UserWarning, match="Another mode explains nearly as many rows") as caught:
        coreset = bc.summarize(x, beta=0.5, size=8)
    assert len(caught) == 1
    assert len(coreset.info.pilot["rivals"]) == 1
    assert sum("Another mode" in warning for warning in coreset.info.warnings) == 1
    assert "warning: Another mode" in repr(coreset)
    # The larger half is the one that is used.
    assert np.all(coreset.indices < 510)


def test_so_it_does_when_beta_is_chosen():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1000, 2))
    x[:510] += 8.0
    with pytest.warns(UserWarning, match="Another mode") as caught:
        coreset = bc.summarize(x, size=8)
    assert len(caught) == 1
    assert coreset.info.pilot["rivals"]


def test_a_table_of_one_cluster_gives_no_warning():
    x = np.random.default_rng(0).normal(size=(1000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coreset = bc.summarize(x, beta=0.5, size=8)
    assert coreset.info.pilot["rivals"] == []


@pytest.mark.slow
def test_the_interval_covers_the_contamination_about_as_often_as_it_says():
    covered = 0
    for seed in range(20):
        table = bc.datasets.contaminated_gaussian(seed, 0.2, rows=2000, columns=5)
        coreset = bc.summarize(table.x, size=3, beta=0.05, seed=seed)
        low, high = coreset.contamination_interval
        assert low <= coreset.contamination <= high
        assert high - low < 0.1
        covered += low <= 0.2 <= high
    assert covered >= 17


def test_the_rows_kept_are_as_given():
    x = np.random.default_rng(0).normal(size=(1000, 2))
    for dtype in (np.float32, np.float64):
        coreset = bc.summarize(x.astype(dtype), beta=0.5, size=8)
        assert coreset.X.dtype == dtype
        np.testing.assert_array_equal(coreset.X, x.astype(dtype)[coreset.indices])
