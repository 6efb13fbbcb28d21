"""Draws from the posteriors of many coresets, in compiled calls of a fixed shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_choice, check_number
from betacores.divergence import as_beta
from betacores.evaluation.lanes import laplace_lanes, nuts_lanes
from betacores.models.base import Model, Rows
from betacores.posteriors.weighted import PAD_ROWS
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float, Int, PRNGKeyArray

Sampler = Literal["nuts", "laplace"]


@dataclass(frozen=True)
class Draws:
    """Draws of several posteriors, one a lane, and how far to trust them.

    Attributes
    ----------
    thetas
        Draws of all chains, one chain after the other.
    r_hat
        Largest R-hat over the parameters; None where draws are independent.
    effective_sample_size
        Smallest bulk effective sample size over the parameters; None where draws are independent.
    divergences
        Divergent steps after warm-up, over all chains; None where draws are independent.
    """

    thetas: Float[np.ndarray, "lanes s p"]
    r_hat: Float[np.ndarray, " lanes"] | None = None
    effective_sample_size: Float[np.ndarray, " lanes"] | None = None
    divergences: Int[np.ndarray, " lanes"] | None = None

    def __len__(self) -> int:
        """Return the number of posteriors."""
        return len(self.thetas)


def posterior_draws(
    model: Model,
    coresets: Sequence[tuple[Rows, Float[np.ndarray, " m"]]],
    key: PRNGKeyArray,
    *,
    beta: float = 0.0,
    sampler: Sampler = "nuts",
    draws: int = 250,
    chains: int = 2,
    warmup: int = 200,
    lanes: int = 64,
    capacity: int | None = None,
) -> Draws:
    """Return draws of the posterior of every coreset.

    Coresets of all sizes run in one compiled program, `lanes` at a time. A lane's draws depend on the key, on its place
    in the sequence and on its own rows; other coresets change them only when a larger one makes for a longer program,
    whose sums are rounded differently. Fix `capacity` to rule that out.

    Parameters
    ----------
    model
        The model of all coresets.
    coresets
        Rows, as the model takes them, and their weights; none at all give the prior.
    key
        Random key.
    beta
        Of the β-likelihood; 0 is the classical posterior.
    sampler
        ``"nuts"``, or ``"laplace"`` for independent draws of the Gaussian approximation at the mode.
    draws, chains, warmup
        Draws kept of each chain, number of chains, and steps of adaptation before. Laplace gives as many draws as all
        chains together.
    lanes
        How many posteriors a compiled call takes.
    capacity
        How many rows a lane has room for, rounded up to a multiple of 128; by default those of the largest coreset.
    """
    check_choice("sampler", sampler, ("nuts", "laplace"))
    check_number("beta", beta, at_least=0)
    # R-hat splits each chain into two, and a half needs a variance.
    for name, value, least in (("draws", draws, 4), ("chains", chains, 1), ("warmup", warmup, 1), ("lanes", lanes, 1)):
        check_number(name, value, at_least=least, whole=True)
    _check_coresets(model, coresets)
    largest = max(len(weights) for _, weights in coresets)
    if capacity is not None and capacity < largest:
        raise ValueError(f"capacity: it is {capacity}, and a coreset has {largest} rows; raise it or leave it out.")
    length = max(-(-(capacity or largest) // PAD_ROWS), 1) * PAD_ROWS

    with single_precision():
        calls = [
            _call(model, coresets, numbers, key, length, beta, sampler, draws, chains, warmup)
            for numbers in _in_calls(len(coresets), lanes)
        ]

    def joined(parts: list) -> Any:
        return None if parts[0] is None else np.concatenate(parts)[: len(coresets)]

    return Draws(*(joined([call[part] for call in calls]) for part in range(4)))


def _check_coresets(model: Model, coresets: Sequence[tuple[Rows, np.ndarray]]) -> None:
    if not coresets:
        raise ValueError("coresets: expected at least one pair of rows and weights, got none.")
    for number, (rows, weights) in enumerate(coresets):
        if len(rows.x) != len(weights):
            raise ValueError(
                f"coresets: number {number} has {len(rows.x)} rows and {len(weights)} weights; "
                "expected one weight a row."
            )
        if (rows.y is None) != (model.response == "none"):
            needs = "no response" if model.response == "none" else "a response"
            raise ValueError(f"coresets: the model {model.name!r} takes {needs}; see number {number}.")


def _in_calls(count: int, lanes: int) -> list[np.ndarray]:
    """Return the numbers of the lanes of every call; the last lane is repeated to fill the last call."""
    return [np.minimum(np.arange(start, start + lanes), count - 1) for start in range(0, count, lanes)]


def _call(
    model: Model,
    coresets: Sequence[tuple[Rows, np.ndarray]],
    numbers: np.ndarray,
    key: PRNGKeyArray,
    length: int,
    beta: float,
    sampler: Sampler,
    draws: int,
    chains: int,
    warmup: int,
) -> tuple[np.ndarray | None, ...]:
    rows, weights = _stacked([coresets[number] for number in numbers], length)
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.asarray(numbers))
    if sampler == "laplace":
        thetas = laplace_lanes(keys, model, rows, weights, as_beta(beta), draws=chains * draws)
        return np.asarray(thetas), None, None, None
    done = nuts_lanes(keys, model, rows, weights, as_beta(beta), draws=draws, chains=chains, warmup=warmup)
    paths, r_hat, size, divergences = (np.asarray(part) for part in done)
    return paths.reshape(len(numbers), chains * draws, -1), r_hat, size, divergences


def _stacked(coresets: list[tuple[Rows, np.ndarray]], length: int) -> tuple[Rows, jax.Array]:
    """Return rows and weights of several coresets, each padded by rows of weight zero."""

    def stack(parts: list[np.ndarray]) -> jax.Array:
        room = np.zeros((len(parts), length, *np.shape(parts[0])[1:]), np.float32)
        for lane, part in zip(room, parts, strict=True):
            lane[: len(part)] = part
        return jnp.asarray(room)

    x, weights = stack([rows.x for rows, _ in coresets]), stack([w for _, w in coresets])
    y = None if coresets[0][0].y is None else stack([rows.y for rows, _ in coresets])
    return Rows(x, y), weights
