"""The scikit-learn program finds the mode of the posterior."""

import runpy

import numpy as np
import pytest

NAMES = [
    "mean",
    "mean, own prior",
    "mean, by column",
    "linear",
    "linear, own prior",
    "logistic",
    "logistic, own prior",
    "softmax",
    "poisson",
]


def fitted(coreset, folder):
    coreset.save(folder / "coreset")
    path = folder / "program.py"
    path.write_text(coreset.snippet("scikit-learn", folder / "coreset"), encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.mark.parametrize("name", NAMES)
def test_coefficients_are_the_mode(cases, name, tmp_path, capsys):
    found = fitted(cases[name].coreset, tmp_path)
    np.testing.assert_allclose(found["theta"], cases[name].mode, atol=1e-5)
    # One line a parameter is printed, whatever its name.
    assert capsys.readouterr().out.count(": ") == len(found["theta"])
    assert list(found["names"]) == cases[name].coreset.parameter_names


def test_coefficients_in_the_units_of_the_table(cases, tmp_path):
    """Years and incomes: the same mode as in units of about one, turned into those of the table."""
    found = fitted(cases["table units"].coreset, tmp_path)["theta"]
    back = np.linalg.cholesky(cases["table units"].prior_covariance)
    np.testing.assert_allclose(np.linalg.solve(back, found), cases["scaled"].mode, atol=1e-5)
