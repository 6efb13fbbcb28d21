"""A NumPyro model looked into: what its arguments get of a table, which sites are parameters, and which is the row.

The model is run under NumPyro's handlers on a table of zeros. Sample sites that are not observed are the parameters,
and must not belong to rows: run on five and on six rows, they have the same shapes, and none is in the plate of the
rows. One site is observed, once a row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows

# Models are looked into with tables of so many rows; numbers that are hardly those of anything else.
FEW, MORE = 5, 6


@dataclass(frozen=True, eq=False)
class Program:
    """A person's NumPyro model with the arguments that are no data. It is callable, as the model is."""

    model: Callable[..., Any]
    constants: Mapping[str, Any]
    response_arg: str | None

    def __call__(self, **data: Any) -> Any:
        """Run the model."""
        return self.model(**data, **self.constants)


@dataclass(frozen=True)
class Picked:
    """Which columns every argument gets: their names or numbers, or all of them.

    It is callable, a function of rows, so that it is part of a program and no array of it.
    """

    arguments: tuple[tuple[str, Any], ...]  # a name, and None for all, a name or number, or a tuple of them
    integers: frozenset[str]
    response_arg: str | None

    def placed(self, columns: list[str]) -> Picked:
        """Return the same with columns by number."""
        return Picked(
            tuple((name, _places(name, columns, wanted)) for name, wanted in self.arguments),
            self.integers,
            self.response_arg,
        )

    @property
    def width(self) -> int | None:
        """How many columns a table must have for all numbers to exist; None if columns are asked for by name."""
        asked = [one for _, wanted in self.arguments for one in (wanted if isinstance(wanted, tuple) else (wanted,))]
        if any(isinstance(one, str) for one in asked):
            return None
        return max((one + 1 for one in asked if one is not None), default=0)

    def __call__(self, rows: Rows) -> dict[str, Any]:
        """Return the arguments of the model for a table of rows."""
        given = {}
        for name, wanted in self.arguments:
            part = rows.x if wanted is None else rows.x[:, np.asarray(wanted)]
            given[name] = jnp.round(part).astype(jnp.int32) if name in self.integers else part
        if self.response_arg is not None:
            y = rows.y
            given[self.response_arg] = jnp.round(y).astype(jnp.int32) if self.response_arg in self.integers else y
        return given


@dataclass(frozen=True, eq=False)
class Looked:
    """What was found in a model."""

    site: str  # that is observed, once a row
    distribution: Any
    latents: dict[str, Any]  # sites by name
    deterministic: tuple[str, ...]  # that do not belong to rows


def picked_arguments(
    model: Callable, data_args: Any, response_arg: str | None, constants: Mapping[str, Any], integers: Any
) -> Picked:
    """Return what every argument of a model gets of a table, or say what is missing."""
    try:
        arguments = inspect.signature(model).parameters
    except (TypeError, ValueError):
        raise TypeError(f"model: expected a NumPyro model, a Python function, got {model!r}.") from None
    if any(a.kind in (a.VAR_POSITIONAL, a.POSITIONAL_ONLY) for a in arguments.values()):
        raise TypeError(f"model: its arguments must have names, which {inspect.signature(model)} do not all have.")
    known = [name for name, a in arguments.items() if a.kind is not a.VAR_KEYWORD]
    response = response_arg if response_arg in known else None
    others = [name for name in known if name != response and name not in constants]
    for name in constants:
        if name not in known:
            raise ValueError(f"constants: the model has no argument {name!r}; it has {', '.join(map(repr, known))}.")
    if data_args is None:
        required = [name for name in others if arguments[name].default is inspect.Parameter.empty]
        if len(required) != 1:
            listed = ", ".join(map(repr, required)) or "none"
            raise ValueError(
                "data_args: which columns does each argument get? Without it the model's one argument beside the "
                f"response and constants gets all columns, and here there are {listed}; pass "
                "data_args={name: columns}."
            )
        data_args = {required[0]: None}
    if not isinstance(data_args, Mapping) or not data_args:
        raise TypeError(f"data_args: expected a dictionary from arguments to columns, got {data_args!r}.")
    for name in data_args:
        if name not in others:
            hint = " It is the response's." if name == response else ""
            raise ValueError(
                f"data_args: the model has no argument {name!r} for columns; it has "
                f"{', '.join(map(repr, others))}.{hint}"
            )
    missing = [name for name in others if name not in data_args and arguments[name].default is inspect.Parameter.empty]
    if missing:
        raise ValueError(
            f"data_args: nothing is said of the model's argument {missing[0]!r}; give it columns, or a value in "
            "constants."
        )
    whole = frozenset([integers] if isinstance(integers, str) else integers)
    for name in whole:
        if name not in data_args and name != response:
            raise ValueError(f"integers: {name!r} is no argument that gets data.")
    fields = tuple(
        (name, tuple(wanted) if isinstance(wanted, (list, tuple, range, np.ndarray)) else wanted)
        for name, wanted in data_args.items()
    )
    return Picked(fields, whole, response)


def _places(name: str, columns: list[str], wanted: Any) -> Any:
    if wanted is None:
        return None
    if isinstance(wanted, tuple):
        return tuple(_places(name, columns, one) for one in wanted)
    if isinstance(wanted, str):
        if wanted not in columns:
            raise ValueError(
                f"data_args: {name!r} gets column {wanted!r}, and data has none of that name; it has "
                f"{', '.join(map(repr, columns[:10]))}."
            )
        return columns.index(wanted)
    if not 0 <= int(wanted) < len(columns):
        raise ValueError(f"data_args: {name!r} gets column number {wanted}, and data has {len(columns)} columns.")
    return int(wanted)


def look_into(program: Program, picked: Picked, columns: int, response: bool) -> Looked:
    """Return what there is in a model, or say why it is not one of rows that are independent given parameters."""
    found = [_sites(program, picked, columns, rows, response) for rows in (FEW, MORE)]
    few, more = found
    for name, site in few.items():
        if site["type"] == "param":
            raise ValueError(f"model: {name!r} is a param, which is optimised; make it a sample site with a prior.")
        if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
            raise ValueError(
                f"model: the plate {name!r} takes {site['args'][1]} of {site['args'][0]} rows at random; leave out "
                "subsample_size, since coresets do better than that."
            )
    # Factors are observed sites as well, of no distribution.
    observed = {n: s for n, s in few.items() if s["type"] == "sample" and s["is_observed"] and not _is_factor(s)}
    for name, site in few.items():
        if site["type"] == "sample" and _is_factor(site) and np.shape(site["fn"].log_factor) != ():
            raise ValueError(
                f"model: the factor {name!r} is not a single number; a factor may be part of the prior, and the "
                "likelihood of a row is one observed site. For a likelihood of your own see bc.models.BlackBox."
            )
    if len(observed) != 1:
        listed = ", ".join(map(repr, observed)) or "none"
        remedy = (
            f"hand the argument {picked.response_arg!r} on to obs= of one of them"
            if not observed
            else "put them into one distribution, with to_event(1) for several outcomes of a row"
        )
        raise ValueError(f"model: expected one observed site, the outcome of a row, and found {listed}; {remedy}.")
    ((site, about),) = observed.items()
    plate = _rows_plate(site, about, more[site])
    if about["scale"] is not None and np.any(np.asarray(about["scale"]) != 1):
        raise ValueError(f"model: the site {site!r} is scaled; leave that to sample_weight, which counts rows.")
    latents = {n: s for n, s in few.items() if s["type"] == "sample" and not s["is_observed"]}
    if not latents:
        raise ValueError("model: it has no sample site that is not observed, so that there are no parameters to find.")
    for name, latent in latents.items():
        local = plate is not None and any(frame.name == plate for frame in latent["cond_indep_stack"])
        if local or name not in more or np.shape(latent["value"]) != np.shape(more[name]["value"]):
            raise ValueError(
                f"model: the site {name!r} has a value for every row. Parameters of single rows cannot be summarised; "
                "integrate it out of the likelihood, or let rows share it by group."
            )
        if latent["fn"].support.is_discrete:
            raise ValueError(f"model: the site {name!r} is discrete; sum it out of the likelihood.")
    deterministic = tuple(
        name
        for name, one in few.items()
        if one["type"] == "deterministic"
        and name in more
        and np.shape(one["value"]) == np.shape(more[name]["value"])
        and not any(frame.name == plate for frame in one.get("cond_indep_stack", ()))
    )
    return Looked(site, about["fn"], latents, deterministic)


def zero_rows(columns: int, rows: int, response: bool) -> Rows:
    """Return a table of zeros."""
    return Rows(jnp.zeros((rows, columns)), jnp.zeros(rows) if response else None)


def run(program: Program, picked: Picked, free: dict[str, Any], table: Rows, key: Any = None) -> dict[str, Any]:
    """Return the sites of a model, run on rows with the parameters of free numbers by site."""
    from numpyro import handlers
    from numpyro.distributions import biject_to

    def value(site: dict[str, Any]) -> Any:
        if site["type"] != "sample" or site["name"] not in free:
            return None
        return biject_to(site["fn"].support)(free[site["name"]])

    seeded = handlers.seed(program, jax.random.key(0) if key is None else key)
    return handlers.trace(handlers.substitute(seeded, substitute_fn=value)).get_trace(**picked(table))


def _sites(program: Program, picked: Picked, columns: int, rows: int, response: bool) -> dict[str, Any]:
    from numpyro import handlers

    seeded = handlers.seed(program, jax.random.key(0))
    given = picked(zero_rows(columns, rows, response))
    try:
        return handlers.trace(seeded).get_trace(**given)
    except Exception as error:
        shapes = ", ".join(f"{name}: {tuple(value.shape)}" for name, value in given.items())
        hint = ""
        if "integer" in str(error).lower() and isinstance(error, (TypeError, IndexError)):
            hint = " Arguments that are used as indices, groups for example, are named in integers=."
        raise ValueError(
            f"model: it failed on a table of {rows} rows ({shapes}): {type(error).__name__}: {error}{hint}"
        ) from error


def _is_factor(site: dict[str, Any]) -> bool:
    return type(site["fn"]).__name__ == "Unit"


def _rows_plate(site: str, few: dict[str, Any], more: dict[str, Any]) -> str | None:
    """Return the name of the plate that the outcomes of rows are in, None if there is none, or refuse the model."""
    frames = few["cond_indep_stack"]
    if len(frames) > 1:
        listed = ", ".join(repr(frame.name) for frame in frames)
        raise ValueError(
            f"model: the observed site {site!r} is in {len(frames)} plates ({listed}); rows are independent in one. "
            "Put the outcomes of a row into one distribution with to_event(1), or make a row of every outcome."
        )
    if frames and (frames[0].size, more["cond_indep_stack"][0].size) != (FEW, MORE):
        raise ValueError(
            f"model: the plate {frames[0].name!r} has size {frames[0].size} whatever the rows are; make it that of the "
            "data, x.shape[0], since the model is run on some rows of the table."
        )
    batches = tuple(_batch(one["fn"], one["value"]) for one in (few, more))
    if batches != ((FEW,), (MORE,)):
        raise ValueError(
            f"model: the observed site {site!r} has log-probabilities of shape {batches[0]} for {FEW} rows, where one "
            f"a row, ({FEW},), is expected; mind the shapes of its distribution, and to_event(1) for outcomes of a row."
        )
    return frames[0].name if frames else None


def _batch(distribution: Any, value: Any) -> tuple[int, ...]:
    shape = np.shape(value)
    return np.broadcast_shapes(distribution.batch_shape, shape[: len(shape) - distribution.event_dim])
