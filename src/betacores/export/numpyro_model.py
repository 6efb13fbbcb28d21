"""Weighted models in NumPyro: `handlers.scale` multiplies every row's log-likelihood by its weight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.export.ingredients import Ingredients, ingredients
from betacores.export.own_model import own_model
from betacores.export.reading import imports, opening, reading
from betacores.models.open_model import OpenModel

if TYPE_CHECKING:
    from betacores.coreset import Coreset

_LIKELIHOOD = {
    "gaussian-mean": 'numpyro.sample("x", dist.MultivariateNormal(theta, scale_tril=spread), obs=x)',
    "linear": 'numpyro.sample("y", dist.Normal(z @ theta, noise), obs=y)',
    "logistic": 'numpyro.sample("y", dist.Bernoulli(logits=z @ theta), obs=y)',
    "noisy-logistic": (
        "true = jax.nn.sigmoid(z @ theta[: z.shape[1]])  # the observed label is the other one in so many cases:\n"
        "        rate = {rate}\n"
        '        numpyro.sample("y", dist.Bernoulli(probs=rate + (1 - 2 * rate) * true), obs=y)'
    ),
    "softmax": (
        "logits = z @ theta.reshape(-1, z.shape[1]).T\n"
        "        logits = jnp.concatenate([jnp.zeros((len(z), 1)), logits], axis=1)\n"
        '        numpyro.sample("y", dist.Categorical(logits=logits), obs=y)'
    ),
    "poisson": 'numpyro.sample("y", dist.Poisson(jnp.exp(log_exposure + z @ theta)), obs=y)',
    "negative-binomial": (
        "mean = jnp.exp(log_exposure + z @ theta[: z.shape[1]])\n"
        '        numpyro.sample("y", dist.NegativeBinomial2(mean, {size}), obs=y)'
    ),
}


COUNTING = ("poisson", "negative-binomial")


def _size(coreset: Coreset) -> str:
    return "jnp.exp(-theta[-1])" if getattr(coreset.model, "dispersion", None) is None else "1 / dispersion"


def _rate(coreset: Coreset) -> str:
    known = getattr(coreset.model, "rate", None)
    return "0.5 * jax.nn.sigmoid(theta[-1])" if known is None else repr(float(known))


def to_numpyro(coreset: Coreset) -> Callable[[], None]:
    """Return a NumPyro model of the coreset: a function without arguments."""
    if isinstance(coreset.model, OpenModel):
        return own_model(coreset)
    parts = ingredients(coreset)
    try:
        import numpyro
        import numpyro.distributions as dist
    except ImportError:
        raise ImportError("to_numpyro() needs NumPyro; install betacores[numpyro].") from None
    name, weights = coreset.model.name, parts.weights
    mean, scale = parts.prior_mean, parts.prior_scale
    # In double precision here, since NumPyro computes in single precision unless told otherwise: columns far from zero
    # would lose their digits in z @ theta.
    if name in COUNTING or name in ("softmax", "noisy-logistic"):
        return _of_several(coreset, parts)
    directions, spread = parts.z @ scale, parts.spread
    offset = parts.z @ mean
    centred = parts.z - mean if name == "gaussian-mean" else parts.y - offset if name == "linear" else parts.y

    def model() -> None:
        phi = numpyro.sample("phi", dist.Normal(0.0, 1.0).expand([len(mean)]).to_event(1))
        numpyro.deterministic("theta", mean + scale @ phi)
        with numpyro.plate("rows", len(weights)), numpyro.handlers.scale(scale=weights):
            if name == "gaussian-mean":
                numpyro.sample("x", dist.MultivariateNormal(scale @ phi, scale_tril=spread), obs=centred)
            elif name == "linear":
                numpyro.sample("y", dist.Normal(directions @ phi, parts.noise), obs=centred)
            else:
                numpyro.sample("y", dist.Bernoulli(logits=offset + directions @ phi), obs=centred)

    return model


def _of_several(coreset: Coreset, parts: Ingredients) -> Callable[[], None]:
    """Return a model of counts, of several classes, or of labels that may be flipped."""
    import jax
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    name, mean, scale = coreset.model.name, parts.prior_mean, parts.prior_scale
    coefficients = parts.z.shape[1]
    vectors = coreset.model.classes - 1 if name == "softmax" else 1  # type: ignore[attr-defined]
    count = vectors * coefficients
    directions = np.einsum("nq,kqp->nkp", parts.z, scale[:count].reshape(vectors, coefficients, -1))
    offset = parts.z @ mean[:count].reshape(vectors, coefficients).T
    offset = offset if parts.log_exposure is None else offset + parts.log_exposure[:, None]

    def model() -> None:
        phi = numpyro.sample("phi", dist.Normal(0.0, 1.0).expand([len(mean)]).to_event(1))
        theta = numpyro.deterministic("theta", mean + scale @ phi)
        eta = offset + directions @ phi
        with numpyro.plate("rows", len(parts.weights)), numpyro.handlers.scale(scale=parts.weights):
            if name == "softmax":
                logits = jnp.concatenate([jnp.zeros((len(parts.z), 1)), eta], axis=1)
                numpyro.sample("y", dist.Categorical(logits=logits), obs=parts.y)
            elif name == "noisy-logistic":
                rate = 0.5 * jax.nn.sigmoid(theta[-1]) if parts.rate is None else parts.rate
                chance = rate + (1 - 2 * rate) * jax.nn.sigmoid(eta[:, 0])
                numpyro.sample("y", dist.Bernoulli(probs=chance), obs=parts.y)
            elif name == "poisson":
                numpyro.sample("y", dist.Poisson(jnp.exp(eta[:, 0])), obs=parts.y)
            else:
                size = jnp.exp(-theta[-1]) if parts.dispersion is None else 1 / parts.dispersion
                numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(eta[:, 0]), size), obs=parts.y)

    return model


def program(coreset: Coreset, folder: str | Path) -> str:
    """Return a Python program that reads a saved coreset and draws with NumPyro."""
    return (
        opening(coreset, "NumPyro", "numpyro and pyarrow")
        + imports(
            coreset,
            "import jax",
            *(["import jax.numpy as jnp"] if coreset.model.name in ("softmax", *COUNTING) else []),
            "import numpyro",
            "import numpyro.distributions as dist",
            "from numpyro.infer import MCMC, NUTS",
        )
        + "\nnumpyro.enable_x64()\n\n"
        + reading(coreset, folder)
        + f"""

def model():
    phi = numpyro.sample("phi", dist.Normal(0.0, 1.0).expand([len(names)]).to_event(1))
    theta = numpyro.deterministic("theta", prior_mean + prior_scale @ phi)
    with numpyro.plate("rows", len(weights)), numpyro.handlers.scale(scale=weights):
        {_LIKELIHOOD[coreset.model.name].format(size=_size(coreset), rate=_rate(coreset))}


mcmc = MCMC(
    NUTS(model), num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
)
mcmc.run(jax.random.PRNGKey(0))
theta = mcmc.get_samples()["theta"]  # draws, one a row
for name, mean, deviation in zip(names, theta.mean(0), theta.std(0)):
    print(f"{{name}}: {{mean:.4g}} ± {{deviation:.2g}}")
"""
    )
