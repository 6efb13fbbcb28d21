"""Where people use estimators: pipelines, searches, frames."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import betacores as bc
from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector

KINDS = {
    "pandas": lambda x: pd.DataFrame(x, columns=["a", "b", "c"]),
    "polars": lambda x: pl.DataFrame(x, schema=["a", "b", "c"]),
}


def test_parameters_are_stored_unchanged_and_cloned():
    settings = {"draws": 100}
    parameters = {
        "model": "linear",
        "size": 7,
        "beta": 0.2,
        "method": "uniform",
        "guard": None,
        "max_groups": 3,
        "scale": None,
        "missing": "error",
        "random_state": 5,
        "method_settings": settings,
    }
    for kind in (CoresetClassifier, CoresetRegressor, CoresetSelector):
        estimator = kind(**parameters)
        assert estimator.get_params() == parameters
        assert estimator.method_settings is settings
        assert clone(estimator).get_params() == parameters
        with pytest.raises(TypeError):
            kind("linear")


def test_grid_search_finds_that_more_rows_than_parameters_are_needed(lines, light):
    search = GridSearchCV(CoresetRegressor(**light), {"size": [1, 20]}, cv=2).fit(*lines)
    assert search.best_params_ == {"size": 20}
    assert search.best_score_ > 0.95


def test_pipelines_take_them_as_last_step_and_hand_weights_on(lines, light):
    x, y = lines
    model = make_pipeline(StandardScaler(), PolynomialFeatures(1, include_bias=False), CoresetRegressor(**light))
    assert cross_val_score(model, x, y, cv=2).min() > 0.9
    weights = np.arange(len(x)) % 2
    model.fit(x, y, coresetregressor__sample_weight=weights)
    assert (model[-1].sample_indices_ % 2 == 1).all()


def test_one_against_the_rest_makes_many_classes_of_two(light):
    random = np.random.default_rng(0)
    centres = np.array([[0, 0, 6], [6, 0, 0], [0, 6, 0]])
    y = np.repeat([0, 1, 2], 60)
    x = centres[y] + random.normal(size=(180, 3))
    assert OneVsRestClassifier(CoresetClassifier(**light)).fit(x, y).score(x, y) > 0.95


@pytest.mark.parametrize("kind", KINDS)
def test_frames_give_their_names_and_are_checked_by_them(kind, lines, light):
    x, y = lines
    frame = KINDS[kind](x)
    fitted = CoresetRegressor(**light).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.coreset_.columns == ["a", "b", "c"]
    plain = CoresetRegressor(**light).fit(x, y).predict(x)
    np.testing.assert_allclose(fitted.predict(frame), plain, rtol=1e-9)
    with pytest.raises(ValueError, match="order"):
        fitted.predict(frame[["b", "a", "c"]])


@pytest.mark.parametrize("kind", KINDS)
def test_selected_frames_are_frames_with_their_names(kind, lines, light):
    x, y = lines
    frame, series = KINDS[kind](x), {"pandas": pd.Series, "polars": pl.Series}[kind](y)
    selector = CoresetSelector(**light)
    x_few, y_few = selector.fit_resample(frame, series)
    assert type(x_few) is type(frame)
    assert type(y_few) is type(series)
    assert list(x_few.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(x_few.to_numpy(), x[selector.sample_indices_])
    np.testing.assert_array_equal(y_few.to_numpy(), y[selector.sample_indices_])
    if kind == "pandas":
        assert x_few.index.tolist() == selector.sample_indices_.tolist()
    assert LinearRegression().fit(x_few, y_few, sample_weight=selector.sample_weight_).score(frame, y) > 0.9


def test_selector_takes_words_and_no_response_at_all_and_selects_again(lines, light):
    x, y = lines
    words = np.where(y > 500, "high", "low").tolist()
    selector = CoresetSelector(**light)
    x_few, words_few = selector.fit_resample(x.tolist(), words)
    assert words_few.tolist() == [words[row] for row in selector.sample_indices_]
    assert selector.coreset_.model.name == "logistic"
    again, other = selector.select(x, y)
    np.testing.assert_array_equal(again, x_few)
    np.testing.assert_array_equal(other, y[selector.sample_indices_])
    np.testing.assert_array_equal(selector.select(y), other)
    assert CoresetSelector(**light).fit_resample(x).shape[1] == 3
    assert not hasattr(selector, "transform")


def test_labels_of_any_kind_come_back(lines, light):
    x, y = lines
    for low, high in (("no", "yes"), (0, 1), (False, True), (2.0, 7.0)):
        labels = np.array([low, high])[(y > 500).astype(int)]
        fitted = CoresetClassifier(**light).fit(x, labels)
        assert fitted.classes_.tolist() == [low, high]
        assert set(fitted.predict(x).tolist()) == {low, high}
        np.testing.assert_array_equal(fitted.coreset_.y, labels[fitted.sample_indices_])


def test_seeds_decide(lines, light):
    x, y = lines
    few = {**light, "method": "uniform", "beta": "auto", "method_settings": None}

    def chosen(state):
        return CoresetSelector(**few, random_state=state).fit(x, y).sample_indices_.tolist()

    assert chosen(3) == chosen(3) != chosen(4)
    state = np.random.RandomState(0)
    assert chosen(state) != chosen(state)


def test_they_survive_pickling_and_the_coreset_is_saved(lines, light, tmp_path):
    x, y = lines
    fitted = CoresetRegressor(**{**light, "guard": one_column}).fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(x), fitted.predict(x))
    fitted.coreset_.save(tmp_path / "summary")
    loaded = bc.load(tmp_path / "summary")
    np.testing.assert_array_equal(loaded.posterior().mean, fitted.coreset_.posterior().mean)
    assert (x[fitted.sample_indices_, 0] < 21e3).all()


def one_column(table):
    """Trust no row beyond a number of the first column, in the units of the table."""
    return table[:, 0] < 21e3
