"""How many rows pursuit keeps when that is left open, and its own estimate of the divergence against the exact one."""

import numpy as np
import pytest
from closed_forms import NOISE, exact_kl, linear_table

import betacores as bc
from betacores.models import LinearRegression


@pytest.fixture(scope="module", params=["gaussian", "linear"])
def open_sizes(request):
    if request.param == "gaussian":
        x, y, model = bc.datasets.contaminated_gaussian(1, 0.1, rows=800, columns=5).x, None, "gaussian-mean"
    else:
        (x, y), model = linear_table(1, 800, 2), LinearRegression(NOISE)
    tolerances = (2.0, 0.1, 0.01)
    return {
        t: bc.summarize(x, y, model=model, beta=0.02 if y is None else 0.0, size="auto", tolerance=t, guard=None)
        for t in tolerances
    }


def test_an_open_size_ends_where_the_divergence_is_below_the_tolerance(open_sizes):
    for tolerance, coreset in open_sizes.items():
        divergences = coreset.info.trace["remaining"]
        assert divergences[-1] <= tolerance
        estimate = coreset.info.kl_estimate
        assert estimate.value <= 1.2 * tolerance + 4 * estimate.standard_error
        assert len(coreset) <= len(divergences)
        assert coreset.info.settings["size"] == "auto"
        assert any(note.startswith(f"size: {len(coreset)} rows") for note in coreset.info.notes)


def test_a_smaller_tolerance_keeps_no_fewer_rows_and_is_kept_by_the_estimate_from_fresh_draws(open_sizes):
    sizes = [len(open_sizes[t]) for t in (2.0, 0.1, 0.01)]
    assert sizes == sorted(sizes)
    assert open_sizes[0.1].info.kl_estimate.value < 0.2
    assert open_sizes[0.01].info.kl_estimate.value < 0.03


def test_a_tolerance_out_of_reach_is_told():
    table = bc.datasets.contaminated_gaussian(1, 0.0, rows=800, columns=5)
    # All of them are taken, or some are of no use.
    with pytest.warns(UserWarning, match=r"above the tolerance 0.1; (all|none) of the 3 rows to choose from") as caught:
        coreset = bc.summarize(table.x, beta=0.0, candidates=3)
    assert len(caught) == 1
    assert ("all of" in str(caught[0].message)) == (len(coreset) == 3)
    assert coreset.info.warnings
    assert not any("enough for" in note for note in coreset.info.notes)


def test_a_posterior_of_another_shape_is_told_with_what_follows_it():
    x, y = linear_table(1, 60, 2)
    y = np.where(np.arange(60) % 3 == 0, y + 3 * NOISE, y)
    settings = {"model": LinearRegression(NOISE), "beta": 1.4, "guard": None, "tolerance": 0.002}
    with pytest.warns(
        UserWarning,
        match="rows to choose from brings it nearer: choose readout='beta' or a smaller beta",
    ):
        bent = bc.summarize(x, y, **settings)
    with pytest.warns(UserWarning, match="rows to choose from brings it nearer.$"):
        followed = bc.summarize(x, y, readout="beta", **settings)
    assert followed.info.kl_estimate.value < bent.info.kl_estimate.value / 2


@pytest.mark.parametrize("tolerance", [0, -1.0, float("nan"), "small"])
def test_a_tolerance_must_be_positive(tolerance):
    with pytest.raises((ValueError, TypeError), match="tolerance"):
        bc.summarize(np.eye(4), tolerance=tolerance)


def test_the_estimated_divergence_is_the_exact_one_for_a_gaussian_mean():
    seen = 0
    for seed in range(12):
        x = np.random.default_rng(seed).normal(1.0, 1.0, (800, 5))
        coreset = bc.summarize(x, size=5, beta=0.0, seed=seed, candidates=40)
        truth, estimate = exact_kl(coreset, x), coreset.info.kl_estimate
        # Five rows are nearly exact or far off by luck; beyond a few units the estimate only says "large".
        if not 1e-3 < truth < 3:
            continue
        seen += 1
        assert abs(estimate.value - truth) < 4 * estimate.standard_error
        assert estimate.standard_error < 0.2 * truth
    assert seen >= 3


@pytest.mark.parametrize("seed", range(4))
def test_the_estimated_divergence_is_the_exact_one_for_linear_regression(seed):
    x, y = linear_table(seed, 800, 2)
    settings = {"model": LinearRegression(NOISE), "guard": None, "beta": 0.0, "seed": seed}
    coreset = bc.summarize(x, y, size=6, candidates=40, **settings)
    truth, estimate = exact_kl(coreset, x, y), coreset.info.kl_estimate
    assert 0.01 < truth < 3
    assert abs(estimate.value - truth) < 4 * estimate.standard_error
    assert estimate.standard_error < 0.2 * truth


@pytest.mark.parametrize("option", [{"exchanges": 20}, {"polish": 2}], ids=str)
def test_refinements_do_not_lower_the_quality_of_a_linear_coreset(option):
    x, y = linear_table(2, 800, 2)
    settings = {"model": LinearRegression(NOISE), "guard": None, "beta": 0.0, "size": 6}
    plain, better = bc.summarize(x, y, **settings), bc.summarize(x, y, **settings, **option)
    assert exact_kl(better, x, y) < 1.2 * exact_kl(plain, x, y) + 0.05
