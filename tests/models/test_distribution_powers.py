"""Power integrals of NumPyro's distributions against SciPy: quadrature, or sums over counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

dist = pytest.importorskip("numpyro.distributions", reason="NumPyro is an optional package (betacores[numpyro]).")

from betacores.models.distribution_powers import log_power_integral  # noqa: E402

BETAS = (0.05, 0.5, 1.2)

CONTINUOUS = {
    "normal": (lambda: dist.Normal(1.0, 0.3), stats.norm(1, 0.3)),
    "log-normal": (lambda: dist.LogNormal(0.5, 0.8), stats.lognorm(0.8, scale=np.exp(0.5))),
    "student": (lambda: dist.StudentT(3.5, 1.0, 2.0), stats.t(3.5, 1, 2)),
    "cauchy": (lambda: dist.Cauchy(1.0, 2.0), stats.cauchy(1, 2)),
    "laplace": (lambda: dist.Laplace(1.0, 0.4), stats.laplace(1, 0.4)),
    "exponential": (lambda: dist.Exponential(2.5), stats.expon(scale=1 / 2.5)),
    "gamma": (lambda: dist.Gamma(2.2, 3.0), stats.gamma(2.2, scale=1 / 3)),
    "chi2": (lambda: dist.Chi2(5.0), stats.chi2(5)),
    "logistic": (lambda: dist.Logistic(1.0, 0.6), stats.logistic(1, 0.6)),
}
COUNTS = {
    "poisson": (lambda: dist.Poisson(4.2), stats.poisson(4.2)),
    "large poisson": (lambda: dist.Poisson(50_000.0), stats.poisson(50_000)),
    "binomial": (lambda: dist.Binomial(12, probs=0.3), stats.binom(12, 0.3)),
    "binomial by logits": (lambda: dist.Binomial(400, logits=2.0), stats.binom(400, 1 / (1 + np.exp(-2.0)))),
}


def found(make):
    powers = jax.jit(jax.vmap(lambda beta: log_power_integral(make(), beta)))(jnp.asarray(BETAS))
    return np.exp(np.asarray(powers))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities(name):
    make, truth = CONTINUOUS[name]
    low, high = truth.support()
    middle = truth.median()

    def power(beta):
        parts = ((low, middle), (middle, high))
        return sum(integrate.quad(lambda v: truth.pdf(v) ** (1 + beta), *ends, epsabs=1e-11)[0] for ends in parts)

    np.testing.assert_allclose(found(make), [power(beta) for beta in BETAS], rtol=2e-5)


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name):
    make, truth = COUNTS[name]
    counts = np.arange(int(truth.mean() + 30 * truth.std() + 20))
    np.testing.assert_allclose(found(make), [(truth.pmf(counts) ** (1 + b)).sum() for b in BETAS], rtol=2e-5)


def test_labels_and_classes():
    p = np.array([0.2, 0.5, 0.3])
    exact = [(p ** (1 + b)).sum() for b in BETAS]
    np.testing.assert_allclose(found(lambda: dist.Categorical(probs=jnp.asarray(p))), exact, rtol=1e-5)
    np.testing.assert_allclose(found(lambda: dist.Categorical(logits=jnp.log(p) + 3)), exact, rtol=1e-5)
    two = [0.3 ** (1 + b) + 0.7 ** (1 + b) for b in BETAS]
    np.testing.assert_allclose(found(lambda: dist.Bernoulli(probs=0.3)), two, rtol=1e-5)
    np.testing.assert_allclose(found(lambda: dist.Bernoulli(logits=np.log(0.3 / 0.7))), two, rtol=1e-5)


def test_several_outcomes_of_a_row():
    scales = jnp.asarray([0.5, 2.0, 1.0])
    alone = np.array([found(lambda s=s: dist.Normal(0.0, s)) for s in scales]).prod(0)
    np.testing.assert_allclose(found(lambda: dist.Normal(jnp.zeros(3), scales).to_event(1)), alone, rtol=1e-5)
    matrix = jnp.diag(scales**2)
    np.testing.assert_allclose(found(lambda: dist.MultivariateNormal(jnp.zeros(3), matrix)), alone, rtol=1e-5)
    spread = dist.Normal(0.0, 1.0).expand([4, 3]).to_event(1)
    assert log_power_integral(spread, jnp.float32(0.5)).shape == (4,)


def test_what_is_not_known_is_not_guessed():
    assert log_power_integral(dist.Gumbel(0.0, 1.0), jnp.float32(0.5)) is None


def test_gamma_without_integral_is_infinite_and_has_a_finite_gradient():
    def power(shape):
        return log_power_integral(dist.Gamma(shape, 1.0), jnp.float32(1.0))

    assert power(0.3) == jnp.inf
    assert np.isfinite(jax.grad(lambda shape: jnp.minimum(power(shape), 0.0))(0.3))


def test_poisson_has_derivatives():
    beta = 0.5

    def power(rate):
        return jnp.exp(log_power_integral(dist.Poisson(rate), jnp.float32(beta)))

    counts, slope_of = np.arange(200), jax.jit(jax.grad(power))

    def exact(rate):
        return (stats.poisson.pmf(counts, rate) ** (1 + beta)).sum()

    for rate in (0.5, 30.0):
        slope = (exact(rate + 1e-4) - exact(rate - 1e-4)) / 2e-4
        np.testing.assert_allclose(slope_of(rate), slope, rtol=1e-3)
