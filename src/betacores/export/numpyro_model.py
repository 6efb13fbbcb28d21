"""Weighted models in NumPyro: `handlers.scale` multiplies every row's log-likelihood by its weight."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from betacores.export.ingredients import ingredients
from betacores.export.own_model import own_model
from betacores.export.reading import imports, opening, reading
from betacores.models.open_model import OpenModel

if TYPE_CHECKING:
    from betacores.coreset import Coreset

_LIKELIHOOD = {
    "gaussian-mean": 'numpyro.sample("x", dist.MultivariateNormal(theta, scale_tril=spread), obs=x)',
    "linear": 'numpyro.sample("y", dist.Normal(z @ theta, noise), obs=y)',
    "logistic": 'numpyro.sample("y", dist.Bernoulli(logits=z @ theta), obs=y)',
}


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


def program(coreset: Coreset, folder: str | Path) -> str:
    """Return a Python program that reads a saved coreset and draws with NumPyro."""
    return (
        opening(coreset, "NumPyro", "numpyro and pyarrow")
        + imports(
            coreset,
            "import jax",
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
        {_LIKELIHOOD[coreset.model.name]}


mcmc = MCMC(
    NUTS(model), num_warmup=500, num_samples=1000, num_chains=4, chain_method="vectorized", progress_bar=False
)
mcmc.run(jax.random.PRNGKey(0))
theta = mcmc.get_samples()["theta"]  # draws, one a row
for name, mean, deviation in zip(names, theta.mean(0), theta.std(0)):
    print(f"{{name}}: {{mean:.4g}} ± {{deviation:.2g}}")
"""
    )
