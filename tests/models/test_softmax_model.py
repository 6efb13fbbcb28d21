"""Softmax regression against SciPy, against logistic regression, and against itself with other names of the classes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from finite_differences import check_against_slopes
from model_checks import check_finite, check_scores_average_one
from scipy import special

import betacores as bc
from betacores.divergence import likelihood, likelihoods
from betacores.models import LogisticRegression, Rows, SoftmaxRegression, gaussian_prior
from betacores.models.softmax import symmetric_prior

CLASSES, COLUMNS = 4, 2


def model_rows(rows, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(CLASSES - 1, COLUMNS + 1))
    x = rng.normal(size=(rows, COLUMNS))
    logits = np.column_stack([np.zeros(rows), np.column_stack([x, np.ones(rows)]) @ theta.T])
    y = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    held = Rows(jnp.asarray(x, float), jnp.asarray(y, float))
    return SoftmaxRegression(CLASSES), held, jnp.asarray(theta.ravel(), float), special.log_softmax(logits, axis=1)


def test_log_likelihood_and_power_integral_are_those_of_the_probabilities():
    model, rows, theta, log_p = model_rows(30)
    each = jax.vmap(model.log_likelihood, (None, 0))(theta, rows)
    np.testing.assert_allclose(each, log_p[np.arange(30), np.asarray(rows.y, int)], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(likelihoods(model, theta[None], rows, None)[:, 0], each, rtol=1e-5, atol=1e-6)
    for beta in (0.01, 0.5, 1.4):
        sums = jax.vmap(model.power_integral, (None, 0, None))(theta, rows, jnp.float32(beta))
        np.testing.assert_allclose(sums, np.exp((1 + beta) * log_p).sum(1), rtol=1e-5)


def test_two_classes_are_a_logistic_regression():
    softmax, logistic = SoftmaxRegression(2), LogisticRegression()
    rng = np.random.default_rng(0)
    rows = Rows(jnp.asarray(rng.normal(size=(20, 2)), float), jnp.asarray(rng.choice([-1.0, 1.0], 20)))
    thetas = jnp.asarray(rng.normal(size=(5, 3)), float)
    for beta in (None, jnp.float32(0.5)):
        actual, expected = (likelihoods(model, thetas, rows, beta) for model in (softmax, logistic))
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    for theta in thetas:
        np.testing.assert_allclose(softmax.log_prior(theta), logistic.log_prior(theta), rtol=1e-6)


def test_the_default_prior_prefers_no_class():
    covariance = np.linalg.inv(symmetric_prior(3, np.eye(1)).precision)
    # Log-odds of 1 and 2 against 0, and of 2 against 1.
    np.testing.assert_allclose(np.diag(covariance), 1.0)
    between = np.array([-1.0, 1.0])
    np.testing.assert_allclose(between @ covariance @ between, 1.0)
    bound = SoftmaxRegression().bound(["a", "b"], np.array(["x", "y", "z"]))
    theta = jnp.asarray(np.random.default_rng(0).normal(size=6), float)
    np.testing.assert_allclose(bound.log_prior(theta), SoftmaxRegression(3).log_prior(theta), rtol=1e-5)


def test_scores_of_rows_from_the_model_average_one():
    model, rows, theta, _ = model_rows(4000)
    for beta in (0.2, 1.0):
        check_scores_average_one(model, theta, rows, beta)


def test_gradients_and_hessians_are_those_of_finite_differences():
    with jax.enable_x64(True):
        model, rows, theta, _ = model_rows(5)
        for beta in (None, jnp.asarray(0.4)):
            check_against_slopes(model, theta, rows, jnp.linspace(0.5, 2.0, 5), beta, rtol=1e-6, atol=(1e-7, 1e-7))
        near = jax.vmap(likelihood, (None, None, 0, None))(model, theta, rows, jnp.asarray(1e-8))
        np.testing.assert_allclose(near, jax.vmap(model.log_likelihood, (None, 0))(theta, rows), rtol=1e-5)


def test_single_precision_survives_absurd_numbers():
    x = jnp.asarray([[1e12, 0.0], [-1e12, 1e12], [0.0, 0.0], [0.0, 1e-30], [1.0, -1e12]])
    rows = Rows(x, jnp.asarray([3.0, 0.0, 1.0, 2.0, 0.0]))
    for beta in (None, jnp.float32(0.5)):
        check_finite(SoftmaxRegression(CLASSES), jnp.linspace(-1, 1, 9), rows, beta)


def test_names_carry_column_and_label():
    bound = SoftmaxRegression().bound(["a"], np.array(["low", "mid", "high"]))
    assert bound.parameter_names(["a"]) == ["a (mid)", "intercept (mid)", "a (high)", "intercept (high)"]
    assert SoftmaxRegression(3, intercept=False).parameter_names(["a"]) == ["a (1)", "a (2)"]
    assert bound.parameter_count(1) == 4


BAD = {
    "one class": (lambda: SoftmaxRegression(1), "classes.*2 or more.*1"),
    "words": (lambda: SoftmaxRegression("three"), "classes.*'three'"),
    "not known": (lambda: SoftmaxRegression().parameter_count(2), "classes.*not known"),
    "others": (lambda: SoftmaxRegression(4).bound(["a"], np.arange(3)), "has 4, the response 3"),
    "prior too short": (
        lambda: bc.summarize(
            np.arange(6.0).reshape(-1, 1), list("abcabc"), model=SoftmaxRegression(prior=gaussian_prior([0.0, 0.0]))
        ),
        "prior.*2 parameters, the model has 4",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_refused(what):
    make, message = BAD[what]
    with pytest.raises(ValueError, match=message):
        make()


def test_words_of_several_kinds_choose_softmax_and_numbers_do_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    codes = (x @ [[3, -2, 0], [0, 1, -3]] + rng.gumbel(size=(300, 3))).argmax(1)
    words = np.array(["ash", "beech", "cedar"])[codes]
    coreset = bc.summarize(x, words, size=12, beta=0.3, guard=None)
    assert coreset.model.name == "softmax"
    assert coreset.labels.tolist() == ["ash", "beech", "cedar"]
    assert any("softmax" in note for note in coreset.info.notes)
    assert (
        bc.summarize(x, words.astype(object), size=12, beta=0.3, guard=None).indices.tolist()
        == coreset.indices.tolist()
    )
    numbers = bc.summarize(x, codes, size=12, beta=0.3, guard=None, model="softmax")
    assert numbers.indices.tolist() == coreset.indices.tolist()
    assert bc.inputs.read_problem(x, codes, "auto").model.name == "linear"
