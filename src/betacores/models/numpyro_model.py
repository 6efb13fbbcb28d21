"""A model of rows that NumPyro describes.

It is run on a single row: the parameters are substituted, by NumPyro's own bijections from free numbers, and the
distribution of the observed site gives the log-likelihood and, by its name, the power integral. The prior is what
NumPyro's potential energy says of the same model without the observed site, the bijections' Jacobians included: priors
may depend on other parameters, group effects on their hyperparameters for example.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Response, Rows
from betacores.models.distribution_powers import log_power_integral
from betacores.models.layout import Layout, layout_of
from betacores.models.numpyro_outcomes import Drawn, check_classes, rule_for
from betacores.models.numpyro_program import Looked, Picked, Program, look_into, run, zero_rows
from betacores.models.open_model import OpenModel, checked_log_unit
from betacores.models.power_rules import Outcomes, Rule
from betacores.models.probing import check_integral, check_likelihood, first_rows
from betacores.precision import single_precision

if TYPE_CHECKING:
    from jaxtyping import Array, Float

# The start of searches is the median of so many draws of the prior.
PRIOR_DRAWS = 100


@final
class NumPyroModel(OpenModel):
    """A model of rows described in NumPyro. Make one with `from_numpyro`."""

    name: ClassVar[str] = "numpyro"

    def __init__(self, program: Program, picked: Picked, response: Response, rule: Any, unit: Any, name: str):
        self.name = str(name)  # type: ignore[misc]
        self.response = response  # type: ignore[misc]
        self.program, self.picked = program, picked
        self.wanted_rule = rule
        self.rule: Rule | None = None
        self.log_unit = checked_log_unit(unit, response)
        self.site = ""
        self.layout: Layout | None = None
        self.deterministic: Callable[[], tuple[str, ...]] | None = None
        self.start: np.ndarray | None = None
        self.columns = 0

    def bound(self, columns: list[str], labels: np.ndarray | None) -> NumPyroModel:
        """Return the model for a table of these columns, after looking into it."""
        with single_precision():
            picked = self.picked.placed(columns)
            found = look_into(self.program, picked, len(columns), self.response != "none")
            if labels is not None and self.response == "classes":
                check_classes(found, labels)
            draws = _prior_draws(self.program, picked, len(columns), self.response != "none", list(found.latents))
            layout = _layout(found, draws)
            middle = np.concatenate([np.median(draws[name], 0).ravel() for name in layout.names])
            middle = np.where(np.isfinite(middle), middle, 0.0)
            return self.replaced(
                picked=picked,
                columns=len(columns),
                site=found.site,
                layout=layout,
                deterministic=_Names(found.deterministic),
                start=middle,
                rule=rule_for(self.wanted_rule, found, Drawn(self.program, picked, layout, found.site)),
            )

    def check(self, rows: Rows) -> None:
        """Try the model on the first rows: they must be independent, and the prior the same whatever they are."""
        with single_precision():
            first = first_rows(rows, 8)
            seen = jax.vmap(self.seen)(first)
            theta = jnp.asarray(self.start, jnp.float32)
            # Compiled, since NumPyro refuses values outside of a support where it sees them, and outliers are such.
            together = jax.jit(self._observed)(theta, seen)
            alone = jax.jit(jax.vmap(lambda row: self.raw_log_likelihood(theta, self.seen(row))))(first)
            away = np.abs(np.asarray(together - alone)) / (1 + np.abs(np.asarray(alone)))
            if (away > 1e-2).any():
                row = int(np.argmax(away > 1e-2))
                raise ValueError(
                    f"model: row {row} has log-likelihood {float(together[row]):g} together with other rows and "
                    f"{float(alone[row]):g} alone. Rows must be independent given the parameters; what is computed "
                    "from all of them, a mean for example, belongs before the model."
                )
            with_rows, without = jax.jit(lambda: (self._log_prior(theta, seen), self.log_prior(theta)))()
            if not np.isclose(with_rows, without, rtol=1e-3, atol=1e-3):
                raise ValueError(
                    f"model: the prior depends on the rows (its log-density is {float(with_rows):g} with the first of "
                    f"them and {float(without):g} with zeros); it must not."
                )
            check_likelihood(self, rows)
            if self.has_integral():
                check_integral(self, rows, None)

    def parameter_count(self, columns: int) -> int:
        """Return the number of free parameters."""
        if self.layout is None:
            return self.bound([f"x{i}" for i in range(columns)], None).parameter_count(columns)
        return self.layout.size

    def parameter_names(self, columns: list[str]) -> list[str]:
        """Return names of the free parameters; ``log(sigma)`` is that of a positive ``sigma``."""
        return self.bound(columns, None).parameter_names(columns) if self.layout is None else self.layout.entry_names()

    def log_prior(self, theta: Float[Array, " p"]) -> Float[Array, ""]:
        """Return the log-density of the prior of the free parameters."""
        return self._log_prior(theta, zero_rows(self.columns, 1, self.response != "none"))

    def _log_prior(self, theta: Float[Array, " p"], table: Rows) -> Float[Array, ""]:
        from numpyro import handlers
        from numpyro.infer.util import potential_energy

        seeded = handlers.seed(self.program, jax.random.key(0))
        return -potential_energy(
            handlers.block(seeded, hide=[self.site]), (), self.picked(table), self._layout()(theta)
        )

    def raw_log_likelihood(self, theta: Float[Array, " p"], seen: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row."""
        return self._observed(theta, jax.tree.map(lambda values: values[None], seen))[0]

    def log_density(self, theta: Float[Array, " p"], seen: Rows) -> Float[Array, ""]:
        """Return the log-likelihood of one row, as the numerical rules ask for it."""
        return self.raw_log_likelihood(theta, seen)

    def has_integral(self) -> bool:
        """Tell whether there is a power integral."""
        return self.wanted_rule is not None

    def integral_and_outcomes(
        self, theta: Float[Array, " p"], seen: Rows, beta: Float[Array, ""], over: Outcomes | None = None
    ) -> tuple[Float[Array, ""], Outcomes | None]:
        """Return the power integral of one row, and the outcomes it was summed over."""
        if self.rule is not None:
            over = self.rule.fixed(self.log_density, theta, seen, beta) if over is None else over
            return self.rule.total(self.log_density, theta, seen, beta, over), over
        site = self._run(theta, jax.tree.map(lambda values: values[None], seen))[self.site]
        found = log_power_integral(site["fn"], beta)
        assert found is not None  # or there would be a rule
        return jnp.exp(found[0]), None

    def named(self, draws: Any) -> dict[str, np.ndarray]:
        """Return draws of the free parameters, one a row, as draws of the model's sites by name.

        Deterministic sites are among them, unless they belong to rows.
        """
        thetas = jnp.asarray(np.asarray(draws), jnp.result_type(float))
        lead, table = thetas.shape[:-1], zero_rows(self.columns, 1, self.response != "none")
        wanted = [*self._layout().names, *(self.deterministic() if self.deterministic else ())]

        def one(theta: Array) -> dict[str, Array]:
            sites = self._run(theta, table)
            return {name: sites[name]["value"] for name in wanted}

        found = jax.vmap(one)(thetas.reshape(-1, thetas.shape[-1]))
        return {name: np.asarray(value).reshape(*lead, *value.shape[1:]) for name, value in found.items()}

    def weighted(self, rows: Rows, weights: np.ndarray) -> Callable[[], Any]:
        """Return the NumPyro model of weighted rows, as the person wrote it: a function without arguments."""
        from numpyro.primitives import Messenger

        site, program = self.site, self.program
        seen = jax.vmap(self.seen)(jax.tree.map(jnp.asarray, rows))
        given, held = self.picked(seen), jnp.asarray(weights)

        class Weigh(Messenger):
            """Multiply the log-probability of every outcome by the weight of its row."""

            def process_message(self, message: dict[str, Any]) -> None:
                if message["type"] == "sample" and message["name"] == site:
                    scale = message["scale"]
                    message["scale"] = held if scale is None else scale * held

        def model() -> Any:
            with Weigh():
                return program(**given)

        return model

    def _observed(self, theta: Float[Array, " p"], seen: Rows) -> Float[Array, " n"]:
        site = self._run(theta, seen)[self.site]
        return site["fn"].log_prob(site["value"])

    def _run(self, theta: Float[Array, " p"], seen: Rows) -> dict[str, Any]:
        return run(self.program, self.picked, self._layout()(theta), seen)

    def _layout(self) -> Layout:
        if self.layout is None:
            raise ValueError(
                "model: its table is not known yet; model.bound(columns, None) tells it, and summarize does."
            )
        return self.layout


@dataclasses.dataclass(frozen=True)
class _Names:
    """Names as a constant of a program, which what is callable is."""

    names: tuple[str, ...]

    def __call__(self) -> tuple[str, ...]:
        return self.names


def _layout(found: Looked, draws: dict[str, np.ndarray]) -> Layout:
    from numpyro.distributions import constraints

    layout = layout_of({name: values.shape[1:] for name, values in draws.items()})
    names = []
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        support = found.latents[name]["fn"].support
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        real = any(support is one for one in (constraints.real, constraints.real_vector, constraints.real_matrix))
        called = name if real else f"log({name})" if support is constraints.positive else f"free({name})"
        entries = [f"[{', '.join(map(str, at))}]" for at in np.ndindex(*shape)] if shape else [""]
        names += [called + entry for entry in entries]
    return dataclasses.replace(layout, own_names=tuple(names))


def _prior_draws(
    program: Program, picked: Picked, columns: int, response: bool, names: list[str]
) -> dict[str, np.ndarray]:
    """Return draws of the prior's free numbers, by site."""
    from numpyro import handlers
    from numpyro.distributions import biject_to

    given = picked(zero_rows(columns, 1, response))

    def one(key: Array) -> dict[str, Array]:
        sites = handlers.trace(handlers.seed(program, key)).get_trace(**given)
        return {name: biject_to(sites[name]["fn"].support).inv(sites[name]["value"]) for name in names}

    found = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), PRIOR_DRAWS))
    return {name: np.asarray(value, np.float64) for name, value in found.items()}
