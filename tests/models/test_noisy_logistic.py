"""Logistic regression with flipped labels: against the probabilities written out, and against what was flipped."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from finite_differences import check_against_slopes
from model_checks import check_beta_zero, check_finite, check_scores_average_one, check_small_betas
from scipy import special
from sklearn.linear_model import LogisticRegression as OrdinaryFit

import betacores as bc
from betacores import CoresetClassifier
from betacores.models import LogisticRegression, NoisyLogistic, Rows, gaussian_prior

TRUTH = np.array([2.0, -1.0, 0.5])
RATE = 0.15
THETA = np.append(TRUTH, special.logit(2 * RATE))
slow = pytest.mark.slow


def table(seed, share, rows=1000):
    """Return covariates, labels of which a share is flipped, and which these are."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2))
    true = rng.random(rows) < special.expit(x @ TRUTH[:2] + TRUTH[2])
    flipped = rng.random(rows) < share
    return x, np.where(flipped, ~true, true).astype(int), flipped


def held(x, y):
    return Rows(jnp.asarray(x, float), jnp.asarray(2.0 * y - 1))


def chances(x, theta, rate):
    """Return the probability of the second label, by the two ways to get it."""
    true = special.expit(x @ theta[:2] + theta[2])
    return (1 - rate) * true + rate * (1 - true)


def test_probabilities_and_power_integrals_are_those_of_both_labels():
    x = 3 * table(0, 0.0, 200)[0]
    with jax.enable_x64(True):
        for model, theta in ((NoisyLogistic(), THETA), (NoisyLogistic(RATE), TRUTH)):
            p = chances(x, TRUTH, RATE)
            for y, chance in ((1, p), (0, 1 - p)):
                found = jax.vmap(model.log_likelihood, (None, 0))(jnp.asarray(theta), held(x, np.full(200, y)))
                np.testing.assert_allclose(np.exp(found), chance, rtol=1e-12)
            for beta in (1e-3, 0.1, 0.5, 1.4):
                integral = jax.vmap(model.power_integral, (None, 0, None))
                found = integral(jnp.asarray(theta), held(x, np.ones(200)), jnp.asarray(beta))
                np.testing.assert_allclose(found, p ** (1 + beta) + (1 - p) ** (1 + beta), rtol=1e-6)


def test_few_flips_make_it_logistic_regression():
    x, y, _ = table(0, 0.1, 50)
    rows = held(x, y)
    with jax.enable_x64(True):
        expected = jax.vmap(LogisticRegression().log_likelihood, (None, 0))(jnp.asarray(TRUTH), rows)
        found = jax.vmap(NoisyLogistic().log_likelihood, (None, 0))(jnp.append(TRUTH, -40.0), rows)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_small_betas_derivatives_and_scores():
    x, y, _ = table(1, RATE, 40)
    with jax.enable_x64(True):
        rows, theta = held(x, y), jnp.asarray(THETA)
        check_small_betas(NoisyLogistic(), theta[None] + jnp.asarray([[0.0], [0.3]]), rows)
        few = Rows(rows.x[:4], rows.y[:4])
        for beta in (None, jnp.asarray(0.4)):
            check_against_slopes(
                NoisyLogistic(), theta, few, jnp.linspace(0.5, 2.0, 4), beta, rtol=1e-5, atol=(1e-6, 2e-5)
            )
    check_beta_zero(NoisyLogistic(), jnp.asarray(THETA[None], jnp.float32), held(x, y))
    x, y, _ = table(2, RATE, 4000)
    for beta in (0.1, 0.5, 1.0):
        check_scores_average_one(NoisyLogistic(), jnp.asarray(THETA), held(x, y), beta)


def test_single_precision_survives_absurd_numbers():
    x = np.array([[1e12, 0.0], [-1e12, 1e12], [0.0, 0.0], [0.0, 1e-30], [30.0, 0.0]])
    rows = held(x, np.array([0, 1, 1, 0, 0]))
    for a in (-40.0, -2.0, 20.0):
        for beta in (None, jnp.float32(0.5)):
            check_finite(NoisyLogistic(), jnp.asarray([*TRUTH, a], jnp.float32), rows, beta)
    # The least probability there is: that of a flip.
    far = NoisyLogistic().log_likelihood(jnp.asarray(THETA, jnp.float32), Rows(rows.x[0], rows.y[0]))
    assert float(far) == pytest.approx(np.log(RATE), rel=1e-6)


def test_the_probability_of_a_flip_is_by_the_rule_of_bayes():
    x, y, flipped = table(3, RATE, 20_000)
    true = special.expit(x @ TRUTH[:2] + TRUTH[2])
    observed = np.where(y == 1, chances(x, TRUTH, RATE), 1 - chances(x, TRUTH, RATE))
    expected = RATE * np.where(y == 1, 1 - true, true) / observed
    for model, theta in ((NoisyLogistic(), THETA), (NoisyLogistic(RATE), TRUTH)):
        found = model.flip_probability(theta[None], x, y == 1)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(model.flip_rate(np.stack([theta, theta])), RATE)
    # Of rows with about such a probability about so many were flipped.
    for low, high in ((0.0, 0.1), (0.4, 0.6), (0.9, 1.0)):
        some = (found >= low) & (found <= high)
        assert flipped[some].mean() == pytest.approx(found[some].mean(), abs=4 * 0.5 / np.sqrt(some.sum()))


BAD = {
    "none at all": (lambda: NoisyLogistic(0.0), "rate: expected a share between 0 and 0.5.*got 0.0"),
    "half": (lambda: NoisyLogistic(0.5), "between 0 and 0.5"),
    "a word": (lambda: NoisyLogistic("few"), "got 'few'"),
    "twice": (lambda: NoisyLogistic(0.1, rate_prior=gaussian_prior()), "leave one of them out"),
    "of several": (lambda: NoisyLogistic(rate_prior=gaussian_prior([0.0, 0.0])), "one number"),
    "too long": (
        lambda: NoisyLogistic(prior=gaussian_prior([0.0] * 4)).bound(["a", "b"], None),
        "for 4 coefficients, the model has 3.*the rate has a prior of its own",
    ),
    "three labels": (
        lambda: bc.summarize(np.arange(6.0)[:, None], list("abcabc"), model="noisy-logistic"),
        "two",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_settings_that_cannot_be_are_refused(name):
    make, match = BAD[name]
    with pytest.raises(ValueError, match=match):
        make()


def test_parameters_have_names():
    assert NoisyLogistic().parameter_names(["a"]) == ["a", "intercept", "logit(2 rate)"]
    assert NoisyLogistic(0.1, intercept=False).parameter_names(["a"]) == ["a"]
    assert NoisyLogistic(0.1).parameter_count(3) == 4


@slow
def test_a_coreset_is_sound_and_can_be_stored(tmp_path):
    x, y, _ = table(4, 0.2, 600)
    words = np.where(y == 1, "yes", "no")
    coreset = bc.summarize(x, words, model="noisy-logistic", size=25)
    assert len(coreset) <= 25
    assert np.all(coreset.weights > 0)
    loaded = bc.load(coreset.save(tmp_path / "out"))
    np.testing.assert_array_equal(loaded.posterior(20).draws, coreset.posterior(20).draws)
    np.testing.assert_allclose(loaded.model.guess, coreset.model.guess)
    assert "labels flipped at random" in coreset.report().html
    (said,) = (note for note in coreset.info.notes if note.startswith("flips: "))
    share = float(said.removeprefix("flips: ").split("%")[0]) / 100
    assert share == pytest.approx(coreset.model.flip_rate(coreset.posterior(500).draws).mean(), abs=0.05)
    # Two sites have guesses of their own, and one model.
    other = bc.summarize(*table(5, 0.2, 600)[:2], model="noisy-logistic", size=25)
    first = bc.summarize(x, y, model="noisy-logistic", size=25)
    assert bc.merge([first, other]).model.name == "noisy-logistic"


@slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("share", "best"), [(0.0, 1.35), (0.1, 0.7), (0.2, 0.75)])
def test_flips_are_undone(share, best):
    """Against scikit-learn's ordinary fit, which has the same prior: the median of several tables, and most of them."""
    ratios, rates, betas = [], [], []
    for seed in range(6):
        x, y, _ = table(seed, share)
        coreset = bc.summarize(x, y, model="noisy-logistic", size=50, seed=seed)
        ordinary = OrdinaryFit().fit(x, y)
        posterior = coreset.posterior(1000)
        error = np.linalg.norm(posterior.mean[:3] - TRUTH)
        ratios.append(error / np.linalg.norm(np.append(ordinary.coef_, ordinary.intercept_) - TRUTH))
        rates.append(coreset.model.flip_rate(posterior.draws).mean())
        betas.append(coreset.beta)
    assert np.median(ratios) < best
    if share:
        assert max(ratios) < 0.95
    assert np.median(rates) == pytest.approx(share, abs=0.06)
    # What the model explains needs no β.
    assert np.median(betas) <= 0.1


@slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_papers_dirt_leaves_the_right_mode_though_there_are_others():
    """Columns replaced by noise, other labels flipped: a flat mode is next to the right one, also of the coreset."""
    for seed in range(3):
        x, y, _ = table(seed, 0.2)
        rng = np.random.default_rng(100 + seed)
        noisy = rng.random(len(x)) < 0.2
        x[noisy, 0] = rng.normal(0, 5, noisy.sum())
        coreset = bc.summarize(x, y, model="noisy-logistic", size=50, seed=seed)
        ordinary = OrdinaryFit().fit(x, y)
        error = np.linalg.norm(coreset.posterior(1000).mean[:3] - TRUTH)
        assert error < 0.5 * np.linalg.norm(np.append(ordinary.coef_, ordinary.intercept_) - TRUTH)


@slow
def test_the_posterior_is_that_of_all_rows():
    """NUTS on the coreset against NUTS on all rows of a flipped table, written down here."""
    pytest.importorskip("blackjax")
    numpyro = pytest.importorskip("numpyro")
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    x, y, _ = table(7, 0.2, 3000)
    z = np.column_stack([x, np.ones(len(x))])

    def everything():
        theta = numpyro.sample("theta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
        rate = 0.5 * jax.nn.sigmoid(numpyro.sample("a", dist.Normal(-3.0, 2.5)))
        chance = rate + (1 - 2 * rate) * jax.nn.sigmoid(z @ theta)
        numpyro.sample("y", dist.Bernoulli(probs=chance), obs=y)

    lengths = {"num_warmup": 500, "num_samples": 2000, "num_chains": 2}
    sampler = MCMC(NUTS(everything), **lengths, chain_method="vectorized", progress_bar=False)
    sampler.run(jax.random.PRNGKey(0))
    found = sampler.get_samples()
    expected = np.column_stack([found["theta"], found["a"]])
    coreset = bc.summarize(x, y, model="noisy-logistic", size=60, beta=0.0, guard=None)
    draws = coreset.posterior(2000, sampler="nuts").draws.reshape(-1, 4)
    spread = expected.std(0)
    assert np.all(np.abs(draws.mean(0) - expected.mean(0)) < 0.35 * spread)
    np.testing.assert_allclose(draws.std(0), spread, rtol=0.3)


@slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_classifier_gives_the_probability_of_the_true_label_in_any_units():
    x, y, _ = table(8, 0.2, 2000)
    light = {"size": 40, "guard": None, "beta": 0.0, "model": "noisy-logistic"}
    fitted = CoresetClassifier(**light).fit(x, y)
    true = special.expit(x @ TRUTH[:2] + TRUTH[2])
    off = np.abs(fitted.predict_proba(x)[:, 1] - true).mean()
    assert off < 0.6 * np.abs(OrdinaryFit().fit(x, y).predict_proba(x)[:, 1] - true).mean()
    far = x * [1000.0, 0.01] + [5000.0, 3.0]
    other = CoresetClassifier(**light).fit(far, y)
    np.testing.assert_allclose(other.predict_proba(far), fitted.predict_proba(x), atol=0.03)
    z = np.column_stack([far, np.ones(len(far))])
    draws = other.coreset_.posterior(1000).draws
    np.testing.assert_allclose(special.expit(z @ draws[:, :3].T).mean(1), other.predict_proba(far)[:, 1], atol=0.03)
    with pytest.raises(ValueError, match="'noisy-logistic' is of two classes, y has 3"):
        CoresetClassifier(model="noisy-logistic").fit(x[:30], np.arange(30) % 3)
