"""One trial, and the posteriors it is held against, by closed forms, scikit-learn and draws taken by hand."""

import jax
import numpy as np
import pytest
from closed_forms import NOISE, exact_posterior, features, linear_table
from scipy import special, stats
from sklearn import linear_model

import betacores as bc
from betacores.evaluation import Sampling, reference_posterior, run_trial
from betacores.inputs import read_problem
from betacores.models import GaussianMean, LinearRegression, LogisticRegression

ROWS = 120
KEY = jax.random.key(0)
QUICK = Sampling(sampler="laplace", draws=1000)
DIRTY = np.arange(ROWS) % 6 == 0
X, Y = linear_table(0, ROWS, 2)
Y = Y + 4 * DIRTY
TEST = linear_table(1, 60, 2)


def predictive(posterior, noise):
    """Mean log-density of the test rows under a line whose coefficients are uncertain."""
    mean, precision = posterior
    z = features("linear", TEST[0])
    spread = np.sqrt(noise**2 + np.einsum("np,pq,nq->n", z, np.linalg.inv(precision), z))
    return stats.norm(z @ mean, spread).logpdf(TEST[1]).mean()


class TestReference:
    @pytest.mark.parametrize("kept", [None, ~DIRTY], ids=["all", "clean"])
    @pytest.mark.parametrize("model", [GaussianMean(), LinearRegression(NOISE)], ids=lambda model: model.name)
    def test_it_is_the_exact_posterior_where_there_is_one(self, model, kept):
        y = None if model.name == "gaussian-mean" else Y
        found, posterior = reference_posterior(read_problem(X, y, model), KEY, kept)
        mean, precision = exact_posterior(X, y, kept)
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-4)
        np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(precision), rtol=1e-3, atol=1e-6)
        assert found is model

    @pytest.mark.parametrize("kept", [None, ~DIRTY], ids=["all", "clean"])
    def test_for_labels_it_lies_where_scikit_learn_ends_and_is_as_wide_as_the_curvature_says(self, kept):
        labels = np.where(Y > 0, "yes", "no")
        _, posterior = reference_posterior(read_problem(X, labels, LogisticRegression()), KEY, kept)
        rows = np.ones(ROWS, bool) if kept is None else kept
        # Half the squared length is what C = 1 takes off, and the intercept's with it as a column of ones.
        z = features("logistic", X[rows])
        fitted = linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8).fit(z, labels[rows])
        np.testing.assert_allclose(posterior.mean, fitted.coef_[0], atol=1e-3)
        p = special.expit(z @ fitted.coef_[0])
        precision = np.eye(3) + (z.T * p * (1 - p)) @ z
        np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(precision), rtol=0.01, atol=1e-4)

    def test_noise_that_is_left_open_is_settled_first(self):
        model, posterior = reference_posterior(read_problem(X, Y, "linear"), KEY, ~DIRTY)
        # The standard error of a standard deviation is σ/√(2n).
        assert model.noise == pytest.approx(NOISE, abs=4 * NOISE / np.sqrt(2 * (~DIRTY).sum()))
        mean, precision = exact_posterior(X, Y, ~DIRTY, model.noise)
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-4)
        np.testing.assert_allclose(posterior.covariance(), np.linalg.inv(precision), rtol=1e-3, atol=1e-6)


class TestTrial:
    def test_records_hold_what_the_docstring_says(self):
        told = []
        plans = {"one": {"method": "uniform"}, "two": {"method": "uniform", "seed": 3}}
        records = run_trial(
            *(X, Y, TEST, plans),
            **{"sizes": [3, 8], "truth": DIRTY, "sampling": QUICK, "model": LinearRegression(NOISE)},
            progress=lambda *counts: told.append(counts),
        )
        assert [(record["method"], record["size"], record["kept"]) for record in records] == [
            *(("one", 3, 3), ("one", 8, 8), ("two", 3, 3), ("two", 8, 8)),
            *(("all rows", ROWS, ROWS), ("clean rows", 100, 100)),
        ]
        measured = {"method", "size", "kept", "rmse", "log_density"}
        built = {"beta", "total_weight", "contamination", "seconds", "dirty", "kl_to_clean"}
        assert all(set(record) == measured | built for record in records[:4])
        assert set(records[4]) == measured | {"kl_to_clean"}
        assert set(records[5]) == measured
        assert told == [(1, 2), (2, 2)]

    def test_a_plan_may_have_a_seed_of_its_own(self):
        plans = {"first": {"method": "uniform"}, "other": {"method": "uniform", "seed": 3}}
        first, other, *_ = run_trial(
            X, Y, TEST, plans, sizes=[8], truth=DIRTY, seed=2, sampling=QUICK, model=LinearRegression(NOISE)
        )
        for record, seed in ((first, 2), (other, 3)):
            coreset = bc.summarize(X, Y, method="uniform", size=8, seed=seed, model=LinearRegression(NOISE))
            expected = predictive(exact_posterior(coreset.X, coreset.y, coreset.weights), NOISE)
            assert record["log_density"] == pytest.approx(expected, rel=0.03)
            assert record["dirty"] == DIRTY[coreset.indices].sum()

    def test_every_coreset_is_read_by_its_own_model(self):
        plans = {f"noise {s}": {"method": "uniform", "model": LinearRegression(s)} for s in (0.5, 1.0)}
        found = run_trial(X, Y, TEST, plans, sizes=[8], model=LinearRegression(NOISE), sampling=QUICK)
        for noise, record in zip((0.5, 1.0), found, strict=False):
            coreset = bc.summarize(X, Y, method="uniform", size=8, model=LinearRegression(noise))
            posterior = exact_posterior(coreset.X, coreset.y, coreset.weights, noise)
            assert record["log_density"] == pytest.approx(predictive(posterior, noise), rel=0.03)
        assert found[2]["log_density"] == pytest.approx(predictive(exact_posterior(X, Y), NOISE), rel=0.03)

    def test_a_coreset_is_read_with_the_likelihood_it_was_built_for(self):
        """Of rows of which some are off, the β-posterior follows the others, the classical one all of them."""
        x = X + 3.0 * DIRTY[:, None]
        built = {"method": "importance", "beta": 0.2}
        plans = {"beta": {**built, "readout": "beta"}, "classical": built}
        records = run_trial(x, None, (TEST[0], None), plans, sizes=[40], truth=DIRTY, sampling=QUICK)
        for record in records[:2]:
            coreset = bc.summarize(x, size=40, **plans[record["method"]])
            draws = coreset.posterior(4000, "laplace", likelihood=record["method"]).draws
            density = np.exp(-0.5 * ((TEST[0][:, None] - draws) ** 2).sum(2)) / (2 * np.pi)
            assert record["log_density"] == pytest.approx(np.log(density.mean(1)).mean(), abs=0.01)
            assert record["beta"] == 0.2
        assert records[0]["log_density"] > records[1]["log_density"] + 0.05
