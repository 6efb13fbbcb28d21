"""NUTS against exact posteriors and Laplace approximations, within Monte-Carlo error."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from betacores.divergence import as_beta
from betacores.models import LogisticRegression, Rows
from betacores.posteriors import laplace
from betacores.posteriors.nuts import nuts

SETTINGS = {"draws": 500, "chains": 4, "warmup": 300}


def assert_moments(paths, info, mean, covariance, slack=0.0):
    """Means and standard deviations by z-tests; `slack` is what the approximation itself may be off."""
    draws = np.asarray(paths, np.float64).reshape(-1, len(mean))
    scale = np.sqrt(np.diag(covariance))
    size = np.minimum(np.asarray(info.effective_sample_size), len(draws))
    assert (np.abs(draws.mean(0) - mean) / scale < 4 / np.sqrt(size) + slack).all()
    # A standard deviation has relative error 1/√(2n); squares are taken to mix half as well as the draws.
    assert (np.abs(draws.std(0) / scale - 1) < 4 / np.sqrt(size) + slack).all()
    correlation = np.corrcoef(draws.T) - covariance / np.outer(scale, scale)
    assert (np.abs(correlation) < 4 / np.sqrt(size.min() / 2) + slack).all()


def assert_healthy(paths, info):
    chains, draws, p = paths.shape
    assert info.divergences.shape == (chains,)
    assert info.r_hat.shape == info.effective_sample_size.shape == (p,)
    assert (np.asarray(info.r_hat) < 1.02).all()
    assert (np.asarray(info.effective_sample_size) > 0.2 * chains * draws).all()
    assert np.asarray(info.divergences).sum() == 0


@pytest.mark.slow
def test_many_coresets_at_once_agree_each_with_its_exact_posterior(make_case):
    """The last has weights so large that single precision knows the log-density to a million only: no chain can tell
    up from down, and the diagnostics must say so.
    """
    case = make_case("gaussian")
    keys = jax.random.split(jax.random.key(9), 4)
    weights = jnp.stack([case.weights, jnp.ones(40), jnp.zeros(40), jnp.full(40, 1e11)])
    together = jax.vmap(lambda key, w: nuts(key, case.model, case.rows, w, **SETTINGS))(keys, weights)
    for k in range(3):
        paths, info = jax.tree.map(lambda a, k=k: a[k], together)
        assert_healthy(paths, info)
        assert_moments(paths, info, *case.exact(weights[k]))
    paths, info = jax.tree.map(lambda a: a[3], together)
    assert np.isfinite(paths).all()
    assert np.asarray(info.divergences).sum() > 100


def test_small_and_large_beta_share_a_program_and_agree_with_what_they_should(make_case):
    """β → 0 with the exact classical posterior, β = 0.4 with importance sampling in double precision."""
    case = make_case("linear")
    draw = partial(nuts, model=case.model, rows=case.rows, weights=case.weights, **SETTINGS)
    paths, info = draw(jax.random.key(0), beta=as_beta(1e-9))
    assert paths.shape == (4, 500, 3)
    assert_healthy(paths, info)
    assert_moments(paths, info, *case.exact(case.weights))

    robust, info = draw(jax.random.key(1), beta=as_beta(0.4))
    assert_healthy(robust, info)
    assert_moments(robust, info, *importance_moments(case, 0.4))

    again, _ = draw(jax.random.key(1), beta=as_beta(0.4))
    np.testing.assert_array_equal(robust, again)
    assert np.abs(np.asarray(robust) - np.asarray(paths)).max() > 0.1
    # R-hat by the formula of split chains, which ranks and folding change little.
    halves = np.asarray(robust, np.float64).reshape(8, 250, -1)
    within, between = halves.var(1, ddof=1).mean(0), 250 * halves.mean(1).var(0, ddof=1)
    np.testing.assert_allclose(info.r_hat, np.sqrt((249 / 250 * within + between / 250) / within), atol=0.01)


def importance_moments(case, beta, count=20_000):
    """Mean and covariance by importance sampling around the mode, from a wide Student's t."""
    mode = case.mode(case.weights, beta, np.array([0.8, -0.5, 0.3]))
    scale = np.linalg.inv(-case.derivatives(mode, case.weights, beta)[1])
    proposal = stats.multivariate_t(mode, 1.5 * scale, df=5, seed=0)
    points = proposal.rvs(count)
    log_target = np.array([case.log_posterior(point, case.weights, beta) for point in points])
    log_ratio = log_target - proposal.logpdf(points)
    ratio = np.exp(log_ratio - log_ratio.max())
    ratio /= ratio.sum()
    assert 1 / (ratio**2).sum() > count / 2, "the reference is worth many more draws than are tested"
    mean = ratio @ points
    return mean, (points - mean).T @ ((points - mean) * ratio[:, None])


def test_laplace_and_nuts_agree_on_logistic_regression_with_enough_data():
    """Laplace misses the skewness: mode and mean differ by `½ Σ T:Σ` to first order, `T` the third derivatives.

    What then remains is of second order, the square of that difference in standard deviations.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2)).astype(np.float32)
    y = np.where(rng.random(600) < special.expit(x @ [1.5, -1.0] + 0.5), 1.0, -1.0).astype(np.float32)
    model, rows = LogisticRegression(), Rows(jnp.asarray(x), jnp.asarray(y))
    approximation, found = jax.jit(laplace)(model, rows, jnp.ones(600), None)
    assert found.converged
    mode, covariance = np.asarray(approximation.mean, np.float64), np.asarray(approximation.covariance(), np.float64)
    z = np.column_stack([x, np.ones(600)]).astype(np.float64)
    up = special.expit(z @ mode)
    third = np.einsum("n,ni,nj,nk->ijk", -up * (1 - up) * (1 - 2 * up), z, z, z)
    shift = 0.5 * covariance @ np.einsum("ijk,jk->i", third, covariance)
    away = np.abs(shift / np.sqrt(np.diag(covariance))).max()
    assert away < 0.2, "enough data for the expansion to hold"
    paths, info = nuts(jax.random.key(0), model, rows, jnp.ones(600), **SETTINGS)
    assert_healthy(paths, info)
    assert_moments(paths, info, mode + shift, covariance, slack=away**2)
