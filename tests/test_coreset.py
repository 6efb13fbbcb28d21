"""The result as a person meets it: iterations, frames, posteriors, and what it says of itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

import betacores as bc

ROWS, COLUMNS, SIZE = 300, 3, 6
QUICK = {"size": SIZE, "draws": 30, "steps": 20, "batch_select": 100, "batch_optimise": 50}
PUBLISHED = {"method": "beta-cores", "beta": 0.5, **QUICK}
NAMES = ["age", "income", "weight"]

rng = np.random.default_rng(0)
X = rng.normal(0.5, 1, (ROWS, COLUMNS))
REAL = X @ [1.0, -2.0, 0.5] + rng.normal(size=ROWS)
LABELS = np.where(REAL > 0, "yes", "no")
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def density():
    return bc.summarize(X, **PUBLISHED)


@pytest.fixture(scope="module")
def linear():
    return bc.summarize(FRAME, REAL, **PUBLISHED)


@pytest.fixture(scope="module")
def logistic():
    return bc.summarize(FRAME, LABELS, **PUBLISHED)


def test_at_gives_the_coreset_after_every_iteration(linear):
    for m in range(1, SIZE + 1):
        part = linear.at(m)
        indices, weights = linear.path.at(m)
        assert part.indices.tolist() == indices.tolist()
        assert part.weights.tolist() == weights.tolist()
        assert np.array_equal(part.X, X[indices])
        assert np.array_equal(part.y, REAL[indices])
        assert len(part) <= m
    assert linear.at(SIZE).weights.tolist() == linear.weights.tolist()


def test_at_of_at_is_at(linear):
    assert linear.at(2).at(5).indices.tolist() == linear.at(5).indices.tolist()


@pytest.mark.parametrize("iteration", [0, -1, SIZE + 1])
def test_at_beyond_the_path_is_refused(linear, iteration):
    with pytest.raises(ValueError, match=rf"iteration.*{iteration}"):
        linear.at(iteration)


@pytest.mark.parametrize("iteration", [1.0, True, "2", None])
def test_at_takes_whole_numbers(linear, iteration):
    with pytest.raises(TypeError, match=r"iteration.*whole number"):
        linear.at(iteration)


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), ("A", "a"), (False, True), (1, 2), (0.5, 2.5), (b"a", b"b"), (-1, 1)],
    ids=["words", "letters", "truths", "counts", "floats", "bytes", "signs"],
)
def test_labels_of_any_kind_give_the_same_coreset_and_come_back(logistic, labels):
    low, high = labels
    y = np.array([high if word == "yes" else low for word in LABELS])
    found = bc.summarize(X, y, **PUBLISHED)
    assert found.model.name == "logistic"
    assert found.indices.tolist() == logistic.indices.tolist()
    assert found.weights.tolist() == logistic.weights.tolist()
    assert found.y.dtype == y.dtype
    assert np.array_equal(found.y, y[found.indices])
    assert found.labels.tolist() == [low, high]


def test_frame_holds_rows_response_and_weights(density, logistic):
    frame = density.to_frame()
    assert list(frame.columns) == ["x0", "x1", "x2", "weight"]
    assert frame.index.tolist() == density.indices.tolist()
    np.testing.assert_array_equal(frame["weight"], density.weights)
    np.testing.assert_array_equal(frame[["x0", "x1", "x2"]], density.X)
    assert logistic.to_frame()["y"].tolist() == LABELS[logistic.indices].tolist()


def test_frame_keeps_an_input_column_called_weight(logistic):
    """A column of the table must not be overwritten by the weights."""
    frame = logistic.to_frame()
    assert frame.shape[1] == COLUMNS + 2
    np.testing.assert_array_equal(np.sort(frame.to_numpy()[:, 2].astype(float)), np.sort(logistic.X[:, 2]))


def test_repr_says_what_it_is(logistic):
    text = repr(logistic)
    for part in (
        f"{len(logistic)} of 300 rows",
        "beta-cores",
        "logistic",
        "β = 0.5",
        "contamination",
        "logistic', since",
    ):
        assert part in text


def test_info_tells_how_it_came_about(logistic):
    info = logistic.info
    assert info.settings == {
        "model": "logistic",
        "method": "beta-cores",
        "beta": 0.5,
        "readout": "classical",
        "guard": None,
        "score_beta": 0.5,
        "seed": 0,
        "learning_rate": 1.0,
        "optimiser": "adam",
        "sampler_target": "beta",
        "screen": 0.05,
        **QUICK,
    }
    assert set(info.timings) == {"guard", "noise", "mode", "scores", "survey", "beta-cores", "quality"}
    assert all(seconds >= 0 for seconds in info.timings.values())
    assert info.trace["size"] == [len(logistic.at(m)) for m in range(1, SIZE + 1)]
    np.testing.assert_allclose(info.trace["total_weight"], [logistic.at(m).weights.sum() for m in range(1, SIZE + 1)])
    assert info.warnings == []
    assert logistic.row_count == ROWS


def within_error(draws, mean, covariance):
    """Draws agree with a Gaussian: mean within Monte-Carlo error, covariance within a few per cent of its scale."""
    scale = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(draws.mean(0) - mean) < 5 * scale / np.sqrt(len(draws)))
    away = np.cov(draws, rowvar=False) - covariance
    assert np.all(np.abs(away) < 8 / np.sqrt(len(draws)) * np.outer(scale, scale))


def test_exact_posterior_is_the_closed_form(density, linear):
    weights = density.weights
    precision = 1 + weights.sum()
    found = density.posterior(4000)
    assert found.sampler == "exact"
    assert found.names == ["x0", "x1", "x2"]
    within_error(found.draws, weights @ density.X / precision, np.eye(COLUMNS) / precision)

    z = np.column_stack([linear.X, np.ones(len(linear))])
    covariance = np.linalg.inv(np.eye(COLUMNS + 1) + (z.T * linear.weights) @ z)
    found = linear.posterior(4000)
    assert found.names == [*NAMES, "intercept"]
    within_error(found.draws, covariance @ (z.T * linear.weights) @ linear.y, covariance)


def logistic_mode(x, positive, weights):
    z = np.column_stack([x, np.ones(len(x))]) * np.where(positive, 1, -1)[:, None]

    def loss(theta):
        return weights @ np.logaddexp(0, -z @ theta) + 0.5 * theta @ theta

    theta = optimize.minimize(loss, np.zeros(z.shape[1]), tol=1e-12).x
    p = 1 / (1 + np.exp(-z @ theta))
    return theta, np.linalg.inv(np.eye(z.shape[1]) + (z.T * (weights * p * (1 - p))) @ z)


def test_laplace_posterior_is_the_mode_and_its_curvature(logistic):
    found = logistic.posterior(4000)
    assert found.sampler == "laplace"
    assert found.diagnostics == {"converged": True}
    within_error(found.draws, *logistic_mode(logistic.X, logistic.y == "yes", logistic.weights))


@pytest.mark.parametrize("label", ["no", "yes"])
def test_laplace_posterior_of_rows_of_one_class(logistic, label):
    """One row of a coreset is always of one class; its posterior is not the prior."""
    rows = np.flatnonzero(LABELS == label)[:5]
    part = replace(logistic, indices=rows, weights=np.full(5, 3.0), X=X[rows], y=LABELS[rows])
    assert set(part.y) == {label}
    within_error(part.posterior(4000).draws, *logistic_mode(part.X, part.y == "yes", part.weights))


def test_beta_posterior_is_another_one(logistic):
    classical, robust = logistic.posterior(500), logistic.posterior(500, likelihood="beta")
    assert (classical.beta, robust.beta) == (0.0, 0.5)
    assert not np.allclose(classical.mean, robust.mean, atol=1e-3)


def test_posterior_is_seeded(density):
    assert np.array_equal(density.posterior(20, seed=4).draws, density.posterior(20, seed=4).draws)
    assert not np.array_equal(density.posterior(20, seed=4).draws, density.posterior(20, seed=5).draws)


def test_posterior_refuses_what_it_cannot_do(density, logistic):
    with pytest.raises(ValueError, match=r"no closed form.*laplace"):
        logistic.posterior(sampler="exact")
    with pytest.raises(ValueError, match="no closed form"):
        density.posterior(sampler="exact", likelihood="beta")
    with pytest.raises(ValueError, match="Did you mean 'nuts'"):
        density.posterior(sampler="nut")
    with pytest.raises(ValueError, match="likelihood: 'robust'"):
        density.posterior(likelihood="robust")
    with pytest.raises(ValueError, match=r"draws.*at least 1"):
        density.posterior(0)
    with pytest.raises(TypeError, match=r"draws.*whole number"):
        density.posterior(10.0)


@pytest.mark.parametrize(("name", "value"), [("chains", 0), ("warmup", -1), ("seed", -1), ("seed", 1.5)])
def test_posterior_checks_all_its_numbers(density, name, value):
    sampler = "exact" if name == "seed" else "nuts"
    with pytest.raises((TypeError, ValueError), match=name):
        density.posterior(10, sampler=sampler, **{name: value})


def test_empty_coreset_is_the_prior():
    """Rows no draw can tell apart: nothing is selected, and that is said."""
    far = np.random.default_rng(1).choice([-1e12, 1e12], (ROWS, COLUMNS))
    with pytest.warns(UserWarning, match="No row was selected"):
        coreset = bc.summarize(far, **PUBLISHED)
    assert len(coreset) == 0
    assert coreset.X.shape == (0, COLUMNS)
    assert "0 of 300 rows" in repr(coreset)
    assert len(coreset.to_frame()) == 0
    within_error(coreset.posterior(4000).draws, np.zeros(COLUMNS), np.eye(COLUMNS))
