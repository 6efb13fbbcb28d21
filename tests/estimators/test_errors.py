"""What is wrong is said before any work, with what was received and what to do."""

import subprocess
import sys

import numpy as np
import pytest

from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector
from betacores.models import LinearRegression, LogisticRegression

X = np.random.default_rng(0).normal(size=(30, 3))
Y = X.sum(1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "persuit"}, "Did you mean 'pursuit'"),
        ({"size": 0}, "size: expected a whole number at least 1, got 0"),
        ({"beta": -1.0}, "beta: expected a finite number at least 0"),
        ({"scale": "standard"}, "scale: 'standard' is not known"),
        ({"model": "logistic"}, "model: 'logistic' is not known.*'neural-linear'"),
        ({"model": LogisticRegression()}, "needs a LinearRegression"),
        ({"max_groups": 3}, "there are no groups"),
        ({"method_settings": {"size": 3}}, "'size' is a parameter of the estimator"),
    ],
)
def test_parameters_that_make_no_sense(parameters, message):
    with pytest.raises(ValueError, match=message):
        CoresetRegressor(**parameters).fit(X, Y)


def test_settings_that_do_not_exist():
    with pytest.raises(TypeError, match="Did you mean 'draws'"):
        CoresetRegressor(method_settings={"drews": 3}).fit(X, Y)


def test_classes_must_be_two_or_more():
    with pytest.raises(ValueError, match=r"'logistic' is of two classes, y has 3; choose 'softmax'"):
        CoresetClassifier(model="logistic").fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="all rows are of one class, 'a'"):
        CoresetClassifier().fit(X, ["a"] * 30)
    with pytest.raises(ValueError, match="continuous"):
        CoresetClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="needs a LogisticRegression"):
        CoresetClassifier(model=LinearRegression()).fit(X, Y > 0)


def test_nothing_varies():
    with pytest.raises(ValueError, match="every column is constant"):
        CoresetRegressor().fit(np.ones((30, 2)), Y)


def test_selector_selects_rows_only_and_of_the_table_it_knows(light):
    with pytest.raises(ValueError, match="'psvi' moves points"):
        CoresetSelector(method="psvi").fit(X, Y)
    with pytest.raises(ValueError, match="expected the 30 rows that were fitted, got 5"):
        CoresetSelector(**light).fit(X, Y).select(X[:5])


def test_groups_that_cannot_be():
    with pytest.raises(ValueError, match="data has no names"):
        CoresetRegressor().fit(X, Y, groups="vendor")
    with pytest.raises(ValueError, match="the budget is max_groups"):
        CoresetRegressor(size=5).fit(X, Y, groups=np.arange(30) % 3)


def test_small_tables_and_ties_have_answers(light):
    few = CoresetRegressor(**{**light, "size": 1000}).fit(X[:8], Y[:8])
    assert len(few.sample_indices_) <= 8
    assert np.isfinite(few.predict(X)).all()
    same = CoresetRegressor(**light).fit(np.repeat(X[:6], 10, axis=0), np.repeat(Y[:6], 10))
    assert same.score(X, Y) > 0.999
    flat = CoresetRegressor(**light).fit(X, np.ones(30))
    np.testing.assert_allclose(flat.predict(X), 1.0, atol=1e-3)


# The noise is bounded from below, and the warning is right that it is too large.
@pytest.mark.filterwarnings("ignore:Rows fit better than the model allows")
@pytest.mark.parametrize("noise", [0.0, 1e-5, 1e-4])
def test_rows_exactly_on_a_plane_are_learned(noise, lines, light):
    x, _ = lines
    y = x @ [0.1, -2e4, 50.0] + 100 * noise * np.random.default_rng(0).normal(size=len(x))
    assert CoresetRegressor(**light).fit(x, y).score(x, y) > 0.9999
    x_few, _ = CoresetSelector(**light).fit_resample(x, y)
    assert len(x_few) >= 4


@pytest.mark.filterwarnings("ignore:Rows fit better than the model allows")
def test_columns_the_response_was_computed_from_are_named(lines, light):
    x, _ = lines
    fitted = CoresetSelector(**light).fit(x, 3 * x[:, 1])
    assert any("say the response exactly, most of all 'x1'; leave out" in said for said in fitted.coreset_.info.notes)


def test_the_package_does_not_import_scikit_learn_for_nothing():
    code = "import sys, betacores; print('sklearn' in sys.modules); betacores.CoresetRegressor"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout == "False\n"


def test_a_line_through_words_is_an_explained_error():
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"linear model needs numbers, got .*'(a|b)'.*model='logistic'"):
        CoresetSelector(model="linear").fit(x, np.array(["a", "b"] * 10))
