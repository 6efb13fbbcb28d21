"""ArviZ data: draws, diagnostics, weights and rows."""

import re
import sys

import numpy as np
import pytest

import betacores as bc
from betacores.posteriors.result import Posterior

az = pytest.importorskip("arviz", reason="ArviZ is an optional package (betacores[arviz]).")


@pytest.fixture(scope="module")
def coreset(page):
    return page["coreset"]


@pytest.fixture(scope="module")
def data(page):
    """Drawn by NUTS: 500 draws of each of four chains."""
    return page["data"]


def test_summary_agrees_with_our_diagnostics(coreset, data):
    own = coreset.posterior(500, "nuts")
    np.testing.assert_array_equal(data.posterior["theta"], own.chains)
    summary = az.summary(data, round_to="none")
    assert list(summary.index) == [f"theta[{name}]" for name in coreset.parameter_names]
    np.testing.assert_allclose(summary["r_hat"], own.diagnostics["r_hat"], atol=0.005)
    np.testing.assert_allclose(summary["ess_bulk"], own.diagnostics["effective_sample_size"], rtol=0.1)
    np.testing.assert_allclose(summary["mean"], own.mean, rtol=1e-4)
    np.testing.assert_allclose(summary["sd"], np.sqrt(np.diag(own.covariance)), rtol=1e-2)


def test_data_hold_weights_rows_and_response(coreset, data):
    held = data.constant_data
    assert held["row"].values.tolist() == coreset.indices.tolist()
    np.testing.assert_array_equal(held["weight"], coreset.weights)
    np.testing.assert_array_equal(held["x"], coreset.X)
    assert held["column"].values.tolist() == coreset.columns
    response = data.observed_data["y"]
    assert response.values.tolist() == (coreset.y == coreset.labels[1]).astype(int).tolist()
    assert [response.attrs["label_of_0"], response.attrs["label_of_1"]] == coreset.labels.tolist()
    row = int(coreset.indices[3])
    assert float(held["weight"].sel(row=row)) == coreset.weights[3]


def test_data_say_where_they_come_from(data):
    assert data.sample_stats["divergences"].shape == (4,)
    for group in (data.posterior, data.constant_data, data.observed_data, data.sample_stats):
        about = group.attrs
        assert about["inference_library"] == "betacores"
        assert about["inference_library_version"] == bc.__version__
        assert (about["method"], about["model"], about["beta"]) == ("pursuit", "logistic", 0.5)
        assert (about["sampler"], about["likelihood_beta"]) == ("nuts", 0.0)


def test_models_without_response_and_samplers_without_divergences(cases):
    data = cases["mean"].coreset.to_arviz(100, "exact", seed=2)
    assert set(data.groups()) == {"posterior", "constant_data"}
    assert data.posterior["theta"].shape == (1, 100, 2)
    assert data.posterior.attrs["sampler"] == "exact"


def test_draws_made_by_hand_have_no_rows():
    data = Posterior(np.zeros((2, 5, 2)), ["a", "a"], "exact", 0.0).to_arviz()
    assert data.groups() == ["posterior"]
    assert data.posterior["parameter"].values.tolist() == ["a", "a_"]


@pytest.mark.parametrize(
    ("package", "name"),
    [("arviz", "ArviZ"), ("numpyro", "NumPyro")],
)
def test_without_the_package_the_remedy_is_named(cases, monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    coreset = cases["linear"].coreset
    with pytest.raises(ImportError, match=re.escape(f"needs {name}; install betacores[{package}].")):
        getattr(coreset, f"to_{package}")()


def test_without_blackjax_the_remedy_is_named(cases, monkeypatch):
    monkeypatch.delitem(sys.modules, "betacores.posteriors.nuts", raising=False)
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ImportError, match=re.escape("install betacores[nuts], or choose 'laplace'")):
        cases["linear"].coreset.to_arviz()
