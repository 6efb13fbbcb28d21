"""A person's functions, tried before any work: every mistake is told in the person's terms.

What does not depend on the rows' numbers is told from shapes alone, without computing anything: the number of
arguments, code that JAX cannot trace or differentiate, results that are no single number. What does is told from the
first rows: log-likelihoods that are no numbers, densities that do not integrate to one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from betacores.models.base import Rows

if TYPE_CHECKING:
    from jaxtyping import Float

# So many rows are tried.
PROBED_ROWS = 32
# By so much may the probabilities of all outcomes differ from one in sum, and a power integral be off.
NORMALISED, ACCURATE = 2e-3, 2e-2
PROBE_BETA = 0.5


def check_function(name: str, function: Any, arguments: tuple[str, ...]) -> None:
    """Refuse what is no function, or one of other arguments."""
    expected = f"a function of ({', '.join(arguments)})"
    if not callable(function):
        raise TypeError(f"{name}: expected {expected}, got {function!r}.")
    try:
        hash(function)
    except TypeError:
        raise TypeError(
            f"{name}: expected a function that can be hashed, got {function!r}; JAX keeps compiled programs by it. "
            "Make the object's class a frozen dataclass, or pass a plain function."
        ) from None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise TypeError(f"{name}: expected {expected}, got one of {signature}.") from None


def check_traced(name: str, function: Callable, *given: Any, about: str) -> None:
    """Trace a function of free parameters, twice differentiated, and refuse what gives no single real number."""
    result = _traced(name, lambda: jax.eval_shape(function, *given), about)
    leaves = jax.tree.leaves(result)
    if len(leaves) != 1 or result is not leaves[0] or not hasattr(result, "shape"):
        raise TypeError(f"{name}: expected one number, got {_kind(result)} {about}.")
    if result.shape != ():
        hint = " Take the sum of its entries, if they are independent." if name == "log_likelihood" else ""
        raise ValueError(f"{name}: expected one number, got an array of shape {result.shape} {about}.{hint}")
    if not jnp.issubdtype(result.dtype, jnp.floating):
        raise TypeError(f"{name}: expected a real number, got one of type {result.dtype} {about}.")
    _traced(name, lambda: jax.eval_shape(jax.hessian(function), *given), f"differentiated, {about}")


def _traced(name: str, trace: Callable[[], Any], about: str) -> Any:
    try:
        return trace()
    except jax.errors.TracerArrayConversionError as error:
        raise TypeError(
            f"{name}: it uses NumPy or SciPy on its arguments, which JAX cannot trace; use jax.numpy and jax.scipy."
        ) from error
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerBoolConversionError) as error:
        raise TypeError(
            f"{name}: it asks for the value of a traced argument (if, while, float(), int(), bool() or a shape made of "
            "it), which JAX does not know yet; use jnp.where, jax.lax.cond and arrays."
        ) from error
    except jax.errors.TracerIntegerConversionError as error:
        raise TypeError(
            f"{name}: it uses a traced argument as an index of a list or as a shape; use a jnp array, and whole "
            "numbers that are known."
        ) from error
    except Exception as error:
        raise (
            type(error)(f"{name}: it failed {about}: {error}")
            if type(error) in _PLAIN
            else ValueError(f"{name}: it failed {about}: {type(error).__name__}: {error}")
        ) from error


# Their message is their only argument.
_PLAIN = (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError, NotImplementedError)


def check_prior(log_prior: Callable, layout: Any, start: Float[np.ndarray, " p"]) -> None:
    """Refuse a prior that is not finite where the search starts, or does not depend on a parameter without bounds."""
    rng = np.random.default_rng(0)
    points = [start, *(start + 0.5 * rng.normal(size=(3, len(start))))]
    values, slopes = zip(*(_prior_at(log_prior, layout, at) for at in points), strict=True)
    if not np.isfinite(values[0]):
        shown = jax.tree.map(lambda leaf: np.asarray(leaf).round(4).tolist(), layout(jnp.asarray(start, jnp.float32)))
        raise ValueError(f"log_prior: expected a finite number, got {values[0]} at {shown}; pass another start=.")
    for place, (name, kept) in enumerate(zip(layout.names, layout.constraints, strict=True)):
        seen = np.stack([np.abs(slope[place]).reshape(-1) for slope in slopes])
        if not np.isfinite(seen[0]).all():
            raise ValueError(f"log_prior: its derivative by {name or 'the parameters'} is not finite at the start.")
        ignored = ~(seen > 0).any(0)
        if ignored.any() and not kept.proper_when_flat:
            where = "" if seen.shape[1] == 1 else f" (entry {int(ignored.argmax())})"
            raise ValueError(
                f"log_prior: it does not depend on {name or 'the parameters'}{where}, so that the prior is flat and "
                "cannot be normalised; give every parameter a prior, however wide."
            )


def _prior_at(log_prior: Callable, layout: Any, theta: np.ndarray) -> tuple[float, list[np.ndarray]]:
    params = layout(jnp.asarray(theta, jnp.float32))
    value, slope = jax.value_and_grad(log_prior)(params)
    return float(value), [np.asarray(leaf) for leaf in jax.tree.leaves(slope)]


def check_likelihood(model: Any, rows: Rows) -> None:
    """Refuse a log-likelihood that is no number at the first rows, or has no gradient there."""
    first = first_rows(rows)
    theta = jnp.asarray(model.start, jnp.float32)

    def one(theta: Any, row: Rows) -> Any:
        return model.raw_log_likelihood(theta, model.seen(row))

    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(one), (None, 0)))(theta, first)
    values, slopes = np.asarray(values), np.asarray(slopes)
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        raise ValueError(f"log_likelihood: it is {values[wrong][0]} at {_told(model, first, int(wrong.argmax()))}.")
    if (values == -np.inf).all():
        raise ValueError(
            f"log_likelihood: it is -inf at {_told(model, first, 0)} and at all other rows that were tried; the "
            "parameters to start from, start=, must make some rows possible."
        )
    wrong = ~np.isfinite(slopes).all(1) & (values > -1e10)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"log_likelihood: its gradient is not finite at {_told(model, first, row)}, where it is {values[row]:g}; "
            "mind square roots and logarithms of zero, and jnp.where around them."
        )


def check_integral(model: Any, rows: Rows, rule: Any = None) -> None:
    """Refuse a power integral that is none: at β = 0 the probabilities of all outcomes must sum to one."""
    first = first_rows(rows, 8)
    theta = jnp.asarray(model.start, jnp.float32)

    def totals(theta: Any, row: Rows) -> tuple[Any, Any]:
        seen = model.seen(row)
        return tuple(model.raw_power_integral(theta, seen, jnp.float32(beta)) for beta in (0.0, PROBE_BETA))

    at_zero, powers = (np.asarray(v) for v in jax.jit(jax.vmap(totals, (None, 0)))(theta, first))
    wrong = ~(np.isfinite(powers) & (powers > 0))
    if wrong.all():
        row = int(wrong.argmax())
        raise ValueError(
            f"power_integral: expected a positive number, got {powers[row]} for β = {PROBE_BETA:g} at "
            f"{_told(model, first, row)}."
        )
    wrong = ~wrong & ~(np.abs(at_zero - 1) <= NORMALISED)
    # At a wild row single precision may fail; a constant that is missing is missing everywhere.
    if 2 * wrong.sum() > len(wrong):
        row = int(wrong.argmax())
        blame = (
            "it must be ∫ p^(1+β) over all outcomes"
            if rule is None
            else "log_likelihood lacks its normalising constant, or the rule misses some of the outcomes (see "
            "bc.models.Quadrature, Enumerate and MonteCarlo for its settings)"
        )
        raise ValueError(
            f"power_integral: for β = 0 it must be 1, the sum of all probabilities, and is {at_zero[row]:.4g} at "
            f"{_told(model, first, row)}; {blame}."
        )
    if rule is not None:
        check_accuracy(model, first, rule, theta)


def check_accuracy(model: Any, first: Rows, rule: Any, theta: Any) -> None:
    """Refuse a rule whose own estimate of its error is large."""

    def error(row: Rows) -> Any:
        return rule.error(model.log_density, model.layout(theta), model.seen(row), jnp.float32(PROBE_BETA))

    errors = np.nan_to_num(np.asarray(jax.jit(jax.vmap(error))(first)), nan=np.inf)
    row = int(np.argsort(errors)[len(errors) // 2])
    if not errors[row] <= ACCURATE:
        raise ValueError(
            f"power_integral: {type(rule).__name__} is off by about {errors[row]:.1%} at {_told(model, first, row)}; "
            "give it more points or draws, or tell it where the outcomes are."
        )


def first_rows(rows: Rows, most: int = PROBED_ROWS) -> Rows:
    """Return the first rows as device arrays."""
    return jax.tree.map(lambda values: jnp.asarray(np.asarray(values[:most]), jnp.float32), rows)


def _told(model: Any, rows: Rows, row: int) -> str:
    """Describe a row as the person's function saw it."""
    seen = model.seen(jax.tree.map(lambda values: values[row], rows))
    cells = ", ".join(f"{v:g}" for v in np.asarray(seen.x)[:4].tolist())
    more = ", ..." if np.size(seen.x) > 4 else ""
    return f"row {row}, x = [{cells}{more}]" + ("" if seen.y is None else f", y = {float(seen.y):g}")


def _kind(result: Any) -> str:
    return "None" if result is None else f"a {type(result).__name__}"
