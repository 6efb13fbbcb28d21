"""Numerical rules for the power integral against closed forms, sums and quadrature in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats as of_jax
from jax.scipy.special import gammaln
from scipy import integrate, stats

from betacores.models import Enumerate, MonteCarlo, Quadrature, Rows

ROW = Rows(jnp.zeros(1), jnp.float32(0.0))
BETAS = np.array([0.01, 0.5, 1.0])


def normal(params, row):
    return of_jax.norm.logpdf(row.y, params[0], params[1])


def normal_power(scale, beta):
    return (2 * np.pi * scale**2) ** (-beta / 2) * (1 + beta) ** -0.5


def powered(truth, beta, low, high):
    return integrate.quad(lambda v: truth.pdf(v) ** (1 + beta), low, high)[0]


def each(rule, density, many, betas):
    """The rule for many parameters and every β: one program."""

    @jax.jit
    def found(params):
        return jax.vmap(lambda beta: rule(density, params, ROW, beta))(jnp.asarray(betas, jnp.float32))

    return np.array([found(jnp.asarray(params, jnp.float32)) for params in many])


def test_quadrature_finds_normals_of_any_place_and_scale():
    many = [(0.0, 1.0), (-3.0, 0.01), (2.0, 1e4), (1e-3, 1e-5), (700.0, 3.0)]
    found = each(Quadrature(), normal, many, BETAS)
    exact = np.array([[normal_power(scale, beta) for beta in BETAS] for _, scale in many])
    # Places are told from their neighbours to seven digits: what is 300 scales from zero has fewer left.
    np.testing.assert_allclose(found[[0, 2]], exact[[0, 2]], rtol=1e-6)
    np.testing.assert_allclose(found, exact, rtol=2e-4)


def test_quadrature_with_hints_needs_no_search_and_is_as_good():
    rule = Quadrature(location=lambda params, row: params[0], scale=lambda params, row: 2 * params[1])
    found = each(rule, normal, [(40.0, 0.5)], BETAS)
    np.testing.assert_allclose(found[0], [normal_power(0.5, beta) for beta in BETAS], rtol=3e-6)


def test_quadrature_has_the_derivatives_of_the_integral():
    beta = 0.5

    def power(params):
        return Quadrature()(normal, params, ROW, jnp.float32(beta))

    params, scale = jnp.asarray([1.0, 0.5]), 0.5
    exact = normal_power(scale, beta)
    np.testing.assert_allclose(jax.jit(jax.grad(power))(params), [0.0, -beta / scale * exact], rtol=1e-5, atol=1e-5)
    bend = jax.jit(jax.hessian(power))(params)
    np.testing.assert_allclose(bend, np.diag([0.0, beta * (1 + beta) / scale**2 * exact]), rtol=1e-4, atol=1e-4)


def test_quadrature_of_heavy_tails():
    for df, tolerance in ((2.0, 1e-5), (5.0, 1e-6)):

        def density(params, row, df=df):
            return of_jax.t.logpdf(row.y, df, params[0], params[1])

        found = each(Quadrature(), density, [(3.0, 2.0)], BETAS)[0]
        exact = [powered(stats.t(df, 3, 2), beta, -np.inf, np.inf) for beta in BETAS]
        np.testing.assert_allclose(found, exact, rtol=tolerance)


def test_quadrature_within_bounds():
    def gamma(params, row):
        return of_jax.gamma.logpdf(row.y, params[0], scale=params[1])

    found = each(Quadrature(support=(0, np.inf)), gamma, [(0.9, 3.0), (2.0, 0.1), (30.0, 7.0)], BETAS[:2])
    for (shape, scale), powers in zip([(0.9, 3.0), (2.0, 0.1), (30.0, 7.0)], found, strict=True):
        truth = stats.gamma(shape, scale=scale)
        exact = [powered(truth, beta, 0, 20 * shape * scale) for beta in BETAS[:2]]
        np.testing.assert_allclose(powers, exact, rtol=2e-5)

    def beta_density(params, row):
        return of_jax.beta.logpdf(row.y, params[0], params[1])

    found = each(Quadrature(support=(0, 1)), beta_density, [(2.0, 5.0)], BETAS)[0]
    exact = [powered(stats.beta(2, 5), beta, 0, 1) for beta in BETAS]
    np.testing.assert_allclose(found, exact, rtol=3e-6)


def test_quadrature_knows_when_it_is_off():
    def comb(params, row):
        return of_jax.norm.logpdf(jnp.sin(40 * row.y), 0.0, 0.01) + of_jax.norm.logpdf(row.y, 0.0, 1.0)

    rule = Quadrature(points=31)
    assert rule.error(comb, jnp.zeros(2), ROW, jnp.float32(0.5)) > 0.02
    assert rule.error(normal, jnp.asarray([0.0, 1.0]), ROW, jnp.float32(0.5)) < 1e-3
    assert Quadrature().error(normal, jnp.asarray([0.0, 1.0]), ROW, jnp.float32(0.5)) < 1e-10


def poisson(rate, row):
    return row.y * jnp.log(rate) - rate - gammaln(row.y + 1)


def test_counts_are_summed_wherever_they_are():
    rates = [0.01, 1.0, 30.0, 400.0]
    found = each(Enumerate(), poisson, rates, BETAS)
    for rate, powers in zip(rates, found, strict=True):
        counts = np.arange(int(rate + 40 * np.sqrt(rate) + 40))
        exact = [(stats.poisson.pmf(counts, rate) ** (1 + beta)).sum() for beta in BETAS]
        # The log-probability of large counts is a difference of large numbers in single precision.
        np.testing.assert_allclose(powers, exact, rtol=2e-6 if rate < 10 else 5e-5)


def test_wide_counts_are_summed_by_an_integral():
    """Negative binomials with most mass at zero and tails of thousands."""
    for mean, shape in ((50.0, 0.5), (1000.0, 1.0)):
        share = shape / (shape + mean)

        def density(params, row, shape=shape):
            chosen = gammaln(row.y + shape) - gammaln(shape) - gammaln(row.y + 1)
            return chosen + shape * jnp.log(params) + row.y * jnp.log1p(-params)

        found = each(Enumerate(), density, [share], BETAS)[0]
        counts = np.arange(100_000)
        exact = [(stats.nbinom.pmf(counts, shape, share) ** (1 + beta)).sum() for beta in BETAS]
        np.testing.assert_allclose(found, exact, rtol=2e-5)


def test_labels_are_summed_exactly():
    def bernoulli(logit, row):
        return jax.nn.log_sigmoid(jnp.where(row.y > 0.5, logit, -logit))

    found = each(Enumerate(values=(0, 1)), bernoulli, [0.7], BETAS)[0]
    p = 1 / (1 + np.exp(-0.7))
    np.testing.assert_allclose(found, p ** (1 + BETAS) + (1 - p) ** (1 + BETAS), rtol=1e-6)


def test_an_enumeration_that_misses_outcomes_says_how_many():
    some = Enumerate(values=tuple(range(5)))
    missed = 1 - stats.poisson.cdf(4, 3.0)
    np.testing.assert_allclose(some.error(poisson, jnp.float32(3.0), ROW, jnp.float32(0.5)), missed, rtol=1e-4)


def test_monte_carlo_is_within_its_standard_error_and_so_is_its_derivative():
    def sampler(key, params, row):
        return params[0] + params[1] * jax.random.normal(key)

    rule, params, beta = MonteCarlo(sampler, draws=4000), jnp.asarray([1.0, 0.5]), 0.5
    exact = normal_power(0.5, beta)
    found, error = rule(normal, params, ROW, beta), rule.error(normal, params, ROW, beta)
    assert 0.001 < error < 0.02
    assert abs(found / exact - 1) < 4 * error
    slope = jax.jit(jax.grad(lambda at: rule(normal, at, ROW, jnp.float32(beta))))(params)
    np.testing.assert_allclose(slope[1], -beta / 0.5 * exact, rtol=0.1)


def test_monte_carlo_with_a_proposal():
    rule = MonteCarlo(
        lambda key, params, row: 3 * jax.random.normal(key),
        lambda params, row: of_jax.norm.logpdf(row.y, 0.0, 3.0),
        draws=4000,
    )
    params = jnp.asarray([1.0, 0.5])
    assert abs(rule(normal, params, ROW, 0.5) / normal_power(0.5, 0.5) - 1) < 4 * rule.error(normal, params, ROW, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quadrature(points=10), "odd"),
        (lambda: Quadrature(location=len), "both, or neither"),
        (lambda: Quadrature(support=(1, 0)), "low < high"),
        (lambda: Enumerate(values=()), "values.*none"),
        (lambda: MonteCarlo("draws"), "sampler.*function"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
