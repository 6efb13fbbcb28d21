"""A guard of one's own: how much each row's covariates are trusted."""

import numpy as np
import pytest
from closed_forms import NOISE, exact_kl, linear_table

import betacores as bc
from betacores.models import LinearRegression


@pytest.fixture(scope="module")
def leverage():
    """Rows far out in x, with a response on another line."""
    x, y = linear_table(3, 1500, 3)
    far = np.arange(len(x)) % 10 == 0
    x[far, 0] += 30.0
    return x, y, far


def near(x):
    return (np.abs(x).max(1) < 15).astype(float)


def test_rows_of_no_trust_are_not_chosen_and_do_not_count(leverage):
    x, y, far = leverage
    settings = {"model": LinearRegression(NOISE), "beta": 0.0, "size": 25}
    coreset = bc.summarize(x, y, guard=near, **settings)
    assert not far[coreset.path.indices].any()
    # The posterior is that of the near rows in closed form, as if the others were not there.
    assert exact_kl(coreset, x, y, ~far) < 0.1
    np.testing.assert_array_equal(coreset.covariate_scores, near(x))
    assert coreset.info.guard["rows_touched"] == far.sum()
    assert coreset.info.guard["mean_trust"] == pytest.approx(1 - far.mean())
    assert coreset.info.settings["guard"] is near


def test_without_the_guard_the_far_rows_do_count(leverage):
    x, y, far = leverage
    coreset = bc.summarize(x, y, model=LinearRegression(NOISE), beta=0.0, size=25, guard=None)
    assert exact_kl(coreset, x, y, ~far) > 10
    assert coreset.covariate_scores is None


def test_half_trust_in_every_row_is_a_posterior_of_half_the_rows():
    x, y = linear_table(4, 1500, 3)
    settings = {"model": LinearRegression(NOISE), "beta": 0.0, "size": 25}
    coreset = bc.summarize(x, y, guard=lambda x: np.full(len(x), 0.5), **settings)
    assert exact_kl(coreset, x, y, np.full(len(x), 0.5)) < 0.1


def test_the_guard_sees_the_table_as_given():
    seen = []
    x, y = linear_table(4, 1500, 3)
    settings = {"model": LinearRegression(NOISE), "beta": 0.0, "size": 5}
    bc.summarize(x, y, guard=lambda x: seen.append(x) or np.ones(len(x), bool), **settings)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], x)


def test_models_of_whole_rows_are_served_as_well():
    table = bc.datasets.contaminated_gaussian(0, 0.2, rows=1500, columns=6)
    coreset = bc.summarize(table.x, size=12, beta=0.0, guard=lambda _: ~table.outlier)
    assert not table.outlier[coreset.path.indices].any()
    clean = table.x[~table.outlier]
    np.testing.assert_allclose(coreset.posterior(4000).mean, clean.sum(0) / (1 + len(clean)), atol=0.02)
    assert coreset.weights.sum() == pytest.approx(len(clean), rel=0.05)


def test_rows_of_no_trust_are_not_chosen_without_a_screen_either():
    x, y = linear_table(5, 1500, 3)
    untrusted = np.arange(len(x)) % 2 == 0
    coreset = bc.summarize(x, y, model=LinearRegression(NOISE), beta=0.0, size=25, screen=0, guard=lambda _: ~untrusted)
    assert not untrusted[coreset.indices].any()


@pytest.mark.filterwarnings("ignore:No row passes the screen")
def test_rows_of_no_trust_are_not_chosen_when_no_row_has_much():
    x, y = linear_table(5, 1500, 3)
    some = np.arange(len(x)) % 2 == 0
    coreset = bc.summarize(x, y, model=LinearRegression(NOISE), beta=0.0, size=25, guard=lambda _: 0.3 * some)
    assert some[coreset.indices].all()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: np.ones(len(x) - 1), r"one number for each of the 1500 rows, got shape \(1499,\)"),
        (lambda x: np.ones((len(x), 1)), r"one number for each of the 1500 rows, got shape \(1500, 1\)"),
        (lambda x: 1.0, r"one number for each of the 1500 rows, got shape \(\)"),
        (lambda x: np.where(np.arange(len(x)) == 3, np.nan, 1.0), "between 0 .* and 1, got .*nan"),
        (lambda x: np.full(len(x), 1.5), "between 0 .* and 1, got .*1.5"),
        (lambda x: np.full(len(x), -0.5), "between 0 .* and 1, got .*-0.5"),
        (lambda x: np.zeros(len(x)), "trusts no row at all"),
    ],
    ids=["short", "column", "number", "nan", "above", "below", "none"],
)
def test_a_guard_that_returns_something_else_is_told_what_is_wrong(returned, message, leverage):
    x, y, _ = leverage
    with pytest.raises(ValueError, match=f"guard: .*{message}"):
        bc.summarize(x, y, model=LinearRegression(NOISE), guard=returned)


@pytest.mark.parametrize("method", ["beta-cores", "sparse-vi", "uniform"])
def test_published_methods_take_no_guard_of_ones_own(method, leverage):
    x, y, _ = leverage
    with pytest.raises(ValueError, match=f"guard: the method '{method}' takes rows as they are"):
        bc.summarize(x, y, method=method, guard=near)


def test_a_guard_must_be_known(leverage):
    x, y, _ = leverage
    with pytest.raises(ValueError, match=r"guard: 'automatic' is not known\. Did you mean 'auto'"):
        bc.summarize(x, y, guard="automatic")
