"""What is assumed of a row.

A model is a small immutable object that knows the likelihood of one row and the prior of its parameters `θ`.
Everything else in the package (β-likelihood, posteriors, constructions) is derived from it. A model must give

=======================================  ============================================================
``parameter_count(columns)``             how many parameters it has for rows of this many columns
``log_likelihood(theta, row)``           `ℓ(θ)`, the log-likelihood of one row
``log_prior(theta)``                     `log π0(θ)`, up to a constant
=======================================  ============================================================

and may give, each of which makes something possible or faster,

=======================================  ============================================================
``power_integral(theta, row, beta)``     `I = ∫ p^(1+β)`, without which only β = 0 can be used
``log_power_integral``                   its logarithm, with the same arguments, for where `I` would overflow
``log_temperature(columns, beta)``       `log c`, when `I = c` is the same for every row and θ
``log_reference(columns, beta)``         `log c`, a typical `I`, when it is not: see `betacores.divergence`
``log_likelihoods(thetas, rows)``        the matrix of `ℓ` over rows and draws at once
``quadratic(theta, rows)``               `ℓ`, its gradients and its one Hessian, if `ℓ` is quadratic in θ
                                         with the same curvature for every row
``response_derivatives(eta, y, beta)``    of a linear predictor whose scale is one: `f` and its first two derivatives,
                                         cheaper than by differentiation
``compact(rows)``                        an equivalent model and rows that cost less to evaluate again and again
``conjugate(rows, weights)``             the Gaussian posterior's natural parameters, less the prior's
``prior``                                a `GaussianPrior`, which `conjugate` needs
``clean``                                the share of clean rows, or "auto" to leave it to `summarize`, where `I`
                                         depends on a scale: see `betacores.clean_share`
``prior_mean(parameters)``               where the prior is centred, if it is not such a one
``robust_start(rows)``                   where to start the search of the mode on dirty rows
``parameter_names(columns)``             what to call the parameters
``check(rows)``                          an error, if the first rows show that the model cannot be evaluated
``restored(settings)``                   the model with what had been estimated when it was saved
``bound(columns, labels)``               the model with what it leaves to the table settled: the number of classes, say,
                                         or the place of a column it was told by name
``check_rows(x, columns)``               the same model, or one that knows what cells there are (levels, say); raises if
                                         a cell is not of the kind it describes; may be called block after block
``first_guess(columns)``                 where to begin the search of a mode when no rows have been looked at; else zero
``ordered(thetas)``                      draws with parts that can be interchanged put in a fixed order
``settled(rows)``                        the model with what it leaves to the data (units, a typical scale) taken from a
                                         sample of dirty rows
``held_for_tuning(columns)``             the model with parameters held that β is not chosen for, and their values
``told(theta)``                          what to tell a person of the mode, in a line
``escaped(thetas)``                      which parameters stand where no row counts: see `betacores.models.scaled`
=======================================  ============================================================

A model is a JAX pytree: its arrays and floats may change without recompiling, everything else
(strings, integers, flags) is part of the program.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# What a response is: nothing, a number, one of two labels, one of several, a count, a number above zero.
Response = Literal["none", "real", "binary", "classes", "count", "positive"]


FEW_COLUMNS = 64


class Rows(NamedTuple):
    """Rows of a table as the models see them; one row when the leading axis is taken off.

    NumPy arrays where rows come from, JAX arrays where they are computed with: ``x`` (rows, columns) and ``y`` (rows),
    None for models without response.
    """

    x: Any
    y: Any = None


class Model(abc.ABC):
    """A likelihood for rows and a prior for parameters. Subclasses are final and immutable."""

    name: ClassVar[str]
    response: ClassVar[Response] = "none"
    # Whether points that are no rows of the table can stand for rows: not where cells are codes, counts or above zero.
    movable: ClassVar[bool] = True
    # Whether likelihood and prior are logarithmically concave in θ: without β there is one mode, and any start will do.
    log_concave: ClassVar[bool] = False

    if TYPE_CHECKING:
        # What a model may give; `hasattr` tells.
        power_integral: Any
        log_temperature: Any
        log_likelihoods: Any
        quadratic: Any
        compact: Any
        conjugate: Any
        prior: Any
        robust_start: Any
        parameter_names: Any
        log_power_integral: Any
        log_reference: Any
        clean: Any
        prior_mean: Any
        settled: Any
        first_guess: Any
        ordered: Any
        escaped: Any
        held_for_tuning: Any
        told: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make every model a pytree, so that one compiled program serves all its settings."""
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_pytree_node(cls, cls._flatten, cls._unflatten)

    @abc.abstractmethod
    def parameter_count(self, columns: int) -> int:
        """Return how many parameters the model has for rows of this many columns."""

    @abc.abstractmethod
    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row."""

    @abc.abstractmethod
    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior, up to a constant."""

    def bound(self, columns: list[str], labels: np.ndarray | None) -> Model:
        """Return the model for a table with these columns and, for a response of labels, these values of it."""
        del columns, labels
        return self

    def check(self, rows: Rows) -> None:
        """Refuse rows at which the model cannot be evaluated, before any work."""
        del rows

    def restored(self, settings: dict[str, Any]) -> Model:
        """Return the model with what had been estimated when it was saved with these settings."""
        del settings
        return self

    def check_rows(self, x: np.ndarray, columns: list[str]) -> Model:
        """Return the model for a table with these cells, or raise if they are not of the kind it describes."""
        del x, columns
        return self

    def replaced(self, **settings: Any) -> Self:
        """Return the same model with some settings replaced, which have been checked."""
        model = object.__new__(type(self))
        vars(model).update(vars(self) | settings)
        return model

    def _flatten(self) -> tuple[tuple, tuple]:
        settings = sorted(vars(self).items())
        leaves = {k: v for k, v in settings if not _is_static(v)}
        return tuple(leaves.values()), (tuple(leaves), tuple((k, v) for k, v in settings if _is_static(v)))

    @classmethod
    def _unflatten(cls, aux: tuple, leaves: tuple) -> Model:
        model = object.__new__(cls)
        vars(model).update(zip(aux[0], leaves, strict=True))
        vars(model).update(aux[1])
        return model

    def __repr__(self) -> str:
        """Show what the model is made of."""
        settings = ", ".join(f"{k}={_brief(v)}" for k, v in sorted(vars(self).items()))
        return f"{type(self).__name__}({settings})"


class LinearPredictor(Model):
    """A model whose row enters through `η = z·θ` alone: one matrix product, then scalar functions.

    A subclass says how a response `y` is distributed given `η`; `z` is the row's covariates, followed by a one
    when ``intercept`` is true.
    """

    intercept: bool

    @abc.abstractmethod
    def response_log_likelihood(self, eta: Float[Array, "..."], y: Any) -> Float[Array, "..."]:
        """Return the log-likelihood of one response given its linear predictor."""

    def features(self, rows: Rows) -> Float[Array, "*rows p"]:
        """Return `z`: the covariates, and a one for the intercept."""
        x = self.covariates(rows.x)
        return jnp.concatenate([x, jnp.ones_like(rows.x[..., :1])], axis=-1) if self.intercept else x

    def features_down(self, rows: Rows) -> Float[Array, "p rows"]:
        """Return `z` of rows side by side, columns down: what is done element by element is faster so."""
        x = self.covariates(rows.x).T
        return jnp.concatenate([x, jnp.ones_like(x[:1])]) if self.intercept else x

    def covariates(self, x: Any) -> Any:
        """Return the columns that have coefficients: all, unless the model keeps one for itself."""
        return x

    def with_offset(self, eta: Any, x: Any) -> Any:
        """Return the linear predictor with what columns add to it without a coefficient: nothing, as a rule."""
        del x
        return eta

    def parameter_count(self, columns: int) -> int:
        """One coefficient a column, and the intercept."""
        return columns + int(self.intercept)

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Coefficients carry their column's name."""
        return [*columns, "intercept"] if self.intercept else list(columns)

    def log_likelihood(self, theta: Float[Array, " p"], row: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row."""
        return self.response_log_likelihood(self.with_offset(along(self.features(row), theta), row.x), row.y)

    def power_integral(self, theta: Float[Array, " p"], row: Rows, beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return `∫ p(ψ | x, θ)^(1+β) dψ` of one row."""
        return self.response_power_integral(self.with_offset(along(self.features(row), theta), row.x), beta)

    @abc.abstractmethod
    def response_power_integral(self, eta: Float[Array, ""], beta: Float[Array, ""]) -> Float[Array, ""]:
        """Return `∫ p(ψ | η)^(1+β) dψ`."""


def along(z: Float[Array, "*rows p"], theta: Float[Array, " p"]) -> Float[Array, "*rows"]:
    """Return `z·θ` of one row or many."""
    return z @ theta if jax.default_backend() == "cpu" else sum_over_columns(z * theta)


def sum_over_columns(values: Float[Array, "*rows p"]) -> Float[Array, "*rows"]:
    """Return the sums of rows that are short."""
    p = values.shape[-1]
    if jax.default_backend() == "cpu" or p > FEW_COLUMNS:
        return values.sum(-1)
    # Accelerators add up each short row by a whole group of threads; column by column every thread has a row.
    total = values[..., 0]
    for j in range(1, p):
        total = total + values[..., j]
    return total


def _is_static(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(one, int) for one in value)
    return isinstance(value, (str, bool, int, type(None))) or callable(value)


def _brief(value: Any) -> str:
    size = getattr(value, "size", 1)
    return f"<{np.shape(value)} array>" if size > 1 else str(value)
