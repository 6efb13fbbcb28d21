"""With defaults, on tables of which three rows in ten are garbage."""

import numpy as np
import pytest
from lines_in_odd_units import make_lines
from sklearn.linear_model import LinearRegression, LogisticRegression

from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector

ROWS = 400


@pytest.fixture(scope="module")
def dirty():
    """Return a table, its response, and which rows are garbage."""
    random = np.random.default_rng(5)
    x, y = make_lines(ROWS, seed=2)
    bad = random.random(ROWS) < 0.3
    return x, np.where(bad, 3000 + 500 * random.normal(size=ROWS), y), bad


def error(model, x, y):
    return np.sqrt(np.mean((model.predict(x) - y) ** 2))


def test_regressor_is_as_good_as_a_fit_on_the_clean_rows(dirty, more_lines):
    x, y, bad = dirty
    fitted = CoresetRegressor().fit(x, y)
    clean = error(LinearRegression().fit(x[~bad], y[~bad]), *more_lines)
    assert error(fitted, *more_lines) < 1.05 * clean
    assert error(LinearRegression().fit(x, y), *more_lines) > 10 * clean
    assert not bad[fitted.sample_indices_].any()
    assert fitted.scores_.shape == (ROWS,)
    assert fitted.scores_[bad].mean() < 0.1 < 0.8 < fitted.scores_[~bad].mean()


def test_selected_rows_make_any_other_tool_robust(dirty, more_lines):
    x, y, bad = dirty
    selector = CoresetSelector(beta=0.3, size=30, guard=None)
    x_few, y_few = selector.fit_resample(x, y)
    fitted = LinearRegression().fit(x_few, y_few, sample_weight=selector.sample_weight_)
    clean = error(LinearRegression().fit(x[~bad], y[~bad]), *more_lines)
    assert error(fitted, *more_lines) < 1.1 * clean


def test_classifier_is_as_good_as_a_fit_on_the_clean_rows():
    def labelled(rows, seed):
        random = np.random.default_rng(seed)
        z = random.normal(size=(rows, 3))
        return z, z @ [2.0, -4.0, 1.0] + random.logistic(size=rows) > 0

    random = np.random.default_rng(0)
    (z, y), (test, wanted) = labelled(ROWS, 1), labelled(1000, 2)
    bad = random.random(ROWS) < 0.3
    clean = LogisticRegression().fit(z[~bad], y[~bad]).score(test, wanted)
    # Far out on one side, with the label of the other: what pulls a classifier most.
    z[bad], y[bad] = np.array([6.0, -12.0, 3.0]) + 2 * random.normal(size=(bad.sum(), 3)), False
    unit, zero = [1e3, 1e-2, 1.0], [2e4, 0.3, -3.0]
    fitted = CoresetClassifier().fit(z * unit + zero, y)
    assert fitted.score(test * unit + zero, wanted) > clean - 0.02
    assert LogisticRegression().fit(z, y).score(test, wanted) < 0.6
    assert not bad[fitted.sample_indices_].any()
