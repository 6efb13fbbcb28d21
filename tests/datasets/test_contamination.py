"""Contamination: the truth mask is the truth, the input stays clean, and every scheme does what it says."""

import numpy as np
import pandas as pd
import pytest

from betacores.datasets.contamination import SCHEMES, contaminate
from betacores.robust import robust_location_scale

ROWS, COLUMNS = 400, 6
rng = np.random.default_rng(7)
X = rng.normal(size=(ROWS, COLUMNS)) * [1, 2, 5, 10, 0.1, 1] + 3
THETA = np.array([2.0, -1, 0.5, 0.3, 5, 0])
LABELS = np.where((X - 3) @ THETA + rng.logistic(size=ROWS) > 0, "good", "bad")
REAL = X @ THETA + rng.normal(size=ROWS)
GROUPS = np.repeat(list("abcde"), [20, 40, 80, 120, 140])
FLIPPING = ["paper", "flips", "structured-flips"]
FREE = ["leverage", "heavy-tails", "duplicates", "group"]
CASES = (
    [(scheme, LABELS) for scheme in FLIPPING + FREE]
    + [(scheme, REAL) for scheme in [*FREE, "response-shift"]]
    + [(scheme, None) for scheme in FREE]
)
cases = pytest.mark.parametrize(
    ("scheme", "y"), CASES, ids=[f"{s}-{'none' if y is None else y.dtype.kind}" for s, y in CASES]
)


def dirty(scheme, y, fraction=0.1, seed=0, x=X):
    return contaminate(x, y, scheme=scheme, fraction=fraction, seed=seed, groups=GROUPS if scheme == "group" else None)


def changed(result, x, y):
    rows = (result.x != x).any(1)
    return rows if y is None else rows | (result.y != y)


def test_every_scheme_is_tried():
    assert {scheme for scheme, _ in CASES} == set(SCHEMES)


@cases
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.33])
def test_the_mask_is_exactly_the_rows_that_changed(scheme, y, fraction):
    result = dirty(scheme, y, fraction)
    np.testing.assert_array_equal(result.outlier, changed(result, X, y))
    assert np.isfinite(result.x).all()
    assert fraction or not result.outlier.any()


@cases
def test_the_input_is_untouched_even_if_it_is_read_only(scheme, y):
    x, given = X.copy(), None if y is None else y.copy()
    for array in (x, given):
        if array is not None:
            array.flags.writeable = False
    result = dirty(scheme, given, x=x)
    np.testing.assert_array_equal(x, X)
    assert not np.shares_memory(result.x, x)
    if y is None:
        assert result.y is None
    else:
        np.testing.assert_array_equal(given, y)
        assert not np.shares_memory(result.y, given)
        assert result.y.dtype == y.dtype


@cases
def test_the_seed_decides(scheme, y):
    first, again, other = dirty(scheme, y), dirty(scheme, y), dirty(scheme, y, seed=1)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert any(not np.array_equal(one, two) for one, two in zip(first, other, strict=True))


@pytest.mark.parametrize("fraction", [0.0, 0.05, 0.101, 0.5, 0.99])
@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES if scheme not in ("paper", "group")])
def test_fractions_are_exact(scheme, fraction):
    result = dirty(scheme, REAL if scheme == "response-shift" else LABELS, fraction)
    assert result.outlier.sum() == round(fraction * ROWS)


@pytest.mark.parametrize("labels", [("bad", "good"), (-1, 1), (0.0, 1.0), (False, True), (7, 3)])
@pytest.mark.parametrize("scheme", FLIPPING)
def test_any_two_labels_are_kept(scheme, labels):
    y = np.where(LABELS == "bad", *labels)
    result = dirty(scheme, y)
    assert result.y.dtype == y.dtype
    assert set(result.y.tolist()) == set(labels)
    np.testing.assert_array_equal(result.y != y, dirty(scheme, np.where(LABELS == "bad", 0, 1)).y != (LABELS == "good"))


def test_paper_hits_the_same_half_of_the_columns_and_as_many_labels():
    result = dirty("paper", LABELS, 0.2)
    cells = result.x != X
    assert sorted(cells.sum(0)) == [0, 0, 0, 80, 80, 80]
    assert set(cells.sum(1)) == {0, 3}
    assert (result.y != LABELS).sum() == 80
    assert 80 < result.outlier.sum() < 160, "noise and flips are drawn independently"
    noise = contaminate(rng.normal(size=(20_000, 4)), np.arange(20_000) % 2, scheme="paper", fraction=0.5, seed=0)
    spread = np.sort(noise.x.std(0))
    np.testing.assert_allclose(spread[2:], np.sqrt((1 + 25) / 2), rtol=0.03)


def test_flips_leave_the_covariates():
    for scheme in "flips", "structured-flips":
        np.testing.assert_array_equal(dirty(scheme, LABELS).x, X)


def test_structured_flips_lie_in_one_half_space():
    result = dirty("structured-flips", LABELS, 0.2)
    standard = (X - np.median(X, 0)) / X.std(0)
    direction = standard[result.outlier].mean(0) - standard[~result.outlier].mean(0)
    assert (standard[result.outlier] @ direction).mean() > 3 * np.abs((standard[~result.outlier] @ direction).mean())
    # One straight cut separates them: a linear rule finds (nearly) all.
    design = np.column_stack([standard, np.ones(ROWS)])
    fitted = design @ np.linalg.lstsq(design, result.outlier.astype(float), rcond=None)[0]
    cut = np.sort(fitted)[-result.outlier.sum()]
    assert ((fitted >= cut) == result.outlier).mean() > 0.97


@pytest.mark.parametrize("seed", range(8))
def test_leverage_is_a_tight_far_cluster_with_the_wrong_response(seed):
    centre, scale = robust_location_scale(X)
    for y in LABELS, REAL:
        result = dirty("leverage", y, seed=seed)
        away = (result.x[result.outlier] - centre) / scale
        assert (np.abs(away) > 9).all()
        assert (away.std(0) < 0.2).all()
        score = ((result.x[result.outlier] - 3) @ THETA).mean()
        if y is LABELS:
            assert set(result.y[result.outlier]) == {"bad" if score > 0 else "good"}
        else:
            assert ((result.y[result.outlier] < np.median(REAL)) == (score > 0)).all()


def test_heavy_tails_leave_the_response_and_are_heavy():
    result = dirty("heavy-tails", REAL, 0.5)
    np.testing.assert_array_equal(result.y, REAL)
    noise = ((result.x - X) / robust_location_scale(X)[1])[result.outlier]
    # The quartiles of a Cauchy law are -1 and 1.
    np.testing.assert_allclose(np.quantile(noise, [0.25, 0.5, 0.75]), [-1, 0, 1], atol=0.15)


@pytest.mark.parametrize("y", [LABELS, REAL, None], ids=["labels", "real", "none"])
def test_duplicates_are_few_different_rows(y):
    result = dirty("duplicates", y)
    whole = pd.DataFrame(result.x[result.outlier]).assign(y=0 if y is None else result.y[result.outlier])
    assert len(whole.drop_duplicates()) == 3


def test_group_poisons_the_whole_group_of_nearest_size():
    for fraction, name in [(0.05, "a"), (0.1, "b"), (0.21, "c"), (0.9, "e")]:
        np.testing.assert_array_equal(dirty("group", LABELS, fraction).outlier, GROUPS == name)
    result = dirty("group", LABELS)
    np.testing.assert_array_equal(result.y != LABELS, GROUPS == "b")


def test_response_shift_is_ten_robust_scales():
    result = dirty("response-shift", REAL)
    scale = 1.4826 * np.median(np.abs(REAL - np.median(REAL)))
    np.testing.assert_allclose((result.y - REAL)[result.outlier], 10 * scale)
    np.testing.assert_array_equal(result.x, X)
    counts = dirty("response-shift", np.arange(ROWS))
    assert counts.y.dtype == float


def test_robust_scale_of_columns_mostly_equal():
    x = np.column_stack([np.zeros(10), np.r_[np.zeros(9), 10.0], np.arange(10.0)])
    centre, scale = robust_location_scale(x)
    np.testing.assert_allclose(centre, [0, 0, 4.5])
    np.testing.assert_allclose(scale, [1, 1.2533, 1.4826 * 2.5])


def test_single_precision_frames_and_one_column_are_taken():
    assert dirty("heavy-tails", None, x=X.astype(np.float32)).x.dtype == np.float32
    frame = contaminate(pd.DataFrame(X), pd.Series(LABELS), scheme="paper", fraction=0.1, seed=0)
    np.testing.assert_array_equal(frame.x, dirty("paper", LABELS).x)
    one = contaminate(X[:, :1], LABELS, scheme="paper", fraction=0.1, seed=0)
    assert (one.x != X[:, :1]).sum() == 40


def refused(error, match, **settings):
    settings = {"x": X, "scheme": "flips", "fraction": 0.1, "seed": 0} | settings
    with pytest.raises(error, match=match):
        contaminate(settings.pop("x"), settings.pop("y", None), **settings)


@pytest.mark.parametrize("scheme", FLIPPING)
def test_labels_are_asked_for(scheme):
    refused(ValueError, f"'{scheme}' flips labels and needs two of them, got no response", scheme=scheme)
    refused(ValueError, "got 400 values; choose 'response-shift'", scheme=scheme, y=REAL)


def test_bad_requests_say_what_to_do():
    refused(ValueError, "Did you mean 'leverage'", scheme="leverages")
    refused(ValueError, "needs a real response, got no response", scheme="response-shift")
    refused(ValueError, "got two labels; choose 'flips'", scheme="response-shift", y=LABELS)
    refused(ValueError, "needs each row's group", scheme="group")
    refused(ValueError, "no use for groups", y=LABELS, groups=GROUPS)
    refused(ValueError, r"group of each of the 400 rows of x, got shape \(3,\)", scheme="group", groups=[1, 2, 3])
    refused(ValueError, "two labels or real numbers, got 3 values", y=np.resize(["a", "b", "c"], ROWS))
    refused(ValueError, "one value for each", y=LABELS[:-1])
    for fraction in (-0.1, 1, 1.5, float("nan")):
        refused(ValueError, "fraction: expected", y=LABELS, fraction=fraction)
    refused(ValueError, "seed", y=LABELS, seed=-1)
