"""What programs are made of: nothing of the data but labels; and which coresets have none."""

import ast
from dataclasses import replace

import numpy as np
import pytest

import betacores as bc
from betacores.models import LogisticRegression, gaussian_prior

TOOLS = ["stan", "numpyro", "scikit-learn"]


def with_settings(coreset, **settings):
    return replace(coreset, info=replace(coreset.info, settings={**coreset.info.settings, **settings}))


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", ["mean", "linear", "logistic", "logistic, own prior"])
def test_hostile_names_are_no_part_of_a_program(cases, tool, name):
    coreset = cases[name].coreset
    text = coreset.snippet(tool, 'my "folder"\\')
    ast.parse(text)
    assert "script" not in text
    assert "broken" not in text
    assert repr('my "folder"\\') in text
    assert "import betacores" not in text


def test_scikit_learn_has_no_dispersed_counts(cases):
    with pytest.raises(ValueError, match=r"no weighted model like 'negative-binomial'; choose 'stan'"):
        cases["dispersed"].coreset.snippet("scikit-learn")
    with pytest.raises(ValueError, match=r"no weighted model like 'noisy-logistic'"):
        cases["flipped"].coreset.snippet("scikit-learn")


def test_scikit_learn_program_says_what_it_leaves_out(cases):
    text = cases["linear"].coreset.snippet("scikit-learn")
    assert "no draws, no standard deviations, no intervals" in text
    assert "sample_weight=weights" in text


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), ("'", '"\n\\'), (False, True), (3, 7), (0.5, 2.5), (b"a", b"\xff")],
    ids=["words", "quotes", "truths", "counts", "floats", "bytes"],
)
def test_labels_of_any_kind_are_coded(cases, labels, tmp_path):
    coreset = cases["logistic"].coreset
    labels = np.array(labels)
    positive = coreset.y == coreset.labels[1]
    y, path_y = (labels[(side == coreset.labels[1]).astype(int)] for side in (coreset.y, coreset.path_y))
    other = replace(coreset, y=y, path_y=path_y, labels=labels)
    other.save(tmp_path / "coreset")
    text = other.snippet("scikit-learn", tmp_path / "coreset").split("# scikit-learn finds")[0]
    names: dict = {}
    exec(text, names)
    assert names["y"].tolist() == positive.astype(int).tolist() == other.to_stan()[1]["y"]


def test_labels_that_cannot_be_spelled_are_refused(cases):
    coreset = cases["logistic"].coreset
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    other = replace(coreset, y=days[(coreset.y == coreset.labels[1]).astype(int)], labels=days)
    with pytest.raises(ValueError, match=r"labels.*date.*words or numbers"):
        other.snippet("stan")


def test_single_precision_rows_of_an_array(cases, tmp_path):
    """Rows may be held as float32, weights and prior are not."""
    coreset = cases["mean"].coreset
    small = replace(coreset, X=coreset.X.astype(np.float32), path_X=coreset.path_X.astype(np.float32))
    small.save(tmp_path / "coreset")
    names: dict = {}
    exec(small.snippet("scikit-learn", tmp_path / "coreset"), names)
    np.testing.assert_allclose(names["theta"], cases["mean"].mode, atol=1e-5)


@pytest.mark.parametrize(
    "use", [*(lambda c, t=t: c.snippet(t) for t in TOOLS), bc.Coreset.to_stan, bc.Coreset.to_numpyro]
)
def test_a_coreset_for_the_beta_likelihood_is_refused(cases, use):
    robust = with_settings(cases["linear"].coreset, readout="beta")
    with pytest.raises(ValueError, match=r"readout='beta', β = 0.3.*readout='classical'"):
        use(robust)
    # At β = 0 the two likelihoods are one.
    assert use(replace(robust, beta=0.0))


def test_other_models_and_empty_coresets_are_refused(cases):
    coreset = cases["linear"].coreset

    class Own:
        name = "own"

    with pytest.raises(ValueError, match=r"no program for 'own'.*'linear'"):
        replace(coreset, model=Own()).to_stan()
    empty = replace(coreset, indices=coreset.indices[:0], weights=np.zeros(0), X=coreset.X[:0], y=coreset.y[:0])
    with pytest.raises(ValueError, match="empty"):
        empty.snippet("numpyro")
    with pytest.raises(ValueError, match=r"tool: 'sklearn'.*Did you mean 'scikit-learn'"):
        coreset.snippet("sklearn")


def test_what_scikit_learn_cannot_do_is_refused(cases):
    coreset = cases["logistic"].coreset
    with pytest.raises(ValueError, match=r"mean is not zero.*'stan' or 'numpyro'"):
        cases["logistic through zero"].coreset.snippet("scikit-learn")
    one = coreset.y == coreset.labels[0]
    part = replace(
        coreset, indices=coreset.indices[one], weights=coreset.weights[one], X=coreset.X[one], y=coreset.y[one]
    )
    with pytest.raises(ValueError, match=r"all rows.*needs both"):
        part.snippet("scikit-learn")
    assert part.snippet("stan")


def test_a_prior_far_from_zero_keeps_its_digits(cases):
    """A column like a year, in the units of the table: its coefficient and the intercept are nearly one."""
    back = np.array([[3.0, 0, 0], [0, 1.0, 0], [2000.0, 0.5, 1.0]])
    precision = back.T @ back
    model = LogisticRegression(prior=gaussian_prior()._replace(mean=np.zeros(3), precision=precision))
    data = replace(cases["logistic"].coreset, model=model).to_stan()[1]
    np.testing.assert_allclose(back @ data["prior_scale"], np.eye(3), atol=1e-8)


def test_a_prior_without_digits_is_refused(cases):
    back = np.array([[1e-3, 0, 0], [0, 1.0, 0], [1e8, 0.5, 1.0]])
    model = LogisticRegression(prior=gaussian_prior()._replace(mean=np.zeros(3), precision=back.T @ back))
    with pytest.raises(ValueError, match=r"prior.*no digits left.*Subtract"):
        replace(cases["logistic"].coreset, model=model).snippet("stan")
