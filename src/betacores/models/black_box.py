"""Any model of one's own: a log-likelihood and a log-prior in plain JAX, and what they are to be robust with."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final, get_args

import jax
import jax.numpy as jnp
import numpy as np

from betacores.checks import check_choice, check_number
from betacores.models.base import Response, Rows
from betacores.models.layout import Layout, layout_of, plain_layout
from betacores.models.open_model import OpenModel, checked_log_unit
from betacores.models.power_rules import Enumerate, MonteCarlo, Outcomes, Quadrature, Rule
from betacores.models.probing import check_function, check_integral, check_likelihood, check_prior, check_traced
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Array, Float

RULES = ("quadrature", "enumerate", "monte-carlo")


@final
class BlackBox(OpenModel):
    """A model made of two functions in plain JAX.

    Parameters
    ----------
    log_likelihood
        ``log_likelihood(params, row)``, the log-density of one row with its normalising constant. ``row.x`` is the
        vector of its columns and ``row.y`` its response, None if the model has none; ``x, y = row`` works as well. Of
        two labels ``y`` is 0.0 or 1.0 (the second in order), of several their number (a whole one, from 0).
    log_prior
        ``log_prior(params)``, the log-density of the parameters, up to a constant. Of constrained parameters it is
        that of the parameters themselves; the Jacobians are seen to.
    power_integral
        `∫ p^(1+β)` over the outcomes of one row, without which only β = 0 can be used: a function
        ``power_integral(params, row, beta)``; ``"quadrature"`` over a real response (over the row, if it has one column
        and no response); ``"enumerate"`` over labels, classes and counts; ``"monte-carlo"`` with a ``sampler``; or one
        of `Quadrature`, `Enumerate` and `MonteCarlo` with settings of your own. See `betacores.models.power_rules`.
    dim
        The number of parameters, if they are one real vector; a function of the number of columns, if it depends on it.
    parameters
        Otherwise, what they are: a pytree of shapes, ``{"slope": (3,), "noise": ()}``, or of arrays as an example, or
        a function of the number of columns that returns it.
    constraints
        By name of a parameter, ``"positive"``, ``"unit"`` (interval), ``("bounded", low, high)``, ``("above", low)``,
        ``("below", high)``, ``"ordered"`` or ``"simplex"``. See `betacores.models.transforms`.
    response
        What a response is: ``"none"`` (the model is of whole rows), ``"real"``, ``"positive"``, ``"count"``,
        ``"binary"`` or ``"classes"``.
    sampler
        ``sampler(key, params, row)`` returns an outcome of the row drawn from the model, for ``"monte-carlo"``.
    start
        Parameters to start the search of the mode from; by default zeros, 1 if positive, the middle of an interval.
    names
        Of the entries of a vector of parameters.
    unit
        What a typical density of an outcome is one over, about the spread of the clean outcomes around what is
        expected of them. By default found from the rows. See `betacores.models.open_model`.
    name
        What to call the model.

    Notes
    -----
    The functions are traced by JAX, in single precision: use `jax.numpy`, `jnp.where` in place of `if`, and no NumPy.
    They are tried before any work begins. Make a model once and use it again: every new function, a lambda as well, is
    compiled anew.
    """

    name: ClassVar[str] = "black-box"

    def __init__(
        self,
        log_likelihood: Callable[[Any, Rows], Any],
        log_prior: Callable[[Any], Any],
        power_integral: Callable | Rule | Literal["quadrature", "enumerate", "monte-carlo"] | None = None,
        *,
        dim: int | Callable[[int], int] | None = None,
        parameters: Any = None,
        constraints: Any = None,
        response: Response = "none",
        sampler: Callable | None = None,
        start: Any = None,
        names: list[str] | None = None,
        unit: float | Literal["auto"] = "auto",
        name: str = "black-box",
    ):
        check_function("log_likelihood", log_likelihood, ("params", "row"))
        check_function("log_prior", log_prior, ("params",))
        check_choice("response", response, get_args(Response))
        if (dim is None) == (parameters is None):
            raise TypeError("dim, parameters: give one of them, the number of parameters or what they are.")
        self.name = str(name)  # type: ignore[misc]
        self.response = response  # type: ignore[misc]
        self.own_likelihood = log_likelihood
        self.own_prior = log_prior
        rule, integral = _checked_rule(power_integral, response, sampler)
        self.rule, self.own_integral = rule, integral
        self.log_unit = checked_log_unit(unit, response)
        self.described = _Described(dim, parameters, constraints, None if names is None else tuple(names), start)
        self.layout: Layout | None = None
        self.start: np.ndarray | None = None
        if not self.described.by_columns:
            self._settle(self.described.layout(0))

    def _settle(self, layout: Layout) -> None:
        self.layout, self.start = layout, self.described.free_start(layout)
        with single_precision():
            spec = jax.ShapeDtypeStruct((layout.size,), jnp.float32)
            check_traced("log_prior", self.log_prior, spec, about=f"at parameters {layout.description}")
            check_prior(self.own_prior, layout, self.start)

    def bound(self, columns: list[str], labels: np.ndarray | None) -> BlackBox:
        """Return the model for a table of these columns, after trying its functions on the shapes of a row."""
        model = self.replaced()
        if model.layout is None:
            model._settle(self.described.layout(len(columns)))
        if labels is not None and isinstance(model.rule, Enumerate) and model.rule.values is None:
            model.rule = dataclasses.replace(model.rule, values=tuple(range(len(labels))))
        number = jax.ShapeDtypeStruct((), jnp.float32)
        row = Rows(jax.ShapeDtypeStruct((len(columns),), jnp.float32), None if self.response == "none" else number)
        theta = jax.ShapeDtypeStruct((model._layout().size,), jnp.float32)
        about = f"on a row of {len(columns)} columns with parameters {model._layout().description}"
        if isinstance(model.rule, Quadrature) and self.response == "none" and len(columns) != 1:
            raise ValueError(
                f"power_integral: 'quadrature' is over one real outcome, and rows have {len(columns)} columns and no "
                "response; give a function, or use 'monte-carlo'."
            )
        with single_precision():
            check_traced(
                "log_likelihood", lambda t, r: model.raw_log_likelihood(t, model.seen(r)), theta, row, about=about
            )
            if model.has_integral():
                check_traced(
                    "power_integral",
                    lambda t, r, b: model.raw_power_integral(t, model.seen(r), b),
                    *(theta, row, number),
                    about=about,
                )
        return model

    def check(self, rows: Rows) -> None:
        """Try the functions on the first rows."""
        with single_precision():
            check_likelihood(self, rows)
            if self.has_integral():
                check_integral(self, rows, self.rule)

    def parameter_count(self, columns: int) -> int:
        """Return the number of free parameters."""
        layout = self.layout or self.described.layout(columns)
        return layout.size

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Return names of the free parameters; ``log(noise)`` is that of a positive ``noise``."""
        return (self.layout or self.described.layout(len(columns))).entry_names()

    def log_density(self, params: Any, seen: Rows) -> Float[Array, ""]:
        """Return the person's log-likelihood."""
        return self.own_likelihood(params, seen)

    def raw_log_likelihood(self, theta: Float[Array, " p"], seen: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row as the person's function sees it."""
        return self.own_likelihood(self._layout()(theta), seen)

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior of the free parameters."""
        params, log_jacobian = self._layout().forward(theta)
        return self.own_prior(params) + log_jacobian

    def has_integral(self) -> bool:
        """Tell whether there is a power integral."""
        return self.rule is not None or self.own_integral is not None

    def integral_and_outcomes(
        self, theta: Float[Array, " p"], seen: Rows, beta: Float[Array, ""], over: Outcomes | None = None
    ) -> tuple[Float[Array, ""], Outcomes | None]:
        """Return the power integral of one row, and the outcomes it was summed over."""
        params = self._layout()(theta)
        if self.rule is None:
            assert self.own_integral is not None  # `has_integral` has told
            return jnp.asarray(self.own_integral(params, seen, beta)), None
        over = self.rule.fixed(self.log_density, params, seen, beta) if over is None else over
        return self.rule.total(self.log_density, params, seen, beta, over), over

    def named(self, draws: Any) -> Any:
        """Return draws of the free parameters, one a row, as draws of the parameters themselves.

        They come as the parameters do, a dictionary say, with one more axis in front.
        """
        thetas = jnp.asarray(np.asarray(draws), jnp.result_type(float))
        lead = thetas.shape[:-1]
        found = jax.vmap(self._layout())(thetas.reshape(-1, thetas.shape[-1]))
        return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*lead, *leaf.shape[1:]), found)

    def _layout(self) -> Layout:
        if self.layout is None:
            raise ValueError(
                "parameters: they depend on the number of columns, which is not known yet; model.bound(columns, None) "
                "tells it, and summarize does."
            )
        return self.layout


@dataclasses.dataclass(frozen=True, eq=False)
class _Described:
    """Parameters as they were described. It is callable, so that it is no array of a program."""

    dim: Any
    parameters: Any
    constraints: Any
    names: tuple[str, ...] | None
    start: Any

    @property
    def by_columns(self) -> bool:
        return callable(self.dim) or callable(self.parameters)

    def __call__(self, columns: int) -> Layout:
        return self.layout(columns)

    def layout(self, columns: int) -> Layout:
        """Return the layout for rows of so many columns."""
        if self.dim is None:
            described = self.parameters(columns) if callable(self.parameters) else self.parameters
            layout = layout_of(described, self.constraints)
        else:
            dim = self.dim(columns) if callable(self.dim) else self.dim
            check_number("dim", dim, at_least=1, whole=True)
            layout = plain_layout(int(dim), kept="real" if self.constraints is None else self.constraints)
        if self.names is None:
            return layout
        if len(self.names) != layout.size:
            raise ValueError(f"names: expected {layout.size}, one for every free parameter, got {len(self.names)}.")
        return dataclasses.replace(layout, own_names=tuple(map(str, self.names)))

    def free_start(self, layout: Layout) -> np.ndarray:
        """Return the free numbers to start from."""
        return np.zeros(layout.size) if self.start is None else layout.inverse(self.start)


def _checked_rule(
    given: Any, response: str, sampler: Any
) -> tuple[Rule | None, Callable[[Any, Rows, Any], Any] | None]:
    if sampler is not None and given != "monte-carlo":
        raise ValueError("sampler: it is for power_integral='monte-carlo'; leave it out, or choose that.")
    if given is None:
        return None, None
    if isinstance(given, str):
        check_choice("power_integral", given, RULES)
        if given == "monte-carlo":
            if sampler is None:
                raise ValueError("power_integral: 'monte-carlo' needs sampler=, a function of (key, params, row).")
            check_function("sampler", sampler, ("key", "params", "row"))
            given = MonteCarlo(sampler)
        else:
            given = Quadrature() if given == "quadrature" else Enumerate()
    if not isinstance(given, Rule):
        check_function("power_integral", given, ("params", "row", "beta"))
        return None, given
    if isinstance(given, Quadrature):
        if response not in ("real", "positive", "none"):
            raise ValueError(f"power_integral: 'quadrature' is over real outcomes, the response is {response!r}.")
        if given.support is None and response == "positive":
            given = dataclasses.replace(given, support=(0.0, math.inf))
    if isinstance(given, Enumerate) and given.values is None:
        if response in ("real", "positive", "none"):
            raise ValueError(
                f"power_integral: 'enumerate' is over labels, classes or counts, the response is {response!r}; choose "
                "'quadrature', or bc.models.Enumerate(values=...) with the outcomes."
            )
        if response == "binary":
            given = dataclasses.replace(given, values=(0, 1))
    return given, None
