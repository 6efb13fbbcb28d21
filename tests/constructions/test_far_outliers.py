"""Rows so far off that their likelihood is the same under every draw must never be chosen, and never do harm."""

import numpy as np
import pytest

import betacores as bc

ROWS, COLUMNS, SIZE = 300, 3, 6
QUICK = {"size": SIZE, "draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
PUBLISHED = {"method": "beta-cores", **QUICK}
FAR = [1e6, 1e12, 1e30, -1e30]


def assert_sound(coreset, far):
    assert np.isfinite(coreset.weights).all()
    assert np.isfinite(coreset.path.weights).all()
    assert np.isfinite(coreset.scores).all()
    assert 0 <= coreset.contamination <= 1
    if abs(far) == max(FAR):  # compiled for every number of rows: the worst case is enough
        assert np.isfinite(coreset.posterior(50).draws).all()


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    x = rng.normal(1.0, 1.0, (ROWS, COLUMNS))
    y = x @ [1.0, -2.0, 0.5] + rng.normal(size=ROWS)
    return x, y, rng.permutation(ROWS)[:45]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("screen", [0.05, 0.0])
@pytest.mark.parametrize("target", ["beta", "classical"])
@pytest.mark.parametrize("beta", [0.05, 0.5])
def test_gaussian_coreset_holds_no_far_outlier(clean, far, screen, target, beta):
    x, _, outliers = clean
    x = x.copy()
    x[outliers] += far
    coreset = bc.summarize(x, beta=beta, screen=screen, sampler_target=target, **PUBLISHED)
    assert not np.isin(coreset.indices, outliers).any()
    assert len(coreset) >= 2
    assert np.all(coreset.scores[outliers] == 0)
    # The clean rows score 1 on average, so what is missing is the share of the others.
    assert coreset.contamination == pytest.approx(0.15, abs=0.06)
    assert_sound(coreset, far)


@pytest.mark.parametrize("far", FAR)
def test_far_outliers_do_not_move_the_posterior_mean(clean, far):
    x, _, outliers = clean
    kept = np.delete(x, outliers, axis=0)
    dirty = x.copy()
    dirty[outliers] = far
    posterior = bc.summarize(dirty, beta=0.1, **PUBLISHED).posterior(400)
    # Some forty of 255 rows' worth of weight: within the coreset's own uncertainty of the clean mean.
    assert np.all(np.abs(posterior.mean - kept.mean(axis=0)) < 0.6)


@pytest.mark.parametrize("far", [1e6, 1e30])
@pytest.mark.filterwarnings("ignore:No row was selected")
@pytest.mark.parametrize("method", ["pursuit", "beta-cores", "sparse-vi", "uniform"])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_absurd_cells_leave_everything_finite(clean, far, method, model):
    x, y, outliers = clean
    x, y = x.copy(), np.where(y > 0, "yes", "no") if model == "logistic" else y.copy()
    x[outliers[:10], 0] = far
    x[outliers[10:20]] = far
    x[outliers[20:25]] = -far
    if model == "linear":
        y[outliers[25:]] = far
    settings = {"size": SIZE} if method in ("pursuit", "uniform") else QUICK
    coreset = bc.summarize(x, y, model=model, method=method, **settings)
    assert_sound(coreset, far)
    # SparseVI trusts the absurd cells, and may end with no weight on any row; it says so.
    assert len(coreset) >= 1 or method == "sparse-vi"
    assert np.array_equal(coreset.X, x[coreset.indices])


@pytest.mark.parametrize("screen", [0.05, 0.0])
def test_linear_coreset_holds_no_response_far_off_the_line(clean, screen):
    x, y, outliers = clean
    y = y.copy()
    y[outliers] += 1e6
    coreset = bc.summarize(x, y, model="linear", screen=screen, **PUBLISHED)
    assert not np.isin(coreset.indices, outliers).any()
    assert np.all(coreset.scores[outliers] == 0)


def test_cells_beyond_single_precision_are_noted_and_kept_as_given(clean):
    x, _, _ = clean
    x = x.copy()
    x[7, 1] = 1e30
    coreset = bc.summarize(x, method="uniform", size=ROWS)
    assert any("1 cells beyond" in note for note in coreset.info.notes)
    assert coreset.X[coreset.indices.tolist().index(7), 1] == 1e30
