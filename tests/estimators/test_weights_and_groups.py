"""Rows that stand for many, rows that count nothing, and whole groups of rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import betacores as bc
from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector
from betacores.models import LinearRegression
from betacores.neural import Training
from betacores.posteriors import gaussian_kl


def with_ones(x):
    return np.column_stack([x, np.ones(len(x))])


def exact(x, y, weights, noise):
    """Return mean and covariance of the posterior of weighted rows of a line."""
    z = with_ones(x)
    precision = np.eye(z.shape[1]) + (z * weights[:, None]).T @ z / noise**2
    return np.linalg.solve(precision, z.T @ (weights * y) / noise**2), np.linalg.inv(precision)


@pytest.fixture
def plain():
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3))
    return x, x @ [1.0, -2.0, 0.5] + 0.7 * random.normal(size=200), random.integers(0, 4, 200)


def test_whole_weights_are_repeated_rows_to_the_coreset(plain):
    x, y, weights = plain
    arguments = {"model": LinearRegression(noise=0.7), "beta": 0.0, "guard": None, "size": 40}
    coreset = bc.summarize(x, y, sample_weight=weights, **arguments)
    repeated = np.repeat(np.arange(200), weights)
    wanted = exact(x[repeated], y[repeated], np.ones(len(repeated)), 0.7)
    found = exact(x[coreset.indices], y[coreset.indices], coreset.weights, 0.7)
    assert gaussian_kl(*found, *wanted) < 0.01
    # Without the weights it is another posterior.
    without = bc.summarize(x, y, **arguments)
    assert gaussian_kl(*exact(x[without.indices], y[without.indices], without.weights, 0.7), *wanted) > 0.1
    assert coreset.info.settings["sample_weight"] == weights.sum()
    assert len(coreset.scores) == 200


def test_weights_and_trust_multiply(plain):
    x, y, weights = plain
    trust = (x[:, 0] < 0.5).astype(float)
    arguments = {"model": LinearRegression(noise=0.7), "beta": 0.0, "size": 40}
    coreset = bc.summarize(x, y, sample_weight=weights, guard=lambda table: trust, **arguments)
    found = exact(x[coreset.indices], y[coreset.indices], coreset.weights, 0.7)
    assert gaussian_kl(*found, *exact(x, y, weights * trust, 0.7)) < 0.01
    np.testing.assert_array_equal(coreset.covariate_scores, trust)


@pytest.mark.parametrize("screen", [0.0, 0.05])
def test_rows_of_weight_zero_are_never_chosen_whatever_they_hold(plain, screen):
    x, y, weights = plain
    garbage = np.where(weights == 0, 1000.0, y)
    for beta in (0.0, 0.3):
        coreset = bc.summarize(x, garbage, sample_weight=weights, beta=beta, guard=None, size=30, screen=screen)
        assert (weights[coreset.indices] > 0).all()
        assert np.abs(coreset.posterior().mean - [1.0, -2.0, 0.5, 0.0]).max() < 0.3


def test_weights_of_one_change_nothing(plain):
    x, y, _ = plain
    coreset, same = (bc.summarize(x, y, sample_weight=w, size=10, guard=None) for w in (None, np.ones(200)))
    np.testing.assert_array_equal(coreset.indices, same.indices)
    np.testing.assert_array_equal(coreset.weights, same.weights)
    # Methods without weights have nothing to object to them.
    CoresetSelector(method="uniform", size=10).fit(x, y, sample_weight=np.ones(200))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "one number for each of the 200 rows"),
        (np.ones((200, 1)), "one number for each of the 200 rows"),
        (np.full(200, -1.0), "0 or more; row 0 has -1"),
        (np.r_[np.ones(199), np.nan], "row 199 has nan"),
        (np.zeros(200), "every weight is zero"),
    ],
)
def test_weights_that_make_no_sense_are_explained(plain, weights, message):
    x, y, _ = plain
    with pytest.raises(ValueError, match=f"sample_weight: .*{message}"):
        bc.summarize(x, y, sample_weight=weights)
    with pytest.raises(ValueError, match=f"sample_weight: .*{message}"):
        CoresetRegressor().fit(x, y, sample_weight=weights)


def test_weights_are_for_pursuit_and_for_two_classes(plain):
    x, y, weights = plain
    with pytest.raises(TypeError, match="sample_weight: expected numbers, got 'a'"):
        bc.summarize(x, y, sample_weight=["a"] * 200)
    with pytest.raises(TypeError, match="not supported by the method 'sparse-vi'"):
        bc.summarize(x, y, sample_weight=weights, method="sparse-vi")
    with pytest.raises(ValueError, match="all of one class"):
        CoresetClassifier().fit(x, y > 0, sample_weight=y > 0)


def test_units_are_those_of_the_rows_that_count(plain, light):
    x, y, _ = plain
    many = np.vstack([x, x + 1e6, x - 1e6])
    counted = np.arange(600) < 200
    fitted = CoresetRegressor(**light).fit(many, np.tile(y, 3), sample_weight=counted)
    assert (fitted.sample_indices_ < 200).all()
    assert fitted.score(x, y) > 0.85


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_column_names_groups_and_is_no_covariate(kind, lines, light):
    x, y = lines
    vendor = np.array(["north", "south", "east", "west"])[np.arange(len(x)) % 4]
    y = np.where(vendor == "west", 5000.0, y)
    columns = {"a": x[:, 0], "vendor": vendor, "b": x[:, 1], "c": x[:, 2]}
    frame, rest = kind(columns), kind({name: columns[name] for name in "abc"})
    fitted = CoresetRegressor(**{**light, "size": "auto"}, max_groups=2).fit(frame, y, groups="vendor")
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert set(vendor[fitted.sample_indices_]) == set(fitted.coreset_.groups)
    assert len(fitted.coreset_.groups) == 2
    assert "west" not in fitted.coreset_.groups
    assert len(fitted.coreset_.group_table()) == 4
    np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(rest))
    # A fit without groups forgets them.
    fitted.set_params(max_groups="auto").fit(rest, y)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- vendor"):
        fitted.predict(frame)


def test_labels_of_rows_name_groups_and_more_than_there_are_is_all(lines, light):
    x, y = lines
    labels = [("cell", k % 5) for k in range(len(x))]
    for estimator in (CoresetRegressor, CoresetSelector):
        fitted = estimator(**{**light, "size": "auto"}, max_groups=100).fit(x, y, groups=labels)
        assert set(fitted.coreset_.groups) <= set(labels)


def test_labels_may_be_called_like_columns(lines, light):
    x, y = lines
    frame = pd.DataFrame(x, columns=list("abc")).assign(sensor=np.where(np.arange(len(x)) % 3, "a", "other"))
    for labels in ("sensor", np.where(np.arange(len(x)) % 3, "a", "b")):
        fitted = CoresetRegressor(**{**light, "size": "auto"}, max_groups=1).fit(
            frame[[*"abc", "sensor"]] if isinstance(labels, str) else frame[[*"abc"]], y, groups=labels
        )
        assert fitted.coreset_.groups in (["a"], ["b"], ["other"])
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_groups_that_were_kept_are_told_for_every_model(lines, light):
    x, y = lines
    labels = np.array(list("abcdefgh"))[np.arange(len(x)) % 8]
    plan = {"training": Training(steps=20), "hidden": 4, "networks": 1}
    neural = CoresetRegressor(model="neural-linear", max_groups=3, method_settings=plan).fit(x, y, groups=labels)
    assert len(neural.groups_) == len(set(neural.groups_)) == 3
    assert set(neural.groups_) <= set(labels)
    assert neural.fit(x, y).groups_ is None
    for settings, message in (({"seed": 1}, "'seed' is a parameter"), ({"batches": 2}, "'batches' is a parameter")):
        with pytest.raises(ValueError, match=f"method_settings: {message}"):
            CoresetRegressor(model="neural-linear", method_settings=settings).fit(x, y)
    with pytest.raises(ValueError, match="max_groups: expected a whole number at least 1"):
        CoresetRegressor(model="neural-linear", max_groups=0).fit(x, y, groups=labels)
    for estimator in (CoresetRegressor, CoresetSelector):
        fitted = estimator(**{**light, "size": "auto"}, max_groups=2).fit(x, y, groups=labels)
        assert fitted.groups_ == fitted.coreset_.groups
    assert CoresetSelector(**light).fit(x, y).groups_ is None
