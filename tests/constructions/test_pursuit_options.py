"""What pursuit can be asked for: exchanges, polish, rows to begin with, a reader."""

import numpy as np
import pytest

import betacores as bc
from betacores.constructions.nnls import exchanged, sparse_nonnegative


def posterior(x, weights):
    """Mean and precision, the same for every column, of the weighted classical posterior, standard normal prior."""
    precision = 1 + weights.sum()
    return weights @ np.asarray(x, np.float32).astype(float) / precision, precision


def kl_to_clean(coreset, table):
    """Divergence from the coreset's classical posterior to that of the clean rows, in closed form."""
    clean = table.x[~table.outlier]
    mean, precision = posterior(coreset.X, coreset.weights)
    other, sharper = posterior(clean, np.ones(len(clean)))
    ratio = sharper / precision
    return 0.5 * (len(mean) * (ratio - 1 - np.log(ratio)) + sharper * ((mean - other) ** 2).sum())


@pytest.fixture(scope="module")
def dirty():
    return bc.datasets.contaminated_gaussian(0, 0.2, rows=1500, columns=6)


@pytest.fixture(scope="module")
def scratch(dirty):
    return bc.summarize(dirty.x, size=12, beta=0.05)


@pytest.mark.parametrize("seed", range(6))
def test_exchanges_never_lengthen_the_residual(seed):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(80, 30)) + rng.normal(size=30)
    target = rng.random(80) @ vectors
    before = list(sparse_nonnegative(vectors, target, 8))[-1]
    lengths = [before.residual] + [exchanged(vectors, target, before, rounds).residual for rounds in (0, 1, 5, 20)]
    assert np.all(np.diff(lengths) <= 1e-9 * lengths[0])
    after = exchanged(vectors, target, before, 20)
    assert len(after.places) <= 8
    assert len(set(after.places.tolist())) == len(after.places)
    assert np.all(after.weights >= 0)
    lacking = target - after.weights @ vectors[after.places]
    assert np.linalg.norm(lacking) == pytest.approx(after.residual, rel=1e-9)


@pytest.mark.parametrize("option", [{"exchanges": 20}, {"polish": 2}], ids=str)
def test_refinements_do_not_lower_the_quality(option, dirty, scratch):
    refined = bc.summarize(dirty.x, size=12, beta=0.05, **option)
    assert kl_to_clean(refined, dirty) < kl_to_clean(scratch, dirty) + 0.1
    assert len(refined) <= 12
    assert not dirty.outlier[refined.indices].any()


def test_polish_of_a_single_row_that_is_no_help_any_more_keeps_what_there_was():
    x = np.random.default_rng(0).normal(1.0, 1.0, (300, 5))
    assert len(bc.summarize(x, size=1, beta=0.0, polish=2)) <= 1


def test_beginning_with_outliers_alone_ends_as_well_as_from_scratch(dirty, scratch):
    outliers = np.flatnonzero(dirty.outlier)[:10]
    coreset = bc.summarize(dirty.x, size=12, beta=0.05, init=outliers)
    assert not dirty.outlier[coreset.indices].any()
    assert kl_to_clean(coreset, dirty) <= kl_to_clean(scratch, dirty) + 0.2


def test_beginning_with_good_rows_keeps_most_of_them(dirty, scratch):
    coreset = bc.summarize(dirty.x, size=20, beta=0.05, init=scratch.indices)
    assert len(np.intersect1d(coreset.indices, scratch.indices)) >= len(scratch) / 2
    assert kl_to_clean(coreset, dirty) <= kl_to_clean(scratch, dirty) + 0.2


def test_rows_to_begin_with_need_not_be_among_the_candidates(dirty):
    good = np.flatnonzero(~dirty.outlier)[:400]
    coreset = bc.summarize(dirty.x, size=12, beta=0.05, candidates=2, init=good)
    assert len(coreset) > 2
    assert len(np.setdiff1d(coreset.indices, good)) <= 2


def test_more_rows_to_begin_with_than_asked_for_are_cut(dirty):
    good = np.flatnonzero(~dirty.outlier)[:50]
    assert len(bc.summarize(dirty.x, size=5, beta=0.05, init=good)) <= 5


def test_no_row_to_begin_with_is_from_scratch(dirty, scratch):
    np.testing.assert_array_equal(bc.summarize(dirty.x, size=12, beta=0.05, init=[]).indices, scratch.indices)


@pytest.mark.parametrize(
    ("init", "error", "message"),
    [
        ([0, 1500], ValueError, "init: rows are numbered from 0 to 1499, got 1500"),
        ([-1], ValueError, "init: rows are numbered from 0 to 1499, got -1"),
        ([0.0, 1.0], TypeError, "init: expected the numbers of rows"),
        ([[0, 1]], TypeError, "init: expected the numbers of rows"),
        (np.ones(1500, bool), TypeError, "init: expected the numbers of rows"),
        ("first", TypeError, "init: expected the numbers of rows"),
    ],
    ids=["beyond", "negative", "floats", "table", "mask", "word"],
)
def test_rows_that_do_not_exist_are_refused_before_any_work(init, error, message, dirty, monkeypatch):
    monkeypatch.setattr("betacores.running.prepare", lambda *_, **__: pytest.fail("work has begun"))
    with pytest.raises(error, match=message):
        bc.summarize(dirty.x, init=init)


@pytest.mark.parametrize("readout", ["classical", "beta"])
def test_the_reader_is_among_the_settings(readout, dirty):
    coreset = bc.summarize(dirty.x, size=5, beta=0.05, readout=readout)
    assert coreset.info.settings["readout"] == coreset.readout == readout
    assert coreset.posterior(5).beta == (0.05 if readout == "beta" else 0.0)
