"""Neural linear regression on a coreset that grows batch by batch.

Model: `y = θ·z(x) + ε`, `ε ~ N(0, σ²)`, with a network's last hidden layer as `z`, and a Gaussian prior of `θ`.

Update: train the network for a round on the rows of the coreset; on its basis, let one more batch enter. At the end the
posterior of `θ` is that of the coreset's weighted rows, in closed form, and predictions are Gaussian. Several networks
may be trained side by side; batches enter on the basis of the first, and predictions are averaged. Pursuit averages
earlier rounds too, of each of which one network is kept, by turns, until the coreset has doubled since: each round
AdaGrad starts anew and ends elsewhere, and rows that have entered since then are new to the earlier network, so that
its last layer learns from them what it is worth.

Reference: Manousakas and Mascolo, "β-Cores", WSDM 2021, on neural linear regression. The network's loss is the squared
error of a linear head. On averaging rounds: Huang and others, "Snapshot ensembles: train 1, get M for free", ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_choice, check_number, check_rows, check_seed
from betacores.cores import linear_algebra_in_place
from betacores.groups import Groups
from betacores.inputs import encode_rows
from betacores.models import LinearRegression
from betacores.models.base import Rows
from betacores.neural.cleansing import Cleansing
from betacores.neural.network import Network, basis, moments_of
from betacores.neural.prediction import Member, NeuralFit
from betacores.neural.selection import Basis, Chooser, Chosen, Incremental, Uniform
from betacores.neural.training import Training, training_round
from betacores.neural.weighting import standing_for_all
from betacores.posteriors.conjugate import conjugate
from betacores.posteriors.weighted import weighted_posterior
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Float, Int

METHODS = ("pursuit", "beta-cores", "sparse-vi", "uniform")
ALGORITHM_1 = ("draws", "steps", "batch_optimise", "learning_rate")
DEFAULT_BETA = 0.5
DEFAULT_TRAINING = Training()
# By default the coreset begins with two batches of forty, and grows to half of the rows.
BATCHES, INITIAL_BATCHES, SMALLEST_BATCH, LARGEST_BATCH = 40, 2, 10, 1000
# Networks that pursuit averages; the published methods have one.
NETWORKS = 5
# Pursuit averages networks of earlier rounds until the coreset has grown to so many times its size.
OUTGROWN = 2.0


def fit_neural_linear(
    x: Float[np.ndarray, "rows columns"],
    y: Float[np.ndarray, " rows"],
    *,
    method: str = "pursuit",
    batches: Groups | None = None,
    batch_size: int | None = None,
    initial: int | Int[np.ndarray, " i"] | None = None,
    rounds: int | None = None,
    hidden: int | None = None,
    networks: int | None = None,
    training: Training = DEFAULT_TRAINING,
    noise: float | None = None,
    beta: float | None = None,
    guard: Literal["auto"] | None = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    record: Callable[[int, NeuralFit], None] | None = None,
    **settings: Any,
) -> NeuralFit:
    """Fit a network and the Bayesian last layer on it to a coreset of batches.

    Parameters
    ----------
    x, y
        Covariates and responses, finite, and in units of their spread (the network sees no further than 30 of them).
    method
        How batches are chosen: ``"pursuit"`` leaves dirty rows out; ``"beta-cores"`` and ``"sparse-vi"`` are the
        published scheme, with and without β; ``"uniform"`` takes them at random.
    batches
        Which batch every row belongs to; by default rows are dealt out at random.
    batch_size
        Rows of a batch, if they are dealt out.
    initial
        Rows to begin with, or how many of them to draw at random. They are taken out of their batches.
    rounds
        How many batches may enter.
    hidden
        Units of each hidden layer.
    networks
        How many are trained from different beginnings, and averaged: 5 for pursuit if not given, else one. Pursuit
        averages them with one of each earlier round in which the coreset had at least half as many rows.
    training
        How the network is trained in every round.
    noise
        Standard deviation of clean responses around the prediction; estimated robustly if not given.
    beta
        Of beta-cores, and only of it; 0.5 if not given.
    guard
        Whether pursuit models the covariates to tell rows with absurd ones.
    seed
        Same seed, same input, same fit.
    progress
        Called with the number of finished rounds and their total.
    record
        Called after every round, the first on the initial rows alone, with its number and the fit so far.
    **settings
        Of Algorithm 1: ``draws``, ``steps``, ``batch_optimise``, ``learning_rate``.
    """
    check_choice("method", method, METHODS)
    check_seed(seed)
    x, y = _table(x, y)
    count, columns = x.shape
    _check_numbers(batch_size=batch_size, hidden=hidden, networks=networks, noise=noise, beta=beta, training=training)
    if guard is not None:
        check_choice("guard", guard, ("auto",))
    if beta is not None and method != "beta-cores":
        raise ValueError(f"beta: the method {method!r} has no use for it; leave it out, or choose method='beta-cores'.")
    unknown = set(settings) - (set(ALGORITHM_1) if method in ("beta-cores", "sparse-vi") else set())
    if unknown:
        name = min(unknown)
        raise TypeError(f"{name}: it is no setting of the method {method!r}.")
    batch_size = batch_size or int(np.clip(-(-count // BATCHES), SMALLEST_BATCH, LARGEST_BATCH))
    keys = jax.random.split(jax.random.key(seed), 5)
    dealt = _batches(count, batches, batch_size, initial, np.random.default_rng(seed))
    most = len(dealt) - 1
    rounds = max((len(dealt) - INITIAL_BATCHES) // 2, 1) if rounds is None else rounds
    check_number("rounds", rounds, at_least=0, whole=True)
    rounds = min(rounds, most)
    hidden = hidden or int(np.clip(2 * columns, 30, 100))
    with single_precision(), linear_algebra_in_place():
        rows = Rows(jnp.asarray(x), jnp.asarray(y))
        chooser = _chooser(method, x, y, dealt, noise, beta, guard == "auto", keys[0], settings)
        now = chooser.first()
        # The first has the keys it would have alone.
        others = jax.random.split(keys[4], (networks or (NETWORKS if method == "pursuit" else 1)) - 1)
        seeds = [(keys[1], keys[3]), *(tuple(jax.random.split(key)) for key in others)]
        trained = [Network(columns, hidden, key) for key, _ in seeds]
        fit = on = None
        earlier: list[tuple[int, Network]] = []
        for number in range(rounds + 1):
            if on is not None:
                now = chooser.next(on, now, jax.random.fold_in(keys[2], number))
            trained = [
                training_round(network, rows, now.rows, now.weights, jax.random.fold_in(key, number), training)
                for network, (_, key) in zip(trained, seeds, strict=True)
            ]
            earlier = [(size, network) for size, network in earlier if OUTGROWN * size >= len(now.rows)]
            averaged = [*trained, *(network for _, network in earlier)]
            members, on = _on_last_layers(averaged, len(trained), rows, y, now)
            if method == "pursuit":
                earlier.append((len(now.rows), trained[number % len(trained)]))
            fit = NeuralFit(
                members=members,
                noise=now.noise,
                indices=now.rows[now.weights > 0],
                weights=now.weights[now.weights > 0],
                batches=[dealt.labels[code] for code in now.batches[1:]],
                scores=getattr(chooser, "scores", None),
                trust=getattr(chooser, "trust", None),
            )
            if record is not None:
                record(number, fit)
            if progress is not None:
                progress(number, rounds)
        assert fit is not None
        return fit


def _table(x: Any, y: Any) -> tuple[Float[np.ndarray, "rows columns"], Float[np.ndarray, " rows"]]:
    """Return covariates and responses as the computation takes them, or say what is wrong."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if x.ndim != 2 or not x.size:
        raise ValueError(f"x: expected rows and columns of numbers, got shape {x.shape}.")
    if y.shape != x.shape[:1]:
        raise ValueError(f"y: expected a response for each of the {len(x)} rows, got shape {y.shape}.")
    for name, values in (("x", x), ("y", y)):
        if not np.isfinite(values).all():
            row = np.argwhere(~np.isfinite(values))[0].tolist()
            raise ValueError(f"{name}: expected finite numbers, got {values[tuple(row)]} in row {row[0]}.")
    rows = encode_rows(x, y, None)
    return rows.x, rows.y


def _check_numbers(**given: Any) -> None:
    for name in ("batch_size", "hidden", "networks"):
        if given[name] is not None:
            check_number(name, given[name], at_least=1, whole=True)
    if given["noise"] is not None:
        check_number("noise", given["noise"], above=0)
    if given["beta"] is not None:
        check_number("beta", given["beta"], at_least=0)
    for name, value in given["training"]._asdict().items():
        counted = name in ("steps", "minibatch")
        try:
            check_number(name, value, at_least=int(counted), whole=counted)
        except (TypeError, ValueError) as error:
            raise type(error)(f"training: {error}") from None


def _chooser(
    method: str,
    x: np.ndarray,
    y: np.ndarray,
    batches: Groups,
    noise: float | None,
    beta: float | None,
    guarded: bool,
    key: jax.Array,
    settings: dict[str, Any],
) -> Chooser:
    if method == "uniform":
        return Uniform(y, batches, noise, key)
    if method == "pursuit":
        return Cleansing(x, y, batches, noise, guarded, key)
    used = 0.0 if method == "sparse-vi" else DEFAULT_BETA if beta is None else beta
    return Incremental(y, batches, noise, beta=used, **settings)


def _batches(
    count: int,
    batches: Groups | None,
    batch_size: int,
    initial: Any,
    random: np.random.Generator,
) -> Groups:
    """Return the batches after the initial one, which comes first; those it leaves nothing of are no more."""
    order = random.permutation(count)
    if batches is not None and len(batches.codes) != count:
        raise ValueError(f"batches: expected the batch of each of the {count} rows, got {len(batches.codes)}.")
    if initial is None:
        initial = min(INITIAL_BATCHES * batch_size, max(count // 2, 1))
    if np.ndim(initial) == 0:
        initial = order[: check_number("initial", initial, at_least=1, whole=True)]
    else:
        initial = check_rows("initial", initial, count)
        if not len(initial):
            raise ValueError("initial: the coreset must begin with a row at least, got none.")
    first = np.zeros(count, bool)
    first[initial] = True
    if batches is None:
        codes = np.empty(count, int)
        rest = order[~first[order]]
        codes[rest] = np.arange(len(rest)) // batch_size
        labels: list[Any] = list(range(-(-len(rest) // batch_size)))
    else:
        codes, labels = batches.codes.copy(), batches.labels
    left, codes[~first] = np.unique(codes[~first], return_inverse=True)
    codes[~first] += 1
    codes[first] = 0
    return Groups([None, *(labels[code] for code in left)], codes)


def _spread(now: Chosen, count: int) -> jax.Array:
    """Return the weights of the coreset's rows as weights of all rows."""
    weights = np.zeros(count, np.float32)
    weights[now.rows] = now.weights
    return jnp.asarray(weights if weights.any() else np.ones_like(weights))


def _on_last_layers(
    networks: list[Network], trained: int, rows: Rows, y: Float[np.ndarray, " n"], now: Chosen
) -> tuple[tuple[Member, ...], Basis]:
    """Return networks with the posteriors of their last layers, the basis of the first, and what the newest predict.

    These predictions judge rows, and come from the coreset's rows alone: weights with which it stands for all that is
    believed would confirm what was believed wrongly.
    """
    model, spread = LinearRegression(noise=now.noise), _spread(now, len(y))
    # Of fewer rows than parameters there is nothing between which to choose.
    few = len(now.rows) <= networks[0].head.weight.shape[1] + 1
    believed = None if few or now.believed is None or not now.believed.any() else now.believed
    members, bases, predicted = [], [], []
    for place, network in enumerate(networks):
        moments = moments_of(network, rows.x, spread)
        on_device = basis(network, moments, rows.x)
        z, weights = np.asarray(on_device), now.weights
        held = Rows(z[now.rows], y[now.rows])
        if place < trained or believed is None:
            last_layer, _ = weighted_posterior(model, held, weights, None)
            bases.append(z)
            predicted.append(z @ np.asarray(last_layer.mean)[:-1] + float(last_layer.mean[-1]))
        if believed is not None:
            everyone = _posterior(model, Rows(on_device, rows.y), jnp.asarray(believed, jnp.float32))
            weights = standing_for_all(held.x, held.y, now.noise, everyone, int(believed.sum()))
            last_layer, _ = weighted_posterior(model, held, weights, None)
        members.append(Member(network, moments, last_layer, weights[now.weights > 0]))
    predicted = predicted[:trained]
    return tuple(members), Basis(bases[0], predicted[0] if trained == 1 else np.mean(predicted, axis=0))


_posterior = jax.jit(conjugate)
