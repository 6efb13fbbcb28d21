"""Trust in sites whose log-likelihoods are quadratic: calibrated on clean ones, and low where they contradict."""

import numpy as np
import pytest
from scipy import stats

from betacores.merging.trust import Bowls, Distances, Judgement, Jury, judge

P = 4


def sites(seed, rows, *, spread=0.0, shift=None):
    """Sites of a few rows each: log-likelihoods whose modes are the truth, chance, and what is shifted."""
    rng = np.random.default_rng(seed)
    gradients, precisions = [], []
    for place, count in enumerate(rows):
        z = rng.normal(size=(count, P)) * [1, 2, 0.5, 1]
        information = z.T @ z
        truth = spread * rng.normal(size=P) / [1, 2, 0.5, 1]
        if shift and place in shift:
            truth = truth + shift[place]
        gradients.append(information @ truth + z.T @ rng.normal(size=count))
        precisions.append(information)
    return Bowls(np.array(gradients), np.array(precisions))


def jury(rows, **settings):
    rows = np.asarray(rows, float)
    given = {"votes": rows, "slack": np.zeros(len(rows)), "ridge": np.full(P, 1e-3)} | settings
    return Jury(rows, **given)


def judged(bowls, rows, **settings) -> Judgement:
    return judge(jury(rows, **settings), lambda trust: bowls)


def test_the_distance_is_that_of_two_estimates_in_units_of_their_common_variance():
    rows, trust, spread = [80, 200, 150], np.array([1.0, 0.5, 1.0]), 0.2
    bowls = sites(0, rows)
    seen = Distances.of(jury(rows, ridge=np.full(P, 1e-12)), bowls, trust).at(spread)
    for s in range(3):
        others = [r for r in range(3) if r != s]
        precision = sum(trust[r] * bowls.precision[r] for r in others)
        centre = np.linalg.solve(precision, sum(trust[r] * bowls.gradient[r] for r in others))
        away = np.linalg.solve(bowls.precision[s], bowls.gradient[s]) - centre
        weight = sum(trust[r] * rows[r] for r in others)
        variance = np.linalg.inv(bowls.precision[s]) + (1 + spread**2 * weight) * np.linalg.inv(precision)
        assert seen[s] == pytest.approx(np.sqrt(away @ np.linalg.solve(variance, away)), rel=1e-6)


def test_distances_of_clean_sites_have_the_law_they_are_compared_with():
    found = []
    for seed in range(400):
        rows = [60, 200, 120, 90]
        found.append(Distances.of(jury(rows), sites(seed, rows), np.ones(4)).at(0.0)[seed % 4] ** 2)
    assert stats.kstest(found, stats.chi2(P).cdf).pvalue > 0.01


@pytest.mark.parametrize("count", [2, 3, 4, 16])
def test_clean_sites_are_trusted(count):
    doubted = 0
    for seed in range(120):
        rows = np.random.default_rng(1000 + seed).integers(50, 500, count)
        found = judged(sites(seed, rows), rows, majority=0.9 if count == 2 else 0.6)
        doubted += found.trust.min() < 0.9 or not found.agreed
    # One in a hundred is meant.
    assert doubted <= 0.03 * 120


@pytest.mark.parametrize("count", [3, 4, 16])
@pytest.mark.parametrize("size", [0.5, 100.0])
def test_a_site_that_contradicts_the_others_is_set_aside(count, size):
    doubted = 0
    for seed in range(25):
        rows = np.full(count, 400)
        found = judged(sites(seed, rows, shift={1: size}), rows)
        assert found.agreed
        assert found.trust[1] == 0
        assert found.distance[1] > found.chance[1]
        doubted += np.delete(found.trust, 1).min() < 0.9
    assert doubted <= 1


def test_up_to_nearly_half_of_the_sites_may_be_bad_even_if_they_agree_with_each_other():
    bad = {place: np.array([1.0, 0, 0, 0]) for place in (0, 3, 5, 8)}
    for seed in range(20):
        rows = np.full(11, 300)
        found = judged(sites(seed, rows, shift=bad), rows)
        assert found.trust[list(bad)].max() == 0
        assert found.agreed


def test_trust_falls_smoothly_with_the_distance():
    rows = np.full(8, 300)
    trusts = [judged(sites(3, rows, shift={2: size}), rows).trust[2] for size in np.linspace(0, 0.6, 60)]
    assert trusts[0] == 1
    assert trusts[-1] == 0
    assert any(0.05 < trust < 0.95 for trust in trusts)


def test_votes_are_weights():
    rows = np.array([100_000, 1000])
    bowls = sites(0, rows, shift={1: 0.5})
    assert judged(bowls, rows, majority=0.9).trust.tolist() == [1, 0]
    swapped = Bowls(bowls.gradient[::-1], bowls.precision[::-1])
    assert judged(swapped, rows[::-1], majority=0.9).trust.tolist() == [0, 1]


def test_with_two_equal_sites_nobody_can_tell():
    rows = np.array([500, 400])
    found = judged(sites(0, rows, shift={1: 1.0}), rows, majority=0.9)
    assert not found.agreed
    assert found.trust.tolist() == [1, 1]
    assert (found.distance > found.chance).all()


def test_sites_that_all_differ_are_trusted_up_to_their_spread_and_it_is_told():
    spreads = []
    for seed in range(10):
        rows = np.full(16, 400)
        found = judged(sites(seed, rows, spread=0.5, shift={4: 30.0}), rows)
        assert not found.agreed
        assert found.trust[4] == 0
        assert np.delete(found.trust, 4).mean() > 0.9
        spreads.append(found.spread)
    assert np.median(spreads) == pytest.approx(0.5, rel=0.3)


def test_a_mild_spread_raises_no_alarm():
    doubted = 0
    for seed in range(50):
        rows = np.full(16, 400)
        doubted += judged(sites(seed, rows, spread=0.03), rows).trust.min() < 0.5
    assert doubted <= 2


def test_what_a_summary_says_it_lacks_is_allowed_for():
    rows = np.full(6, 400)
    bowls = sites(1, rows, shift={2: 0.25})
    assert judged(bowls, rows).trust[2] < 0.1
    assert judged(bowls, rows, slack=np.array([0, 0, 10.0, 0, 0, 0])).trust[2] == 1


def test_a_given_spread_is_kept():
    rows = np.array([400, 400])
    bowls = sites(1, rows, shift={1: 0.5})
    found = judged(bowls, rows, spread=1.0)
    assert found.trust.tolist() == [1, 1]
    assert found.agreed
    assert found.spread == 1.0


def test_a_site_is_not_judged_in_directions_that_only_it_knows():
    rows = np.full(4, 400)
    bowls = sites(2, rows)
    for place in (0, 1, 2):
        bowls.precision[place][0], bowls.precision[place][:, 0], bowls.gradient[place][0] = 0, 0, 0
    bowls.gradient[3] += bowls.precision[3] @ [50.0, 0, 0, 0]
    assert judged(bowls, rows).trust.min() > 0.9


def test_one_site_is_trusted():
    found = judged(sites(0, [50]), [50])
    assert found.trust.tolist() == [1]
    assert found.agreed
