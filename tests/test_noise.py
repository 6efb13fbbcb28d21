"""The noise around the line, found in spite of dirty rows: the truth is known, as the data are simulated."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from betacores.noise import estimate, fixed_point, robust_noise, told_of_exactness
from betacores.sources import ArraySource


def table(seed, rows=5000, columns=11, sigma=1.0, share=0.0, dirty=None, intercept=True):
    """Return covariates, and responses of which a share is replaced by `dirty(y, rng, sigma)`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    y = x @ rng.normal(size=columns) + 3 * intercept + sigma * rng.normal(size=rows)
    # The share exactly: with few rows a random one could be above what can be borne.
    bad = rng.permutation(rows)[: round(share * rows)]
    if dirty is not None:
        y[bad] = dirty(y[bad], rng, sigma)
    return x, y


def found(x, y, intercept=True, seed=0, weights=None):
    source = ArraySource(np.asarray(x, np.float32), np.asarray(y, np.float32), weights=weights)
    value = robust_noise(source, intercept, jax.random.key(seed))
    assert isinstance(value, float)
    assert np.isfinite(value)
    assert value > 0
    return value


FAR = {
    "shifted 20": lambda y, rng, sigma: y + 20 * sigma,
    "shifted down": lambda y, rng, sigma: y - 50 * sigma,
    "at 1e6": lambda y, rng, sigma: np.full_like(y, 1e6),
    "at 1e12": lambda y, rng, sigma: np.full_like(y, 1e12),
    "noise of 1e6": lambda y, rng, sigma: 1e6 * sigma * rng.normal(size=len(y)),
    "one-sided": lambda y, rng, sigma: y + 1e4 * sigma * rng.exponential(size=len(y)),
}


@pytest.mark.parametrize("sigma", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("share", [0.2, 0.4])
@pytest.mark.parametrize("dirty", FAR)
def test_far_rows_do_not_count(sigma, share, dirty):
    seed = list(FAR).index(dirty)
    value = found(*table(seed, 5000, 11, sigma, share, FAR[dirty]), seed=seed)
    assert value == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize("sigma", [0.01, 1.0, 1000.0])
def test_clean_rows(sigma):
    ratios = [found(*table(seed, 5000, 11, sigma), seed=seed) / sigma for seed in range(5)]
    np.testing.assert_allclose(ratios, 1.0, atol=0.05)


def shifted(seed, by, share):
    return found(*table(seed, share=share, dirty=lambda y, rng, sigma: y + by * sigma), seed=seed)


def test_rows_shifted_by_six_sigma_hardly_count():
    np.testing.assert_allclose([shifted(seed, 6.0, 0.4) for seed in range(6)], 1.0, atol=0.08)


def test_rows_shifted_by_three_sigma_cannot_be_told():
    # One in five widens the noise by a third, two in five make one cluster, about as wide as all rows together.
    assert 1.2 < np.mean([shifted(seed, 3.0, 0.2) for seed in range(4)]) < 1.45
    assert 1.7 < np.mean([shifted(seed, 3.0, 0.4) for seed in range(4)]) < 2.1


def test_rows_of_ten_times_the_noise_widen_it_a_little():
    def dirty(y, rng, sigma):
        return y + 10 * sigma * rng.normal(size=len(y))

    for share, most in ((0.2, 1.08), (0.4, 1.2)):
        assert 1.0 < np.mean([found(*table(s, share=share, dirty=dirty), seed=s) for s in range(4)]) < most


# With 19 columns a fifteenth of the variance goes into the coefficients; the tolerance is less than that.
@pytest.mark.parametrize(("rows", "columns", "seeds"), [(200, 5, 60), (300, 19, 40)])
def test_clean_rows_give_an_unbiased_variance(rows, columns, seeds):
    variances = [found(*table(seed, rows, columns), seed=seed) ** 2 for seed in range(seeds)]
    assert np.mean(variances) == pytest.approx(1.0, abs=0.03)


def test_degrees_of_freedom_are_classical_without_weights():
    assert fixed_point._freedom(1e-9) == pytest.approx(1.0)
    assert fixed_point._freedom(0.5) > 1


@pytest.mark.parametrize(("rows", "columns", "share"), [(10, 1, 0.1), (30, 2, 0.2), (100, 5, 0.3), (200, 5, 0.4)])
@pytest.mark.parametrize("dirty", ["shifted 20", "at 1e6"])
def test_few_rows(rows, columns, share, dirty):
    values = [found(*table(seed, rows, columns, 1.0, share, FAR[dirty]), seed=seed) for seed in range(12)]
    assert 0.8 < np.median(values) < 1.2
    assert np.mean(np.array(values) > 3) <= 0.1


@pytest.mark.parametrize("share", [0.0, 0.4])
@pytest.mark.parametrize("shift", [20.0, 1e6])
def test_without_intercept(share, shift):
    def dirty(y, rng, sigma):
        return y + shift * sigma

    for seed in range(4):
        x, y = table(seed, share=share, dirty=dirty, intercept=False)
        assert found(x, y, intercept=False, seed=seed) == pytest.approx(1.0, abs=0.05)


def test_missing_intercept_is_noise():
    x, y = table(0)
    assert found(x, y, intercept=False) > 2


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_rows_of_no_weight_do_not_count(share):
    x, y = table(0)
    without = np.arange(len(y)) < share * len(y)
    y[without] = x[without, 0] + 7 + 0.1 * np.random.default_rng(1).normal(size=without.sum())
    weights = np.where(without, 0.0, 1.0)
    assert found(x, y, weights=weights) == pytest.approx(found(x[~without], y[~without]), rel=1e-3)


def test_rows_of_little_weight_count_little():
    x, y = table(0)
    wide = np.arange(len(y)) % 2 == 0
    y[wide] += 2 * np.random.default_rng(1).normal(size=wide.sum())
    assert found(x, y, weights=np.where(wide, 0.01, 1.0)) == pytest.approx(1.0, abs=0.05)
    assert found(x, y) > 1.2


def test_order_of_rows_does_not_matter():
    x, y = table(0, share=0.3, dirty=FAR["shifted 20"])
    order = np.random.default_rng(0).permutation(len(y))
    assert found(x[order], y[order], seed=1) == pytest.approx(found(x, y), rel=5e-3)


def test_units_do_not_matter():
    x, y = table(0, share=0.3, dirty=FAR["shifted 20"])
    expected = found(x, y)
    for unit in (1e-20, 1e20):
        assert found(x * np.logspace(-12, 12, 11), unit * y) / unit == pytest.approx(expected, rel=1e-3)
    assert found(x + 100, y - 300) == pytest.approx(expected, rel=1e-3)


def test_many_rows_are_all_used():
    x, y = table(0, 150_000, 3, 1.0, 0.4, FAR["at 1e12"])
    # Sorted, as files are: the search must not look at the first rows alone.
    order = np.argsort(y)
    assert found(x[order], y[order]) == pytest.approx(1.0, abs=0.01)


def test_dirty_where_a_covariate_is_large():
    x, y = table(0, 5000, 4)
    y[x[:, 0] > 0.5] += 1e6
    assert found(x, y) == pytest.approx(1.0, abs=0.05)


def test_rows_of_great_leverage():
    x, y = table(0)
    x[:500] = 1e6 * np.random.default_rng(1).normal(size=(500, 11))
    x[500:600] = 1e20
    assert found(x, y) == pytest.approx(1.0, abs=0.05)


def test_repeated_and_constant_columns():
    x, y = table(0, 3000, 4)
    wide = np.column_stack([x, x[:, 0], 1e6 * x[:, 1] + x[:, 2], np.ones(3000), np.zeros(3000)])
    assert found(wide, y) == pytest.approx(found(x, y), rel=0.01)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_exact_line_gives_a_millionth_of_the_scale(share):
    x, y = table(0, sigma=1e-12, share=share, dirty=lambda y, rng, sigma: y + 50 * rng.normal(size=len(y)))
    assert 1e-7 < found(x, y) / np.std(x @ np.ones(11)) < 1e-5
    flags = (x > 0.5).astype(float)
    assert found(flags, 2 * flags[:, 0]) < 1e-5


def test_no_more_rows_than_parameters_gives_the_scale_of_the_response():
    x, y = table(0, 6, 11, sigma=100.0)
    y[0] = 1e12
    assert found(x, y) == pytest.approx(1.4826 * np.median(np.abs(y - np.median(y))[y != np.median(y)]), rel=1)
    assert found(x[:1], y[:1]) > 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.poisson(0.05, 3000),
        lambda rng: rng.poisson(0.3, 3000),
        lambda rng: rng.poisson(1.0, 3000),
        lambda rng: rng.poisson(3.0, 3000),
        lambda rng: rng.random(3000) < 0.3,
        lambda rng: rng.exponential(size=3000) * (rng.random(3000) < 0.4),
    ],
)
def test_ties_do_not_make_the_noise_vanish(draw):
    x, _ = table(0, 3000, 4)
    y = draw(np.random.default_rng(0)).astype(float)
    assert 0.5 < found(x, y) / np.std(y) < 1.5


def test_rounded_responses():
    x, y = table(0)
    assert found(x, np.round(y)) == pytest.approx(np.sqrt(1 + 1 / 12), abs=0.05)


@pytest.mark.parametrize("intercept", [True, False])
def test_never_fails(intercept):
    rng = np.random.default_rng(0)
    for rows in (1, 2, 6, 12, 100):
        x, y = table(0, rows, 4)
        spoiled = np.where(rng.random(x.shape) < 0.1, 1e30, x)
        for covariates in (x, 0 * x, np.ones_like(x), spoiled, np.where(spoiled > 1e20, np.nan, x)):
            for response in (y, 0 * y, np.full_like(y, 1e12), 1e30 * y, np.where(y > 3, np.inf, y), np.sign(y)):
                found(covariates, response, intercept)
        found(x, y, intercept, weights=np.zeros(rows))


def test_one_compilation_for_a_shape():
    found(*table(0))
    compiled = estimate._block_sums.compiled._cache_size()
    found(*table(1, sigma=100.0, share=0.3, dirty=FAR["at 1e6"]), seed=1)
    assert estimate._block_sums.compiled._cache_size() == compiled


def test_columns_that_say_the_response_exactly_are_named():
    x, _ = table(0, rows=400, columns=4)
    names = ["hour", "casual", "registered", "wind"]
    total = x[:, 1] + 3 * x[:, 2]
    (said,) = told_of_exactness(x, total, names, 1e-6)
    assert "most of all 'registered', 'casual'; leave out" in said
    # Some dirty rows do not hide it.
    (said,) = told_of_exactness(x, np.where(np.arange(400) % 10 == 0, 50.0, total), names, 1e-6)
    assert "'registered', 'casual'" in said
    assert told_of_exactness(x, total, names, 0.1) == []
    assert told_of_exactness(x[:4], total[:4], names, 1e-6) == []
