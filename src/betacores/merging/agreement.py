"""What summaries must have in common to be merged, and what they may differ in.

The model, its prior, the columns, the labels and the likelihood that reads the rows must be the same. The noise of a
linear regression is estimated at every site and may differ: what a row tells of the line is `w / σ²`. One noise takes
the place of all, the precision-weighted `σ⁻² = Σ_s W_s σ_s⁻² / Σ_s W_s` with W the total weights, and weights become
`w σ² / σ_s²`. So every site keeps its information, and all together their total weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from betacores.coreset import Coreset, Likelihood
from betacores.merging.overlap import check_apart
from betacores.models import GaussianPrior, LinearRegression, Model


class Common(NamedTuple):
    """What the sites have in common: the model, the likelihood that reads their rows, and its β."""

    model: Model
    readout: Likelihood
    beta: float


def named_coresets(coresets: Any, names: Any) -> tuple[list[Coreset], list[str]]:
    """Return the coresets that were handed in and what to call them, each once."""
    if isinstance(coresets, Coreset):
        raise TypeError("coresets: expected a list of them, got one; pass [a, b, ...].")
    if isinstance(coresets, Mapping):
        if names is not None:
            raise ValueError("names: the coresets have names already; pass a list of coresets, or leave names out.")
        names, coresets = list(coresets), list(coresets.values())
    if isinstance(coresets, (str, bytes)) or not hasattr(coresets, "__iter__"):
        raise TypeError(f"coresets: expected a list of coresets, got {coresets!r}.")
    given = list(coresets)
    if not given:
        raise ValueError("coresets: the list is empty; pass at least one coreset.")
    for place, coreset in enumerate(given):
        if not isinstance(coreset, Coreset):
            raise TypeError(
                f"coresets: expected coresets, number {place} is a {type(coreset).__name__}; "
                "make one with bc.summarize, or read one with bc.load."
            )
    called = [f"site {place}" for place in range(len(given))] if names is None else _names(names, len(given))
    check_apart(given, called)
    return given, called


def common_ground(coresets: Sequence[Coreset], names: Sequence[str], prior: GaussianPrior | None) -> Common:
    """Return what coresets have in common, or say what they have not."""
    first = coresets[0]
    for name, other in zip(names[1:], coresets[1:], strict=True):
        pair = f"{names[0]!r} and {name!r}"
        _check_columns(first, other, names[0], name)
        _check_models(first.model, other.model, pair, prior is not None)
        if not _equal(first.labels, other.labels):
            raise ValueError(
                f"coresets: {pair} have different labels, {_listed(first.labels)} and {_listed(other.labels)}; "
                "summarise the sites again with the same coding of the response and with rows of every label."
            )
        if first.readout != other.readout:
            raise ValueError(
                f"coresets: {pair} are to be read with different likelihoods, readout={first.readout!r} and "
                f"{other.readout!r}; summarise the sites again with one readout."
            )
        if first.readout == "beta" and first.beta != other.beta:
            raise ValueError(
                f"coresets: {pair} are to be read with the β-likelihood of different β, {first.beta:g} and "
                f"{other.beta:g}; summarise the sites again with one beta=, or with readout='classical'."
            )
    model = first.model if prior is None else _with_prior(first.model, prior)
    return Common(model, first.readout, first.beta if first.readout == "beta" else 0.0)


def pooled_noise(model: Model, models: Sequence[Model], weights: np.ndarray) -> tuple[Model, np.ndarray]:
    """Return the model with the noise of all sites, and by what weights of each site are multiplied."""
    if not isinstance(model, LinearRegression):
        return model, np.ones(len(models))
    noises = np.array([float(one.noise) for one in models if isinstance(one, LinearRegression)])
    if (noises == noises[0]).all() or not weights.any():
        return model, np.ones(len(models))
    pooled = math.sqrt(weights.sum() / (weights @ noises**-2.0))
    return model.with_noise(pooled), (pooled / noises) ** 2


def _names(names: Any, count: int) -> list[str]:
    if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
        raise TypeError(f"names: expected one for each of the {count} coresets, got {names!r}.")
    called = [str(name) for name in names]
    if len(called) != count:
        raise ValueError(f"names: expected one for each of the {count} coresets, got {len(called)}.")
    twice = [name for place, name in enumerate(called) if name in called[:place]]
    if twice:
        raise ValueError(f"names: {twice[0]!r} is there twice; call every coreset something else.")
    return called


def _check_columns(first: Coreset, other: Coreset, name: str, other_name: str) -> None:
    if first.columns == other.columns:
        return
    ours, theirs = set(first.columns), set(other.columns)
    if ours == theirs:
        place = next(k for k, (a, b) in enumerate(zip(first.columns, other.columns, strict=True)) if a != b)
        raise ValueError(
            f"coresets: {name!r} and {other_name!r} have their columns in different order ({first.columns[place]!r} "
            f"and {other.columns[place]!r} at place {place}); summarise the sites again with columns in one order."
        )
    holder, lacking = (other_name, name) if ours < theirs else (name, other_name)
    column = min((ours ^ theirs) if ours < theirs else (ours - theirs), key=(first.columns + other.columns).index)
    raise ValueError(
        f"coresets: {holder!r} has a column {column!r}, {lacking!r} has not; summarise the sites again with the same "
        "columns under the same names."
    )


def _check_models(ours: Model, theirs: Model, pair: str, any_prior: bool) -> None:
    if type(ours) is not type(theirs):
        raise ValueError(
            f"coresets: {pair} are of different models, {ours.name!r} and {theirs.name!r}; "
            "summarise the sites again with one model=."
        )
    for setting in sorted(vars(ours) | vars(theirs)):
        if setting == "noise" and isinstance(ours, LinearRegression):
            continue
        # Where a search begins is no part of the model.
        if setting == "guess" or (setting == "prior" and any_prior):
            continue
        if _equal(vars(ours).get(setting), vars(theirs).get(setting)):
            continue
        called = {"whitener": "covariance"}.get(setting, setting)
        remedy = (
            "pass the one to merge with: prior=bc.models.gaussian_prior(...)"
            if setting == "prior"
            else f"summarise the sites again with one {called}, given to the model"
        )
        raise ValueError(f"coresets: the models of {pair} differ in their {called}; {remedy}.")


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    if one is None or other is None or callable(one) or callable(other):
        return one is other or (callable(one) and one == other)
    return np.array_equal(np.asarray(one), np.asarray(other))


def _listed(labels: np.ndarray | None) -> str:
    return "none" if labels is None else ", ".join(repr(value) for value in labels[:5].tolist())


def _with_prior(model: Model, prior: GaussianPrior) -> Model:
    if not isinstance(prior, GaussianPrior):
        raise TypeError(f"prior: expected one made with bc.models.gaussian_prior, got {prior!r}.")
    if not hasattr(model, "prior"):
        raise ValueError(f"prior: the model {model.name!r} has a prior of its own; leave it out.")
    return model.replaced(prior=prior)
