"""Where β-posteriors with unknown scale misbehave: the escape to large scales shown, bounded, guarded and warned of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import betacores as bc
from betacores.divergence import as_beta, likelihoods
from betacores.models import GaussianDensity, GaussianRegression, Rows, gaussian_prior
from betacores.models.scaled import ESCAPE, escape_bound
from betacores.posteriors.derivatives import log_posterior_derivatives

derivatives, matrix = jax.jit(log_posterior_derivatives), jax.jit(likelihoods)


def few(count, scale=1.0):
    """Rows of one column and no intercept, with noise of size one."""
    x = np.linspace(-1, 1, count)[:, None]
    noise = stats.norm.ppf((np.arange(count) + 0.5) / count)[np.random.default_rng(0).permutation(count)]
    return Rows(jnp.asarray(x, jnp.float32), jnp.asarray(scale * noise, jnp.float32))


def test_with_a_flat_prior_the_posterior_has_infinite_mass():
    """By the formula, without the package: every further stretch of log σ has as much mass as the one before."""
    y, beta = np.asarray(few(30).y, np.float64), 0.5

    def log_posterior(a):
        powers = stats.norm.pdf(y, 0, np.exp(a)) ** beta
        integral = (2 * np.pi * np.exp(2 * a)) ** (-beta / 2) * (1 + beta) ** -0.5
        return float((powers / beta - integral / (1 + beta)).sum())

    limit = log_posterior(300.0)
    stretches = [
        integrate.quad(lambda a: np.exp(log_posterior(a) - limit), start, start + 40)[0] for start in (60, 100, 200)
    ]
    np.testing.assert_allclose(stretches, 40.0, rtol=1e-6)


def mass(model, rows, beta):
    """Return grid, log-mass of every cell of it, by log σ across and the coefficient down."""
    a = np.linspace(-12, 120, 1321)
    coefficient = np.linspace(-5, 5, 41)
    thetas = np.stack(np.meshgrid(coefficient, a, indexing="ij"), -1).reshape(-1, 2)
    log_mass = np.asarray(matrix(model, jnp.asarray(thetas, jnp.float32), rows, as_beta(beta)), np.float64).sum(0)
    for at, prior in ((0, model.coefficient_prior), (1, model.scale_prior or gaussian_prior(0.0, 1.0))):
        log_mass += stats.norm(prior.mean, prior.precision**-0.5).logpdf(thetas[:, at])
    return a, log_mass.reshape(41, -1)


def escaped_share(model, rows, beta):
    a, log_mass = mass(model, rows, beta)
    weights = np.exp(log_mass - log_mass.max()).sum(0)
    return weights[a > ESCAPE].sum() / weights.sum()


def test_a_wide_prior_lets_the_mass_escape_and_the_default_does_not():
    rows, beta = few(8), 1.0
    wide = GaussianRegression(intercept=False, scale_prior=gaussian_prior(0.0, 30.0**2), clean=1.0)
    usual = GaussianRegression(intercept=False, clean=1.0)
    assert escaped_share(wide, rows, beta) > 0.25
    assert escaped_share(usual, rows, beta) < 1e-3


@pytest.mark.parametrize("variance", [1.0, 900.0])
def test_the_escaped_mass_is_below_its_bound(variance):
    beta = 1.0
    for count in (8, 20):
        rows, model = (
            few(count),
            GaussianRegression(intercept=False, scale_prior=gaussian_prior(0.0, variance), clean=1.0),
        )
        a, log_mass = mass(model, rows, beta)
        place = np.unravel_index(log_mass.argmax(), log_mass.shape)
        theta = np.array([np.linspace(-5, 5, 41)[place[0]], a[place[1]]])
        hessian = derivatives(model, jnp.asarray(theta, jnp.float32), rows, jnp.ones(count), as_beta(beta)).hessian
        prior = stats.norm.logpdf(theta[0]) + stats.norm(0, variance**0.5).logpdf(theta[1])
        half = 0.5 * np.linalg.slogdet(-np.asarray(hessian, np.float64))[1]
        bound = escape_bound(count, beta, 1.0, prior, half, 2)
        weights = np.exp(log_mass - log_mass.max()).sum(0)
        odds = np.log(weights[a > 9].sum() / weights[a < ESCAPE].sum())
        assert odds < bound + 0.7  # Laplace's mass of the mode is itself approximate for few rows.


def test_a_hundred_rows_keep_the_default_posterior_from_escaping():
    for beta in (0.1, 0.5, 1.0):
        # Two parameters: information about N for the coefficient's third, about 2N for log σ.
        half = 0.5 * np.log(100 / 3) + 0.5 * np.log(200)
        assert escape_bound(100, beta, 0.8, 2 * stats.norm.logpdf(1.0), half, 2) < -20


def test_rows_on_one_line_exactly_do_not_make_the_scale_collapse():
    """The likelihood stays bounded as σ falls, though most residuals are zero."""
    rows = Rows(jnp.linspace(-1, 1, 20)[:, None], jnp.where(jnp.arange(20) < 15, 0.0, 1.0))
    model = GaussianRegression(intercept=False, clean=1.0)
    at = jnp.stack([jnp.zeros(4), jnp.asarray([-5.0, -10.0, -20.0, -80.0])], axis=1)
    totals = np.asarray(likelihoods(model, at, rows, as_beta(0.5))).sum(0)
    assert totals[1] > totals[0]
    np.testing.assert_allclose(totals[3], totals[2], rtol=1e-6)
    assert totals[2] < 1.3 * totals[1]


@pytest.mark.slow
def test_a_response_that_is_mostly_tied_is_summarised():
    tied = np.r_[np.zeros(60), np.random.default_rng(0).normal(size=40)]
    x = np.random.default_rng(1).normal(size=(100, 1))
    posterior = bc.summarize(x, tied, model="gaussian", size=10, beta=0.5).posterior(100)
    assert np.isfinite(posterior.draws).all()


def test_a_mode_at_the_escape_is_warned_of():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 1))
    y = x[:, 0] + rng.normal(size=100)
    pulled = GaussianRegression(scale_prior=gaussian_prior(9.0, 1e-3))
    with pytest.warns(UserWarning, match="The mode stands where the scale is so large that no row counts"):
        coreset = bc.summarize(x, y, model=pulled, size=10, beta=0.5, readout="beta")
    with pytest.warns(UserWarning, match=r"100% of the posterior's mass stands where the scale is so large"):
        coreset.posterior(100)
    away = np.array([[0.0, 0.0, 0.5, 0.5, 0.1], [0.0, 0.0, 0.5, 4.5, 0.1]])
    assert GaussianDensity().escaped(away).tolist() == [False, True]
