"""Parameters as people write them, a dictionary of arrays say, laid out as one vector of free numbers.

Modes, draws and Hessians are of a vector. A layout knows the parameters' shapes and constraints, turns a vector into
parameters with the log-determinant of the Jacobian, and parameters into a vector, and names every entry.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.transforms import Constraint, constraint

if TYPE_CHECKING:
    from jaxtyping import Array, Float


@dataclass(frozen=True)
class Layout:
    """Shapes, constraints and names of parameters. Make one with `layout_of` or `plain_layout`.

    It is callable, a function of the vector, and so is part of a program and no array of it.
    """

    structure: Any  # of the pytree
    names: tuple[str, ...]  # one a leaf
    shapes: tuple[tuple[int, ...], ...]
    constraints: tuple[Constraint, ...]
    own_names: tuple[str, ...] | None = None  # of the entries, where the parameters are a plain vector

    @property
    def size(self) -> int:
        """Number of free numbers."""
        return sum(self._sizes)

    @property
    def _sizes(self) -> list[int]:
        return [math.prod(kept.free_shape(shape)) for kept, shape in zip(self.constraints, self.shapes, strict=True)]

    def __call__(self, theta: Float[Array, " p"]) -> Any:
        """Return the parameters of a vector of free numbers."""
        return self.forward(theta)[0]

    def forward(self, theta: Float[Array, " p"]) -> tuple[Any, Float[Array, ""]]:
        """Return the parameters, and the log-determinant of the Jacobian."""
        leaves, total, start = [], jnp.zeros((), theta.dtype), 0
        for kept, shape, size in zip(self.constraints, self.shapes, self._sizes, strict=True):
            part = theta[start : start + size].reshape(kept.free_shape(shape))
            leaf, log_jacobian = kept.forward(part)
            leaves.append(leaf)
            total, start = total + log_jacobian, start + size
        return jax.tree.unflatten(self.structure, leaves), total

    def inverse(self, parameters: Any, what: str = "start") -> Float[np.ndarray, " p"]:
        """Return the vector of free numbers of parameters, or say what is wrong with them."""
        leaves, structure = jax.tree.flatten(parameters)
        if structure != self.structure:
            raise ValueError(f"{what}: expected parameters {self.description}, got {_listed(parameters)}.")
        parts = []
        for name, kept, shape, leaf in zip(self.names, self.constraints, self.shapes, leaves, strict=True):
            if np.shape(leaf) != shape:
                raise ValueError(f"{what}: expected {name or 'a vector'} of shape {shape}, got shape {np.shape(leaf)}.")
            free = kept.inverse(leaf)
            if not np.isfinite(free).all():
                raise ValueError(f"{what}: {name or 'the vector'} must be {_kind(kept)}, got {np.asarray(leaf)}.")
            parts.append(free.ravel())
        return np.concatenate(parts) if parts else np.zeros(0)

    def entry_names(self) -> list[str]:
        """Return the name of every free number."""
        if self.own_names is not None:
            return list(self.own_names)
        named = []
        for name, kept, shape in zip(self.names, self.constraints, self.shapes, strict=True):
            free, called = kept.free_shape(shape), kept.coordinate(name or "theta")
            if not free:
                named.append(called)
            elif not name and len(self.names) == 1:
                named += [f"theta{i}" for i in range(math.prod(free))]
            else:
                named += [f"{called}[{', '.join(map(str, at))}]" for at in np.ndindex(*free)]
        return named

    @property
    def description(self) -> str:
        """Tell a person what the parameters are."""
        if self.names == ("",):
            return f"a vector of {self.shapes[0][0]}"
        kinds = zip(self.names, self.shapes, self.constraints, strict=True)
        return "{" + ", ".join(f"{n}: {s}" + ("" if k.kind == "real" else f" {_kind(k)}") for n, s, k in kinds) + "}"


def plain_layout(dim: int, names: tuple[str, ...] | None = None, kept: Any = "real") -> Layout:
    """Return the layout of a plain vector."""
    return Layout(jax.tree.structure(0.0), ("",), ((dim,),), (constraint(kept),), names)


def layout_of(parameters: Any, constraints: Any = None) -> Layout:
    """Return the layout of parameters given as an example, or as a dictionary of shapes.

    Parameters
    ----------
    parameters
        A pytree whose leaves are arrays or numbers, of which only the shapes count, or shapes themselves: tuples of
        whole numbers. ``{"slope": (3,), "noise": ()}`` is a vector of three and a number.
    constraints
        By name of a parameter, what it keeps to; see `betacores.models.transforms`. Others are real.
    """
    paths, structure = jax.tree_util.tree_flatten_with_path(parameters, is_leaf=_is_shape)
    if not paths:
        raise ValueError(f"parameters: expected a dictionary of shapes or arrays, got {parameters!r}, which is empty.")
    names = tuple(".".join(_step(step) for step in path) for path, _ in paths)
    shapes = tuple(_shape(name, leaf) for name, (_, leaf) in zip(names, paths, strict=True))
    if constraints is None:
        constraints = {}
    if not isinstance(constraints, Mapping):
        if names != ("",):
            raise TypeError(
                f"constraints: expected a dictionary by name ({', '.join(map(repr, names))}), got {constraints!r}."
            )
        constraints = {"": constraints}
    for name in constraints:
        if name not in names:
            raise ValueError(f"constraints: there is no parameter {name!r}; there are {', '.join(map(repr, names))}.")
    kept = tuple(constraint(constraints.get(name, "real")) for name in names)
    layout = Layout(structure, names, shapes, kept)
    if layout.size < 1:
        raise ValueError(f"parameters: {layout.description} holds no numbers at all.")
    return layout


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, tuple) and all(isinstance(n, numbers.Integral) for n in leaf)


def _shape(name: str, leaf: Any) -> tuple[int, ...]:
    if _is_shape(leaf):
        return tuple(int(n) for n in leaf)
    array = np.asarray(leaf)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"parameters: expected {name!r} to be a shape or numbers, got {leaf!r}.")
    return array.shape


def _step(step: Any) -> str:
    for part in ("key", "name", "idx"):
        if hasattr(step, part):
            return str(getattr(step, part))
    return str(step)


def _kind(kept: Constraint) -> str:
    bounds = {"bounded": f" ({kept.low:g} to {kept.high:g})", "above": f" {kept.low:g}", "below": f" {kept.low:g}"}
    return kept.kind + bounds.get(kept.kind, "")


def _listed(parameters: Any) -> str:
    shapes = jax.tree.map(np.shape, parameters)
    return str(shapes)
