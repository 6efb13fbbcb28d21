"""What groups of rows are worth: Shapley values by permutations, the common yardstick of data valuation.

The worth of a set of groups is the accuracy, on rows to be predicted, of the logistic regression fitted to their rows.
A group's Shapley value is what it adds to the groups before it, averaged over all orders. Here orders are drawn at
random and only the first few groups of each are looked at, as those that come later add next to nothing; groups of many
rows enter with a random part of them. What these two leave out is no chance, and standard errors say nothing of it: let
``first`` and ``most_rows`` be None for values without that error. The fits of all beginnings of an order are made
together: for a logistic regression each Newton step is two matrix products for all of them.

Reference: Ghorbani and Zou, "Data Shapley: equitable valuation of data for machine learning", ICML 2019; Manousakas and
Mascolo, "β-Cores", WSDM 2021, for the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_number
from betacores.groups import Groups, read_groups
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Array, Float, Int

# Newton steps of every fit; beginnings of an order start from zero, where the likelihood is tame.
NEWTON_STEPS = 6
# Orders computed together.
TOGETHER = 50


class Values(NamedTuple):
    """Worth of every group, its standard error, and how many orders it was estimated from."""

    values: Float[np.ndarray, " groups"]
    standard_errors: Float[np.ndarray, " groups"]
    permutations: int

    def ranking(self) -> Int[np.ndarray, " groups"]:
        """Return the groups from the most to the least worthy."""
        return np.argsort(-self.values, kind="stable")


def shapley_values(
    x: Float[np.ndarray, "rows columns"],
    y: np.ndarray,
    groups: Any,
    test: tuple[Float[np.ndarray, "others columns"], np.ndarray],
    *,
    permutations: int = 5000,
    first: int | None = 20,
    most_rows: int | None = 50,
    tolerance: float | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Values:
    """Estimate the Shapley values of groups for the accuracy of logistic regression.

    Parameters
    ----------
    x, y
        Rows of finite numbers and their labels, of two kinds.
    groups
        Which group every row belongs to: `Groups`, a label a row, or lists of row numbers.
    test
        Rows to be predicted, and their labels.
    permutations
        The most orders to draw.
    first
        How many groups of every order are looked at; None for all.
    most_rows
        Groups of more rows enter with so many of them, drawn at random; None for all.
    tolerance
        Stop when the largest standard error is no more than this.
    seed
        Same seed, same values.
    progress
        Called with the number of finished orders and their total.
    """
    check_number("permutations", permutations, at_least=1, whole=True)
    for name, value in (("first", first), ("most_rows", most_rows)):
        if value is not None:
            check_number(name, value, at_least=1, whole=True)
    if tolerance is not None:
        check_number("tolerance", tolerance, above=0)
    (x, y), (others, answers) = _checked_rows(x, y, "x", "y"), _checked_rows(*test, "test[0]", "test[1]")
    if others.shape[1] != x.shape[1]:
        raise ValueError(f"test: expected the {x.shape[1]} columns of x, got {others.shape[1]}.")
    kinds = np.unique(y)
    if len(kinds) != 2:
        raise ValueError(f"y: expected labels of two kinds, got {len(kinds)}: {kinds[:5].tolist()}.")
    unknown = answers[~np.isin(answers, kinds)]
    if unknown.size:
        raise ValueError(f"test[1]: expected the labels {kinds.tolist()}, got {unknown[0]!r}.")
    groups, _ = read_groups(groups, x, len(x))
    count = len(groups)
    looked_at = min(first or count, count)
    random = np.random.default_rng(seed)
    rows, sizes = _rows_of_groups(groups, most_rows, random)
    features = np.column_stack([x, np.ones(len(x))]).astype(np.float32)
    signs = np.where(y == kinds[1], 1, -1).astype(np.float32)
    held = np.column_stack([others, np.ones(len(others))]).astype(np.float32)
    held = held * np.where(answers == kinds[1], 1, -1).astype(np.float32)[:, None]
    table = jnp.asarray(features[rows] * signs[rows][..., None])  # (groups, most, p): rows times their sign
    present = jnp.asarray(np.arange(rows.shape[1]) < sizes[:, None], jnp.float32)
    total, squares, seen, done = np.zeros(count), np.zeros(count), np.zeros(count, int), 0
    with single_precision():
        while done < permutations:
            some = min(TOGETHER, permutations - done)
            orders = np.stack([random.permutation(count)[:looked_at] for _ in range(TOGETHER)])
            worth = np.asarray(_worth(table, present, jnp.asarray(orders), jnp.asarray(held)), np.float64)[:some]
            added = np.diff(worth, axis=1, prepend=0.5)
            # A group that was not looked at in an order added nothing there.
            for order, gain in zip(orders[:some], added, strict=True):
                total[order] += gain
                squares[order] += gain**2
                seen[order] += 1
            done += some
            if progress is not None:
                progress(done, permutations)
            if tolerance is not None and done > 2 * TOGETHER and _errors(total, squares, seen, done).max() <= tolerance:
                break
    return Values(total / done, _errors(total, squares, seen, done), done)


def random_ranking(groups: Groups, seed: int = 0) -> Int[np.ndarray, " groups"]:
    """Return the groups in a random order."""
    return np.random.default_rng(seed).permutation(len(groups))


def _checked_rows(x: Any, y: Any, table: str, labels: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of numbers and their labels, or say what is wrong with them."""
    x, y = np.asarray(x, np.float64), np.asarray(y)
    if x.ndim != 2 or not len(x):
        raise ValueError(f"{table}: expected rows and columns of numbers, got shape {x.shape}.")
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0].tolist()
        raise ValueError(f"{table}: expected finite numbers, got {x[row, column]} in row {row}, column {column}.")
    if y.shape != x.shape[:1]:
        raise ValueError(f"{labels}: expected a label for each of the {len(x)} rows, got shape {y.shape}.")
    return x, y


def _errors(total: np.ndarray, squares: np.ndarray, seen: np.ndarray, count: int) -> np.ndarray:
    """Return standard errors; none can be told of a group that was looked at less than twice."""
    errors = np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0) / count)
    return np.where(seen > 1, errors, np.inf)


def _rows_of_groups(
    groups: Groups, most: int | None, random: np.random.Generator
) -> tuple[Int[np.ndarray, "groups most"], Int[np.ndarray, " groups"]]:
    """Return the rows that every group enters with, padded, and their number."""
    sizes = np.minimum(groups.sizes, most or groups.sizes.max())
    rows = np.zeros((len(groups), int(sizes.max())), int)
    for group, size in enumerate(sizes):
        rows[group, :size] = random.permutation(groups.members(np.array([group])))[:size]
    return rows, sizes


@jax.jit
def _worth(
    table: Float[Array, "groups most p"],
    present: Float[Array, "groups most"],
    orders: Int[Array, "k first"],
    held: Float[Array, "n p"],
) -> Float[Array, "k first"]:
    """Return the accuracy of the fits to all beginnings of orders."""
    return jax.lax.map(lambda order: accuracies(table[order], present[order], held), orders)


def accuracies(
    table: Float[Array, "g most p"], present: Float[Array, "g most"], held: Float[Array, "n p"]
) -> Float[Array, " g"]:
    """Return the accuracy of the posterior modes given the first 1, 2, ... of some groups.

    Parameters
    ----------
    table, present
        Rows of the groups times their labels' signs, and which places hold a row.
    held
        Rows to be predicted, times their labels' signs.
    """
    g, most, p = table.shape
    z = table.reshape(g * most, p)
    # Beginning k has the rows of the first k groups.
    inside = jnp.repeat(jnp.tril(jnp.ones((g, g), z.dtype)), most, axis=1) * present.reshape(-1)
    products = (z[:, :, None] * z[:, None, :]).reshape(g * most, p * p)

    def newton(thetas: Float[Array, "g p"], _: None) -> tuple[Float[Array, "g p"], None]:
        margins = thetas @ z.T
        wrong = jax.nn.sigmoid(-margins)
        gradient = (inside * wrong) @ z - thetas
        curvature = ((inside * wrong * (1 - wrong)) @ products).reshape(g, p, p) + jnp.eye(p)
        return thetas + jnp.linalg.solve(curvature, gradient[..., None])[..., 0], None

    thetas, _ = jax.lax.scan(newton, jnp.zeros((g, p), z.dtype), length=NEWTON_STEPS)
    margins = held @ thetas.T
    return jnp.where(margins == 0, 0.5, margins > 0).mean(0)
