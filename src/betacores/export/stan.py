"""Weighted programs in Stan: every row's log-likelihood is added to `target` as many times as it weighs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from betacores.export.ingredients import Ingredients, ingredients
from betacores.export.reading import imports, opening, reading

if TYPE_CHECKING:
    from betacores.coreset import Coreset

_PROGRAM = """\
data {{
  int<lower=0> N;  // rows
  int<lower=1> P;  // parameters
{data}
  vector<lower=0>[N] w;  // weights of the rows
  vector[P] prior_mean;
  matrix[P, P] prior_scale;  // the prior's covariance is prior_scale * prior_scale'
}}
parameters {{
  vector[P] phi;
}}
transformed parameters {{
  vector[P] theta = prior_mean + prior_scale * phi;
}}
model {{
  phi ~ std_normal();
  for (n in 1 : N) {{
    target += w[n] * {likelihood};
  }}
}}
"""
_DATA = {
    "gaussian-mean": """\
  array[N] vector[P] x;
  cholesky_factor_cov[P] spread;  // the rows' covariance is spread * spread'""",
    "linear": """\
  matrix[N, P] z;  // the columns, and a one if there is an intercept
  vector[N] y;
  real<lower=0> noise;""",
    "logistic": """\
  matrix[N, P] z;  // the columns, and a one if there is an intercept
  array[N] int<lower=0, upper=1> y;""",
    "noisy-logistic": """\
  matrix[N, P - 1] z;  // the columns, and a one if there is an intercept
  array[N] int<lower=0, upper=1> y;""",
    "known rate": """\
  matrix[N, P] z;  // the columns, and a one if there is an intercept
  array[N] int<lower=0, upper=1> y;
  real<lower=0, upper=0.5> rate;  // of flipped labels""",
    "softmax": """\
  int<lower=2> K;  // classes
  int<lower=1> Q;  // coefficients of a class
  matrix[N, Q] z;  // the columns, and a one if there is an intercept
  array[N] int<lower=1, upper=K> y;""",
    "poisson": """\
  matrix[N, P] z;  // the columns, and a one if there is an intercept
  vector[N] log_exposure;
  array[N] int<lower=0> y;""",
    "negative-binomial": """\
  matrix[N, P - 1] z;  // the columns, and a one if there is an intercept
  vector[N] log_exposure;
  array[N] int<lower=0> y;""",
    "known dispersion": """\
  matrix[N, P] z;  // the columns, and a one if there is an intercept
  vector[N] log_exposure;
  array[N] int<lower=0> y;
  real<lower=0> dispersion;""",
}
_LIKELIHOOD = {
    "gaussian-mean": "multi_normal_cholesky_lpdf(x[n] | theta, spread)",
    "linear": "normal_lpdf(y[n] | z[n] * theta, noise)",
    "logistic": "bernoulli_logit_lpmf(y[n] | z[n] * theta)",
    # A share of twice the rate are tosses of a coin.
    "noisy-logistic": ("log_mix(inv_logit(theta[P]), -log2(), bernoulli_logit_lpmf(y[n] | z[n] * theta[1 : P - 1]))"),
    "known rate": "log_mix(2 * rate, -log2(), bernoulli_logit_lpmf(y[n] | z[n] * theta))",
    "softmax": "categorical_logit_lpmf(y[n] | append_row(0, to_matrix(theta, Q, K - 1)' * z[n]'))",
    "poisson": "poisson_log_lpmf(y[n] | log_exposure[n] + z[n] * theta)",
    "negative-binomial": "neg_binomial_2_log_lpmf(y[n] | log_exposure[n] + z[n] * theta[1 : P - 1], exp(-theta[P]))",
    "known dispersion": "neg_binomial_2_log_lpmf(y[n] | log_exposure[n] + z[n] * theta, 1 / dispersion)",
}
# What the programs of the models are given beside what they share.
_OWN = {
    "gaussian-mean": ("x", "spread"),
    "linear": ("z", "y", "noise"),
    "logistic": ("z", "y"),
    "noisy-logistic": ("z", "y"),
    "known rate": ("z", "y", "rate"),
    "softmax": ("K", "Q", "z", "y"),
    "poisson": ("z", "log_exposure", "y"),
    "negative-binomial": ("z", "log_exposure", "y"),
    "known dispersion": ("z", "log_exposure", "y", "dispersion"),
}
# How the programs that read a folder write them.
_WRITTEN = {"noise": "noise", "dispersion": "dispersion", "rate": "rate", "K": "len(labels)", "Q": "z.shape[1]"}


def to_stan(coreset: Coreset) -> tuple[str, dict[str, Any]]:
    """Return a Stan program and its data, plain numbers and lists."""
    parts = ingredients(coreset)
    data = {
        "N": len(parts.z),
        "P": len(parts.prior_mean),
        **{name: _handed_over(coreset, parts, name) for name in _OWN[_kind(coreset)]},
        "w": parts.weights,
        "prior_mean": parts.prior_mean,
        "prior_scale": parts.prior_scale,
    }
    return stan_code(coreset), {name: getattr(value, "tolist", lambda v=value: v)() for name, value in data.items()}


def _kind(coreset: Coreset) -> str:
    for known in ("dispersion", "rate"):
        if getattr(coreset.model, known, None) is not None:
            return f"known {known}"
    return coreset.model.name


def _handed_over(coreset: Coreset, parts: Ingredients, name: str) -> Any:
    if name == "K":
        return coreset.model.classes  # type: ignore[attr-defined]
    if name == "Q":
        return parts.z.shape[1]
    # Stan counts from one.
    shift = 1 if coreset.model.name == "softmax" and name == "y" else 0
    return getattr(parts, "z" if name == "x" else name) + shift


def stan_code(coreset: Coreset) -> str:
    """Return the Stan program of a built-in model."""
    name = _kind(coreset)
    return _PROGRAM.format(data=_DATA[name], likelihood=_LIKELIHOOD[name])


def _written(coreset: Coreset, name: str) -> str:
    if coreset.model.name == "softmax" and name == "y":
        return "(y + 1).tolist()"
    return _WRITTEN.get(name, f"{name}.tolist()")


def program(coreset: Coreset, folder: str | Path) -> str:
    """Return a Python program that reads a saved coreset and draws with Stan."""
    own = "".join(f'    "{name}": {_written(coreset, name)},\n' for name in _OWN[_kind(coreset)])
    return (
        opening(coreset, "Stan", "pystan and pyarrow")
        + imports(coreset, "import stan")
        + f'\nprogram = """\n{stan_code(coreset)}"""\n\n'
        + reading(coreset, folder)
        + f"""
data = {{
    "N": len(weights),
    "P": len(names),
{own}    "w": weights.tolist(),
    "prior_mean": prior_mean.tolist(),
    "prior_scale": prior_scale.tolist(),
}}
# CmdStan and RStan read the same program and data: write them with Path.write_text and json.dumps.

posterior = stan.build(program, data=data, random_seed=0)
fit = posterior.sample(num_chains=4, num_warmup=500, num_samples=1000)
theta = fit["theta"].T  # draws, one a row
for name, mean, deviation in zip(names, theta.mean(0), theta.std(0)):
    print(f"{{name}}: {{mean:.4g}} ± {{deviation:.2g}}")
"""
    )
