"""Several classes and counts: probabilities and means that add up, in any units, despite wrong and wild responses."""

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import betacores as bc
from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector
from betacores.estimators.prediction import predictor

LIGHT = {"size": 25, "beta": 0.3, "guard": None, "method_settings": {"draws": 100}}


@pytest.fixture(scope="module")
def flowers():
    """Return measurements of three kinds of flowers, and their names."""
    data = load_iris()
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def visits():
    """Return a table in odd units, counts that follow it but for 60 wild ones, and the means of all."""
    rng = np.random.default_rng(0)
    age, income = rng.uniform(20, 80, 600), rng.lognormal(10, 0.5, 600)
    mean = np.exp(0.03 * (age - 50) - 0.4 * np.log(income / np.exp(10)) + 1.5)
    y = rng.poisson(mean)
    y[:60] += 40
    return np.column_stack([age, income]), y, mean


def test_classes_have_probabilities_and_names(flowers):
    x, y = flowers
    fitted = CoresetClassifier(**LIGHT).fit(x, y)
    probabilities = fitted.predict_proba(x)
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert fitted.coreset_.model.name == "softmax"
    assert probabilities.shape == (150, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-12)
    np.testing.assert_array_equal(fitted.predict(x), fitted.classes_[probabilities.argmax(1)])
    np.testing.assert_allclose(fitted.decision_function(x), np.log(probabilities), rtol=1e-9)
    assert fitted.score(x, y) > 0.94
    np.testing.assert_allclose(fitted.predict_proba(x[7:9]), probabilities[7:9], rtol=1e-12)


def test_units_of_the_columns_do_not_matter_and_the_coreset_is_in_them(flowers):
    x, y = flowers
    one, other = (CoresetClassifier(**LIGHT).fit(table, y) for table in (x, x * 1000 + 5000))
    np.testing.assert_allclose(other.predict_proba(x * 1000 + 5000), one.predict_proba(x), atol=0.02)
    # The posterior of the coreset in the table's units predicts what the classifier predicts.
    draws = other.coreset_.posterior(2000).draws.reshape(2000, 2, 5)
    z = np.column_stack([x * 1000 + 5000, np.ones(150)])
    logits = np.einsum("skq,nq->nsk", draws, z)
    whole = np.concatenate([np.zeros((150, 2000, 1)), logits], axis=2)
    np.testing.assert_allclose(special.softmax(whole, axis=2).mean(1), other.predict_proba(x * 1000 + 5000), atol=0.03)


@pytest.mark.slow
def test_two_classes_by_softmax_are_those_of_the_logistic_model(flowers):
    x, y = flowers[0][50:], flowers[1][50:]
    softmax, logistic = (CoresetClassifier(**LIGHT, model=model).fit(x, y) for model in ("softmax", "logistic"))
    np.testing.assert_allclose(softmax.predict_proba(x), logistic.predict_proba(x), atol=0.03)
    assert softmax.decision_function(x).shape == (100,)


@pytest.mark.slow
def test_wrong_labels_do_less_harm_than_to_the_classical_fit():
    rng = np.random.default_rng(1)
    centres = 1.5 * np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])
    own, held = rng.integers(4, size=1500), rng.integers(4, size=4000)
    wrong = rng.random(1500) < 0.1
    x = centres[own] * np.where(wrong, 2.5, 1.0)[:, None] + rng.normal(size=(1500, 3))
    y = np.where(wrong, (own + 1) % 4, own)
    test = centres[held] + rng.normal(size=(4000, 3))
    robust = CoresetClassifier(**{**LIGHT, "size": 60, "beta": 1.0}).fit(x, y)
    assert robust.score(test, held) > LogisticRegression().fit(x, y).score(test, held) + 0.03
    assert robust.scores_[wrong].mean() < 0.1 < 0.9 < robust.scores_[~wrong].mean()


def test_counts_have_the_mean_and_the_scatter_of_the_posterior(visits):
    x, y, mean = visits
    fitted = CoresetRegressor(**LIGHT, model="poisson").fit(x, y)
    predicted, deviation = fitted.predict(x, return_std=True)
    classical = PoissonRegressor(alpha=0).fit((x - x.mean(0)) / x.std(0), y)
    clean = slice(60, None)
    away = np.abs(np.log(predicted / mean))[clean].mean()
    assert away < 0.15
    assert away < 0.5 * np.abs(np.log(classical.predict((x - x.mean(0)) / x.std(0)) / mean))[clean].mean()
    # Mean and scatter of counts whose log-mean is normal.
    eta, variance = fitted._regression.posterior.moments(fitted._regression.scaling.table(x[:2]))
    means = np.exp(stats.norm(eta, np.sqrt(variance)).ppf(np.linspace(0.0005, 0.9995, 1000)[:, None]))
    np.testing.assert_allclose(predicted[:2], means.mean(0), rtol=1e-3)
    np.testing.assert_allclose(deviation[:2], np.sqrt(means.mean(0) + means.var(0)), rtol=1e-2)
    assert fitted.scores_[:60].mean() < 0.2
    np.testing.assert_array_equal(fitted.coreset_.y, y[fitted.sample_indices_])


def test_the_coreset_of_counts_is_in_the_units_of_the_table(visits):
    x, y, _ = visits
    fitted = CoresetRegressor(**LIGHT, model="poisson").fit(x, y)
    draws = fitted.coreset_.posterior(4000).draws
    np.testing.assert_allclose(np.exp(x[:50] @ draws[:, :2].T + draws[:, 2]).mean(1), fitted.predict(x[:50]), rtol=0.05)
    assert fitted.coreset_.parameter_names == ["x0", "x1", "intercept"]


@pytest.mark.slow
def test_dispersed_counts_scatter_more():
    rng = np.random.default_rng(0)
    x = rng.normal(5000, 100, size=(800, 1))
    mean = np.exp((x[:, 0] - 5000) / 200 + 2)
    y = rng.negative_binomial(2, 2 / (2 + mean))
    fitted = CoresetRegressor(**{**LIGHT, "beta": 0.1}, model="negative-binomial").fit(x, y)
    predicted, deviation = fitted.predict(x, return_std=True)
    np.testing.assert_allclose(predicted, mean, rtol=0.3)
    np.testing.assert_allclose(deviation, np.sqrt(mean + mean**2 / 2), rtol=0.35)
    draws = fitted.coreset_.posterior(4000).draws
    assert fitted.coreset_.parameter_names == ["x0", "intercept", "log dispersion"]
    np.testing.assert_allclose(np.exp(x[:50] @ draws[:, :1].T + draws[:, 1]).mean(1), fitted.predict(x[:50]), rtol=0.05)


@pytest.mark.slow
def test_exposure_is_a_column_by_name(visits):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(size=500), "days": rng.uniform(1, 30, 500), "same": 1.0})
    y = rng.poisson(frame["days"] * np.exp(0.4 * frame["age"] - 1))
    model = bc.models.PoissonRegression(exposure="days")
    fitted = clone(CoresetRegressor(**LIGHT, model=model)).fit(frame, y)
    longer = frame.assign(days=2 * frame["days"])
    np.testing.assert_allclose(fitted.predict(longer), 2 * fitted.predict(frame), rtol=1e-6)
    np.testing.assert_allclose(fitted.predict(frame), frame["days"] * np.exp(0.4 * frame["age"] - 1), rtol=0.2)
    assert fitted.coreset_.parameter_names == ["age", "intercept"]


def test_the_selector_takes_words_of_several_kinds_and_counts(flowers, visits):
    x, y = flowers
    assert CoresetSelector(**LIGHT).fit(x, y).coreset_.model.name == "softmax"
    table, counts, _ = visits
    chosen = CoresetSelector(**LIGHT, model="poisson").fit(table, counts)
    np.testing.assert_array_equal(chosen.coreset_.y, counts[chosen.sample_indices_])
    assert not (chosen.sample_indices_ < 60).any()


def test_counts_must_be_counts(visits):
    x, y, _ = visits
    with pytest.raises(ValueError, match="counts"):
        CoresetRegressor(model="poisson").fit(x, y - 0.5)
    with pytest.raises(ValueError, match=r"needs a .*Poisson.*Logistic"):
        CoresetRegressor(model=bc.models.LogisticRegression()).fit(x, y)


def test_averages_over_draws_are_those_of_many(flowers):
    x, y = flowers
    coreset = bc.summarize((x - x.mean(0)) / x.std(0), y, size=25, beta=0.3, guard=None)
    posterior = predictor(coreset)
    rows = coreset.X[:20]
    draws = (
        np.random.default_rng(5).standard_normal((20_000, len(posterior.mean))) @ posterior.factor.T + posterior.mean
    )
    logits = np.einsum("skq,nq->nsk", draws.reshape(20_000, 2, 5), np.column_stack([rows, np.ones(len(rows))]))
    whole = special.softmax(np.concatenate([np.zeros((*logits.shape[:2], 1)), logits], axis=2), axis=2).mean(1)
    np.testing.assert_allclose(posterior.class_probabilities(rows), whole, atol=0.02)
