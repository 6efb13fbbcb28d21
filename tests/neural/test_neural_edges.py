"""Tables and plans at the edge: predictions stay finite, or an error says why not."""

import numpy as np
import pytest
from plain_network import curve, in_batches

from betacores.groups import Groups
from betacores.neural import Training, fit_neural_linear

METHODS = ("pursuit", "beta-cores", "uniform")
ROWS = 120
PLAN = {"hidden": 6, "training": Training(steps=20), "rounds": 2}


def fitted(x, y, method="pursuit", **plan):
    settings = {"draws": 15, "steps": 5} if method == "beta-cores" else {}
    return fit_neural_linear(x, y, method=method, **{**PLAN, **settings, **plan})


def check(fit, x):
    mean, deviation = fit.predict(x)
    assert np.isfinite(mean).all()
    assert np.isfinite(deviation).all()
    assert (deviation > 0).all()
    assert np.isfinite(fit.weights).all()
    assert len(fit.indices) >= 1
    return mean


def constant_column(x, y):
    return np.column_stack([x[:, :1], np.full(ROWS, 3.0)]), y


def constant_columns(x, y):
    return np.ones_like(x), y


def constant_response(x, y):
    return x, np.full(ROWS, 2.0)


def three_rows_repeated(x, y):
    return np.repeat(x[:3], 40, axis=0), np.repeat(y[:3], 40)


def one_row_repeated(x, y):
    return np.repeat(x[:1], ROWS, axis=0), np.repeat(y[:1], ROWS)


def two_values(x, y):
    return np.sign(x), np.sign(y)


def tiny_response(x, y):
    return x, 1e-8 * y


def large_response(x, y):
    return x, 1e6 * y + 1e6


ODD = (
    constant_column,
    constant_columns,
    constant_response,
    three_rows_repeated,
    one_row_repeated,
    two_values,
    tiny_response,
    large_response,
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("odd", ODD)
def test_odd_tables(odd, method):
    x, y = odd(*curve(0, ROWS, 2))
    check(fitted(x, y, method), x)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cell", [1e12, -1e30])
def test_absurd_responses(cell, method):
    x, y = curve(0, ROWS, 2)
    y[[5, 40]] = cell
    check(fitted(x, y, method, initial=np.arange(20)), x)


def test_pursuit_never_takes_a_row_that_cannot_be():
    x, y = curve(0, ROWS, 2)
    y[[5, 40]] = 1e12
    fit = fitted(x, y, initial=np.arange(20))
    assert fit.scores[[5, 40]].tolist() == [0, 0]
    assert not np.isin([5, 40], fit.indices).any()
    assert np.abs(fit.predict(x)[0]).max() < 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cell", [1e12, 1e30])
def test_absurd_covariates(cell, method):
    x, y = curve(0, ROWS, 2)
    x[5, 0] = cell
    fit = fitted(x, y, method)
    mean = check(fit, x)
    assert np.abs(np.delete(mean, 5)).max() < 20


@pytest.mark.parametrize("method", ["pursuit", "uniform", "beta-cores"])
def test_fewer_rows_than_a_batch(method):
    x, y = curve(0, 3, 2)
    fit = fitted(x, y, method, batch_size=10)
    check(fit, x)
    assert len(fit.indices) <= 3


@pytest.mark.parametrize("rows", [3, 5, 8, 12])
def test_few_clean_rows_are_all_kept(rows):
    """Of so few nobody can tell which are dirty; a robust fit that believed two of them predicted thousands."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(rows, 3))
        y = x[:, 0] + 0.1 * rng.normal(size=rows)
        fit = fit_neural_linear(x, y, initial=rows, rounds=0, training=Training(steps=100))
        assert sorted(fit.indices.tolist()) == list(range(rows))
        mean, deviation = fit.predict(x)
        assert np.abs(mean - y).max() < 2
        assert deviation.min() > 0.05
        y[1] = 1e9
        fit = fit_neural_linear(x, y, initial=rows, rounds=0, training=Training(steps=20))
        assert sorted(fit.indices.tolist()) == [0, *range(2, rows)]


def test_one_column():
    x, y = curve(0, ROWS, 2)
    check(fitted(x[:, :1], y), x[:, :1])


@pytest.mark.parametrize("method", METHODS)
class TestPlans:
    x, y = curve(0, ROWS, 2)

    def test_no_rounds(self, method):
        seen = []
        fit = fitted(self.x, self.y, method, rounds=0, initial=20, record=lambda number, _: seen.append(number))
        check(fit, self.x)
        assert fit.batches == []
        assert len(fit.indices) <= 20
        assert seen == [0]

    def test_more_rounds_than_batches(self, method):
        seen = []
        plan = {"batches": in_batches(ROWS, 30), "initial": 30, "record": lambda number, _: seen.append(number)}
        fit = fitted(self.x, self.y, method, rounds=50, **plan)
        check(fit, self.x)
        assert len(fit.batches) <= 4
        assert seen == list(range(5))
        if method == "uniform":
            assert sorted(fit.indices) == list(range(ROWS))
            assert fit.weights == pytest.approx(1)

    def test_all_rows_from_the_beginning(self, method):
        fit = fitted(self.x, self.y, method, initial=np.arange(ROWS), rounds=5)
        check(fit, self.x)
        assert fit.batches == []
        assert len(fit.indices) >= 0.8 * ROWS

    def test_groups_of_very_unequal_size(self, method):
        groups = Groups(["large", "small", "two", "one"], np.repeat(np.arange(4), [110, 7, 2, 1]))
        check(fitted(self.x, self.y, method, batches=groups, initial=5, rounds=9), self.x)

    def test_one_group(self, method):
        fit = fitted(self.x, self.y, method, batches=Groups(["all"], np.zeros(ROWS, int)), initial=10)
        check(fit, self.x)
        assert fit.batches == ["all"]

    def test_groups_of_one_row(self, method):
        fit = fitted(self.x, self.y, method, batches=in_batches(ROWS, 1), initial=10)
        check(fit, self.x)
        assert len(fit.batches) <= 2


def test_defaults_alone():
    x, y = curve(0, ROWS, 2)
    fit = fit_neural_linear(x, y, training=Training(steps=20), hidden=6)
    check(fit, x)
    assert len(fit.batches) >= 1


def test_mistakes_that_are_named():
    x, y = curve(0, ROWS, 2)
    wrong = [
        ({"rounds": -1}, ValueError, "rounds: .*at least 0"),
        ({"rounds": 1.5}, TypeError, "rounds: .*whole"),
        ({"seed": -1}, ValueError, "seed"),
        ({"noise": -1.0}, ValueError, "noise: expected a finite number above 0"),
        ({"noise": float("nan")}, ValueError, "noise: expected a finite number above 0"),
        ({"beta": 0.5}, ValueError, "beta: the method 'pursuit' has no use for it"),
    ]
    for plan, error, message in wrong:
        with pytest.raises(error, match=message):
            fitted(x, y, **plan)
    with pytest.raises(ValueError, match=r"method: 'pursuits' is not known\. Did you mean 'pursuit'"):
        fitted(x, y, "pursuits")


MISTAKES = {
    "batch_size": [-1],
    "hidden": [-1],
    "networks": [0, -1, 1.5],
    "initial": [-5, np.array([ROWS])],
    "noise": [0.0],
    "guard": ["outo"],
    "beta": [-1.0],
    "training": [Training(steps=-1)],
    "draw": [3],
    "batches": [Groups(list("ab"), np.arange(40) % 2)],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MISTAKES.items() for value in values])
def test_mistakes_that_should_be_named(name, value):
    x, y = curve(0, ROWS, 2)
    with pytest.raises((ValueError, TypeError), match=f"{name}: "):
        fitted(x, y, "beta-cores" if name == "beta" else "pursuit", **{"rounds": 1, name: value})


def broken(part, value):
    x, y = curve(0, ROWS, 2)
    (x[:, 0] if part == "x" else y)[3] = value
    return x, y


TABLES = {
    "a cell is missing": ("x", broken("x", np.nan)),
    "a response is missing": ("y", broken("y", np.nan)),
    "one dimension": ("x", (np.zeros(ROWS), np.zeros(ROWS))),
    "two dimensions": ("y", (np.zeros((ROWS, 2)), np.zeros((ROWS, 2)))),
    "a response too few": ("y", (np.zeros((ROWS, 2)), np.zeros(ROWS - 1))),
    "no rows": ("x", (np.zeros((0, 2)), np.zeros(0))),
}


@pytest.mark.parametrize("table", TABLES)
def test_tables_that_should_be_refused(table):
    name, (x, y) = TABLES[table]
    with pytest.raises(ValueError, match=f"^{name}: "):
        fitted(x, y)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_from_nothing_is_refused(method):
    x, y = curve(0, ROWS, 2)
    with pytest.raises(ValueError, match="initial: the coreset must begin with a row at least"):
        fitted(x, y, method, initial=np.zeros(0, int))


def test_no_steps_are_refused():
    x, y = curve(0, ROWS, 2)
    with pytest.raises(ValueError, match="training: steps: expected a whole number at least 1, got 0"):
        fitted(x, y, training=Training(steps=0))
