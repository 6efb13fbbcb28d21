"""What `summarize` settles by itself, how it says so, and what of it survives on disk."""

import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

import betacores as bc
from betacores.inputs import read_problem
from betacores.models import LinearRegression, Rows
from betacores.posteriors import laplace
from betacores.posteriors.conjugate import conjugate

KINDS = {"none": "gaussian-mean", "binary": "logistic", "real": "linear"}


@pytest.fixture(scope="module")
def tables():
    return {
        "none": bc.datasets.contaminated_gaussian(0, 0.1, rows=1500, columns=4),
        "binary": bc.datasets.contaminated_logistic(0, 0.04, rows=1500, columns=3),
        "real": bc.datasets.shifted_linear(0, 0.1, rows=1500, columns=3),
    }


@pytest.fixture(scope="module")
def coresets(tables):
    return {kind: bc.summarize(table.x, table.y) for kind, table in tables.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_with_nothing_but_the_table_every_choice_is_said(kind, coresets):
    coreset = coresets[kind]
    shown, notes = repr(coreset), coreset.info.notes
    for opening in ("model: '" + KINDS[kind], f"beta: {coreset.beta:.3g}", f"size: {len(coreset)} rows"):
        assert sum(note.startswith(opening) for note in notes) == 1, opening
        assert opening in shown
    assert sum(note.startswith("guard: ") for note in notes) == 1
    assert ("guard: none" in shown) == (kind == "none")
    assert ("noise: " in shown) == (kind == "real")
    assert f"{len(coreset):,} of 1,500 rows" in shown
    assert f"KL divergence to the β-posterior of all rows about {coreset.info.kl_estimate}" in shown
    assert coreset.method == "pursuit"


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_chosen_is_in_the_settings_and_in_the_criterion(kind, coresets):
    coreset = coresets[kind]
    settings, tuning = coreset.info.settings, coreset.info.tuning
    assert settings["model"] == KINDS[kind]
    assert settings["beta"] == coreset.beta
    assert settings["score_beta"] > 0
    assert settings["size"] == settings["guard"] == "auto"
    assert coreset.beta in tuning["beta"]
    assert {len(column) for column in tuning.values()} == {len(tuning["beta"])}
    assert coreset.info.pilot["converged"]
    assert coreset.info.kl_estimate.value < 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_no_dirty_row_is_kept_and_their_share_is_told(kind, tables, coresets):
    table, coreset = tables[kind], coresets[kind]
    assert table.outlier[coreset.indices].sum() <= 0.02 * len(coreset)
    low, high = coreset.contamination_interval
    assert low <= coreset.contamination <= high
    assert coreset.contamination == pytest.approx(table.outlier.mean(), abs=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it_survives_on_disk(kind, coresets, tmp_path):
    coreset = coresets[kind]
    again = bc.load(coreset.save(tmp_path / "kept"))
    assert again.info.kl_estimate == coreset.info.kl_estimate
    assert type(again.info.kl_estimate) is type(coreset.info.kl_estimate)
    assert again.info.tuning == coreset.info.tuning
    assert again.info.guard == coreset.info.guard
    assert again.info.pilot == coreset.info.pilot
    assert again.info.notes == coreset.info.notes
    assert again.contamination_interval == coreset.contamination_interval
    assert repr(again) == repr(coreset)
    if coreset.covariate_scores is None:
        assert again.covariate_scores is None
    else:
        np.testing.assert_array_equal(again.covariate_scores, coreset.covariate_scores)
        assert again.covariate_scores.dtype == coreset.covariate_scores.dtype
    np.testing.assert_array_equal(again.posterior(20).mean, coreset.posterior(20).mean)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_that_of_the_clean_rows_though_many_are_shifted(seed):
    table = bc.datasets.shifted_linear(seed, 0.3, rows=1500, columns=3)
    coreset = bc.summarize(table.x, table.y, size=10)
    assert coreset.model.noise == pytest.approx(0.5, rel=0.1)
    assert f"noise: {coreset.model.noise:.3g}, estimated" in repr(coreset)


def test_noise_that_is_given_is_kept():
    table = bc.datasets.shifted_linear(0, 0.3, rows=1500, columns=3)
    coreset = bc.summarize(table.x, table.y, model=LinearRegression(0.8), size=10)
    assert coreset.model.noise == 0.8
    assert "noise: " not in repr(coreset)


@pytest.mark.parametrize("posterior", [laplace, conjugate], ids=["laplace", "conjugate"])
def test_a_posterior_with_noise_left_open_is_refused(posterior):
    rows = Rows(jnp.ones((4, 2)), jnp.ones(4))
    with pytest.raises(ValueError, match=r"noise: it is 'auto', which only summarize\(\) can settle"):
        posterior(LinearRegression(), rows, jnp.ones(4))


@pytest.mark.parametrize(("dtype", "copies"), [(np.float32, 1.25), (np.float64, 0.75)])
def test_reading_a_table_makes_one_copy_in_single_precision_at_most(dtype, copies):
    x = np.random.default_rng(0).normal(size=(200_000, 5)).astype(dtype)
    tracemalloc.start()
    problem = read_problem(x, None, "auto")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert problem.x is x or np.shares_memory(problem.x, x)
    assert problem.source.x.dtype == np.float32
    # One vector of weights besides.
    assert peak < copies * x.nbytes + 4 * len(x)
