"""One trial: several methods summarise the same table, and their coresets of several sizes are measured.

All coresets, of every method and size, are sampled together; classical inference from all rows and, where it is known
which rows are dirty, from the clean ones stand beside them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from betacores.constructions import METHODS
from betacores.coreset import Coreset
from betacores.evaluation.draws import Sampler, posterior_draws
from betacores.evaluation.measures import gaussian_divergence, measures
from betacores.evaluation.reference import reference_posterior
from betacores.front_door import summarize
from betacores.inputs import Problem, encode_rows, read_problem
from betacores.models import Model
from betacores.models.base import Rows
from betacores.posteriors.gaussian import Gaussian

if TYPE_CHECKING:
    from jaxtyping import Bool, PRNGKeyArray

ALL_ROWS, CLEAN_ROWS = "all rows", "clean rows"

Record = dict[str, Any]
Plan = Mapping[str, Any]


class Sampling(NamedTuple):
    """How posteriors are drawn from; see `betacores.evaluation.posterior_draws`."""

    sampler: Sampler = "nuts"
    draws: int = 250
    chains: int = 2
    warmup: int = 200
    lanes: int = 64


class _Measured(NamedTuple):
    """A coreset of one size, ready to be drawn from, and what is known of it already."""

    record: Record
    model: Model
    beta: float
    rows: Rows
    weights: np.ndarray


def run_trial(
    x: Any,
    y: Any,
    test: tuple[np.ndarray, np.ndarray | None],
    plans: Mapping[str, Plan],
    *,
    sizes: Sequence[int],
    model: str | Model = "auto",
    truth: Bool[np.ndarray, " rows"] | None = None,
    seed: int = 0,
    sampling: Sampling = Sampling(),  # noqa: B008
    progress: Callable[[int, int], None] | None = None,
) -> list[Record]:
    """Return one record for every method and size, then for the references.

    A record holds ``method`` and ``size``, rows ``kept``, ``beta``, ``total_weight``, ``contamination``, the
    ``seconds`` the construction took, how many ``dirty`` rows were kept and the divergence ``kl_to_clean`` (both if
    ``truth`` is given), what `betacores.evaluation.measures` gives, and the diagnostics of NUTS. References have no
    construction and no diagnostics.

    Parameters
    ----------
    x, y
        The table to summarise, as `betacores.summarize` takes it.
    test
        Rows and responses to predict.
    plans
        By the name to be given to it, the arguments of `betacores.summarize` for every method.
    sizes
        Sizes to measure; a method that stops earlier is measured as it stopped.
    model
        As `betacores.summarize` takes it.
    truth
        Which rows of the table are dirty, if that is known.
    seed
        Of the constructions and of the draws.
    sampling
        How posteriors are drawn from.
    progress
        Called with the number of finished methods and their total.
    """
    problem = read_problem(x, y, model)
    held = encode_rows(*test, problem.labels)
    reference_key, draw_key = jax.random.split(jax.random.key(seed))
    references = _references(problem, reference_key, truth)
    measured = []
    for number, (name, plan) in enumerate(plans.items()):
        coreset = _summarised(x, y, model, {"seed": seed, **plan}, sizes, name)
        measured += [_at(coreset, name, size, truth) for size in sizes]
        if progress is not None:
            progress(number + 1, len(plans))
    _draw_and_measure(measured, references.get(CLEAN_ROWS), held, draw_key, sampling)
    records = [one.record for one in measured]
    for name, (its_model, posterior) in references.items():
        count = problem.source.row_count - (0 if name == ALL_ROWS or truth is None else int(truth.sum()))
        thetas = np.asarray(posterior.draw(draw_key, sampling.draws * sampling.chains))
        found = {key: float(value[0]) for key, value in measures(its_model, thetas, held).items()}
        found |= _divergences(thetas, references.get(CLEAN_ROWS))[0] if name == ALL_ROWS else {}
        records.append({"method": name, "size": count, "kept": count, **found})
    return records


def _references(problem: Problem, key: PRNGKeyArray, truth: np.ndarray | None) -> dict[str, tuple[Model, Gaussian]]:
    found = {ALL_ROWS: reference_posterior(problem, key)}
    if truth is not None:
        found[CLEAN_ROWS] = reference_posterior(problem, key, ~truth)
    return found


def _summarised(x: Any, y: Any, model: str | Model, plan: Plan, sizes: Sequence[int], name: str) -> Coreset:
    """Return the coreset of the largest size; warnings say which method they are about."""
    taken = METHODS[plan["method"]].defaults if plan.get("method") in METHODS else {}
    settings = {"model": model, "size": min(max(sizes), len(x)), **plan}
    if "sizes" in taken:
        settings.setdefault("sizes", tuple(sizes))
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", category=UserWarning)
        coreset = summarize(x, y, **settings)
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        warnings.warn(f"{name}: {message}", stacklevel=4)
    return coreset


def _at(whole: Coreset, name: str, size: int, truth: np.ndarray | None) -> _Measured:
    coreset = whole.at(min(size, len(whole.path.weights)))
    record = {
        "method": name,
        "size": size,
        "kept": len(coreset),
        "beta": coreset.beta,
        "total_weight": float(coreset.weights.sum()),
        "contamination": coreset.contamination,
        "seconds": sum(whole.info.timings.values()),
    }
    if truth is not None:
        record["dirty"] = int(truth[coreset.indices].sum())
    read_beta = coreset.beta if coreset.readout == "beta" else 0.0
    rows = encode_rows(coreset.X, coreset.y, coreset.labels)
    return _Measured(record, coreset.model, read_beta, rows, coreset.weights)


def _draw_and_measure(
    measured: list[_Measured],
    clean: tuple[Model, Gaussian] | None,
    held: Rows,
    key: PRNGKeyArray,
    sampling: Sampling,
) -> None:
    """Add to the records what draws of the posteriors tell; coresets of one model are drawn from together."""
    for number, together in enumerate(_by_model(measured)):
        found = posterior_draws(
            together[0].model,
            [(one.rows, one.weights) for one in together],
            jax.random.fold_in(key, number),
            beta=together[0].beta,
            **sampling._asdict(),
        )
        values = measures(together[0].model, found.thetas, held)
        for name in ("r_hat", "effective_sample_size", "divergences"):
            diagnostic = getattr(found, name)
            values |= {} if diagnostic is None else {name: diagnostic}
        for lane, one in enumerate(together):
            one.record.update({name: value[lane].item() for name, value in values.items()})
        for one, divergence in zip(together, _divergences(found.thetas, clean), strict=True):
            one.record.update(divergence)


def _by_model(measured: list[_Measured]) -> list[list[_Measured]]:
    """Return coresets grouped by what reads them: a linear model's noise, say, may differ between methods."""
    groups: list[list[_Measured]] = []
    for one in measured:
        for group in groups:
            if group[0].beta == one.beta and _same(group[0].model, one.model):
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _same(one: Model, other: Model) -> bool:
    leaves, others = jax.tree.leaves(one), jax.tree.leaves(other)
    alike = str(jax.tree.structure(one)) == str(jax.tree.structure(other))
    return alike and all(np.array_equal(a, b) for a, b in zip(leaves, others, strict=True))


def _divergences(thetas: np.ndarray, clean: tuple[Model, Gaussian] | None) -> list[Record]:
    """Return the divergence from draws to the posterior of the clean rows, one a lane, where that is known."""
    lanes = len(thetas) if thetas.ndim == 3 else 1
    if clean is None or thetas.shape[-2] <= thetas.shape[-1]:
        return [{} for _ in range(lanes)]
    posterior = clean[1]
    found = gaussian_divergence(thetas, np.asarray(posterior.mean), np.asarray(posterior.covariance(), np.float64))
    return [{"kl_to_clean": float(value)} for value in found]
