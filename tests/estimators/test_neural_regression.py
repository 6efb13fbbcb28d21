"""How the regressor hands a table to `betacores.neural`, and what it makes of the answer."""

from types import SimpleNamespace

import numpy as np
import pytest

import betacores.neural
from betacores import CoresetRegressor


@pytest.fixture
def asked(monkeypatch):
    """Put a line by least squares in the network's place, and return what it was asked."""
    calls = []

    def fit(x, y, **arguments):
        calls.append((x, y, arguments))
        theta = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
        return SimpleNamespace(
            indices=np.arange(10),
            weights=np.full(10, len(x) / 10),
            scores=np.ones(len(x)),
            batches=[],
            predict=lambda x: (x @ theta[:-1] + theta[-1], np.full(len(x), 0.5)),
        )

    monkeypatch.setattr(betacores.neural, "fit_neural_linear", fit)
    return calls


def test_the_network_sees_numbers_of_about_one_and_predicts_in_the_units_of_the_table(asked, lines):
    x, y = lines
    fitted = CoresetRegressor(model="neural-linear", method_settings={"hidden": 12}, random_state=3).fit(x, y)
    ((seen, response, arguments),) = asked
    assert np.abs(np.median(seen, 0)).max() < 1e-6
    assert np.abs(np.median(response)) < 1e-6
    wanted = {"method": "pursuit", "beta": None, "guard": "auto", "rounds": None, "seed": 3, "hidden": 12}
    assert arguments == {**wanted, "batches": None}
    mean, deviation = fitted.predict(x, return_std=True)
    assert np.sqrt(np.mean((mean - y) ** 2)) < 35
    np.testing.assert_allclose(deviation, 0.5 * 1.4826 * np.median(np.abs(y - np.median(y))))
    assert fitted.coreset_ is None
    assert len(fitted.sample_indices_) == len(fitted.sample_weight_) == 10
    assert fitted.scores_.shape == (200,)


def test_groups_are_its_batches(asked, lines):
    CoresetRegressor(model="neural-linear", max_groups=2, beta=0.4, guard=None).fit(*lines, groups=np.arange(200) % 4)
    arguments = asked[0][2]
    assert len(arguments["batches"]) == 4
    assert (arguments["rounds"], arguments["beta"], arguments["guard"]) == (2, 0.4, None)


def test_what_it_cannot_do_is_said(asked, lines):
    x, y = lines
    with pytest.raises(ValueError, match="sample_weight: the model 'neural-linear'"):
        CoresetRegressor(model="neural-linear").fit(x, y, sample_weight=np.arange(200))
    with pytest.raises(ValueError, match="max_groups"):
        CoresetRegressor(model="neural-linear", size=10).fit(x, y)
    assert not asked


@pytest.mark.slow
def test_it_follows_a_curve_through_dirt_in_odd_units():
    random = np.random.default_rng(0)
    x = random.normal(size=(800, 3))
    y = 5e5 + 1e5 * (np.sin(2 * x[:, 0]) + x[:, 1] ** 2 + 0.1 * random.normal(size=800))
    table = x * [1.0, 1e-3, 1e4] + [100.0, 0.0, -1e5]
    learn, test = np.arange(600), np.arange(600, 800)
    dirty = random.permutation(600)[:60]
    seen = y[learn].copy()
    seen[dirty] += 2e6
    fitted = CoresetRegressor(model="neural-linear").fit(table[learn], seen)
    mean, deviation = fitted.predict(table[test], return_std=True)
    assert not np.isin(dirty, fitted.sample_indices_).any()
    assert fitted.scores_[dirty].max() < 0.05
    # Half of the spread is the least that a straight line leaves; the noise is a tenth of the curve's scale.
    assert np.sqrt(np.mean((mean - y[test]) ** 2)) < 0.35 * y[test].std()
    assert 0.75 < np.mean(np.abs(mean - y[test]) < 1.645 * deviation) <= 0.99
