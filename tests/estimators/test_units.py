"""Any units will do, and what is shown is in those of the table."""

import numpy as np
import pandas as pd
import pytest

import betacores as bc
from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector
from betacores.estimators.scaling import as_given, robust_scaling
from betacores.models import GaussianMean, LinearRegression


def with_ones(x):
    return np.column_stack([x, np.ones(len(x))])


def test_predictions_follow_a_change_of_units(lines, light):
    x, y = lines
    by, to = np.array([1e-3, 1e4, -7.0]), np.array([5.0, -2.0, 1e3])
    mean, deviation = CoresetRegressor(**light).fit(x, y).predict(x, return_std=True)
    other = CoresetRegressor(**light).fit(x * by + to, y / 1000 - 8).predict(x * by + to, return_std=True)
    # Rounding may choose other rows; what they say is the same, up to what a coreset leaves out.
    np.testing.assert_allclose(mean, (other[0] + 8) * 1000, atol=0.1 * deviation.min())
    np.testing.assert_allclose(deviation, other[1] * 1000, rtol=0.01)


def test_classes_do_not_depend_on_units(lines, light):
    x, y = lines
    labels = y > 500
    plain = CoresetClassifier(**light).fit(x, labels).predict_proba(x)
    other = CoresetClassifier(**light).fit(x * 1e6, labels).predict_proba(x * 1e6)
    np.testing.assert_allclose(plain, other, atol=0.02)


@pytest.mark.parametrize("method", ["pursuit", "uniform"])
def test_coreset_holds_rows_as_given_and_its_posterior_is_theirs(lines, method):
    x, y = lines
    beta = 0.3 if method == "pursuit" else "auto"
    fitted = CoresetRegressor(method=method, size=20, beta=beta, guard=None).fit(x, y)
    coreset = fitted.coreset_
    np.testing.assert_array_equal(coreset.X, x[fitted.sample_indices_])
    np.testing.assert_array_equal(coreset.y, y[fitted.sample_indices_])
    posterior = coreset.posterior(4000)
    mean, deviation = fitted.predict(x, return_std=True)
    draws = with_ones(x) @ posterior.draws.astype(np.float64).T
    np.testing.assert_allclose(draws.mean(1), mean, atol=0.3 * coreset.model.noise)
    np.testing.assert_allclose(np.sqrt(draws.var(1) + coreset.model.noise**2), deviation, rtol=0.05)


def test_prior_in_the_units_of_the_table_is_the_default_one_in_others():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(100, 2)) * [3.0, 0.1] + [10.0, -1.0], 50 + 20 * random.normal(size=100)
    scaling = robust_scaling(x, y)
    model = scaling.model(LinearRegression(noise=0.5))
    # Lines there, told here: none at all, and one for each parameter.
    theta = np.vstack([np.zeros(3), np.eye(3)])
    slopes = scaling.unit * theta[:, :2] / scaling.scale
    told = np.column_stack([slopes, scaling.level + scaling.unit * theta[:, 2] - slopes @ scaling.centre])
    matrix = (told[1:] - told[0]).T
    np.testing.assert_allclose(np.linalg.inv(model.prior.precision), matrix @ matrix.T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(model.prior.mean[2], scaling.level)
    assert model.noise == pytest.approx(0.5 * scaling.unit)


def test_moved_points_come_back_in_the_units_of_the_table(lines):
    x, y = lines
    settings = {"steps": 5, "draws": 20}
    coreset = CoresetRegressor(method="psvi", size=5, method_settings=settings).fit(x, y).coreset_
    low, high = x.min(0) - 3 * np.ptp(x, axis=0), x.max(0) + 3 * np.ptp(x, axis=0)
    assert ((coreset.X > low) & (coreset.X < high)).all()
    assert (np.abs(coreset.y - 500) < 2000).all()


def test_columns_of_two_values_become_zero_and_one():
    x = np.array([[3.0, 1.0, 7.0], [3.0, 5.0, 7.0], [9.0, 2.0, 7.0], [3.0, 2.5, 7.0]])
    scaling = robust_scaling(x)
    np.testing.assert_array_equal(scaling.varies, [True, True, False])
    np.testing.assert_array_equal(scaling.table(x)[:, 0], [0, 0, 1, 0])
    np.testing.assert_allclose(scaling.undone(scaling.table(x)), x[:, :2])


def test_absurd_cells_stay_finite():
    x = np.array([[1.0], [2.0], [3.0], [1.7e308], [-1.7e308]])
    assert np.isfinite(robust_scaling(x, x[:, 0]).table(x)).all()
    assert np.isfinite(as_given(x).table(x)).all()


def test_constant_columns_are_left_out_and_predictions_do_without(lines, light):
    x, y = lines
    wide = np.column_stack([np.full(len(x), 4.0), x])
    fitted = CoresetRegressor(**light).fit(wide, y)
    np.testing.assert_allclose(fitted.predict(wide), CoresetRegressor(**light).fit(x, y).predict(x))
    assert fitted.coreset_.X.shape[1] == 3
    assert fitted.coreset_.parameter_names == ["x1", "x2", "x3", "intercept"]


def test_scale_none_and_models_with_units_take_the_numbers_as_they_are(light):
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 3)) + 3
    y = x @ [1.0, -2.0, 0.5] + 0.7 * random.normal(size=200)
    plain = bc.summarize(x, y, size=20, beta=0.3, guard=None, draws=100, model="linear")
    for parameters in ({"scale": None}, {"model": LinearRegression()}):
        fitted = CoresetRegressor(**{**light, **parameters}).fit(x, y)
        np.testing.assert_array_equal(fitted.sample_indices_, plain.indices)
        np.testing.assert_array_equal(fitted.sample_weight_, plain.weights)
        np.testing.assert_array_equal(fitted.scores_, plain.scores)


def test_rows_without_response_are_scaled_too(light):
    x = np.random.default_rng(0).normal(size=(200, 3)) * [1e3, 1e-2, 1.0] + [2e4, 0.3, -3.0]
    selector = CoresetSelector(**light).fit(x)
    coreset = selector.coreset_
    assert isinstance(coreset.model, GaussianMean)
    np.testing.assert_array_equal(coreset.X, x[selector.sample_indices_])
    np.testing.assert_allclose(coreset.posterior().mean, x.mean(0), rtol=0.05)


def test_what_is_said_of_columns_and_noise_is_in_the_words_of_the_table(lines):
    x, y = lines
    broken = pd.DataFrame(x, columns=["income", "share", "depth"])
    broken.loc[:39, ["income", "share"]] += np.random.default_rng(0).normal(size=(40, 2)) * [1e5, 1.0]
    coreset = CoresetRegressor(size=10, beta=0.3).fit(broken, y).coreset_
    (guard,) = (note for note in coreset.info.notes if note.startswith("guard:"))
    assert "'income'" in guard
    assert "'share'" in guard
    assert np.median(coreset.covariate_scores[:40]) < 0.1
    assert f"noise: {coreset.model.noise:.3g}, estimated from the rows that fit the line" in coreset.info.notes
    assert coreset.model.noise == pytest.approx(30, rel=0.2)


def test_what_the_guard_finds_typical_is_in_the_units_of_the_table():
    random = np.random.default_rng(0)
    x = random.normal(size=(2000, 4)) @ (np.eye(4) + 1) * [1.0, 5.0, 100.0, 3.0] + [0.0, 100.0, -3000.0, 0.0]
    y = x @ [1.0, 0.2, 0.005, 0.0] + 0.1 * random.normal(size=2000)
    x[:30, 2] += 8_000 * random.normal(size=30)
    told = CoresetSelector(beta=0.3, size=20).fit(x, y).coreset_.info.guard["columns"][0]
    assert told["column"] == "x2"
    low, high = told["typical"]
    assert -5000 < low < -3200
    assert -2800 < high < -1000
