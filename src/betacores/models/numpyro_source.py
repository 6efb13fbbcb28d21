"""The way in for models written in NumPyro, of rows that are independent given the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from betacores.checks import check_choice
from betacores.models.base import Response
from betacores.models.numpyro_model import NumPyroModel
from betacores.models.numpyro_outcomes import kind_of
from betacores.models.numpyro_program import Picked, Program, look_into, picked_arguments
from betacores.models.power_rules import Rule
from betacores.precision import single_precision

# Tables of so many columns are tried, until the model runs, to learn what its response is.
MOST_COLUMNS = 32


def from_numpyro(
    model: Callable[..., Any],
    data_args: Mapping[str, Any] | None = None,
    *,
    response_arg: str | None = "y",
    constants: Mapping[str, Any] | None = None,
    integers: Any = (),
    response: Response | None = None,
    power_integral: Rule | Literal["auto"] | None = "auto",
    unit: float | Literal["auto"] = "auto",
    name: str = "numpyro",
) -> NumPyroModel:
    """Return the model of a table that a NumPyro model describes.

    Parameters
    ----------
    model
        A function with NumPyro's primitives, such as ``def model(x, y=None)``, whose one observed site has one outcome
        a row, in a plate of as many rows as its arguments have. All other sample sites are parameters; none may belong
        to single rows.
    data_args
        What its arguments get: by name, a column of the table (its name or number) for a vector, or a list of columns
        for a matrix. By default the one argument that is neither response nor constant gets all columns.
    response_arg
        The name of the argument that gets the response. A model that has no such argument is one of whole rows.
    constants
        Values of arguments that are no data: the number of groups, say.
    integers
        Names of arguments that are handed over as whole numbers, to be used as indices: the group of every row.
    response
        What the response is, ``"real"`` for example; by default told from the observed distribution's support.
    power_integral
        By default the closed form or the sum for the common distributions, see
        `betacores.models.distribution_powers`, and otherwise quadrature over one real outcome, or a mean over draws of
        several; `Quadrature`, `Enumerate` or `MonteCarlo` with settings of your own; None for β = 0 only.
    unit
        As of `BlackBox`.
    name
        What to call the model.

    Returns
    -------
    NumPyroModel
        Its parameters are the latent sites' free numbers, by NumPyro's bijections. ``coreset.model.named(draws)`` turns
        draws of them into draws of the sites, deterministic ones as well, and ``coreset.to_numpyro()`` returns the
        NumPyro model of the weighted rows.
    """
    try:
        import numpyro  # noqa: F401
    except ImportError:
        raise ImportError("from_numpyro() needs NumPyro; install betacores[numpyro].") from None
    constants = {} if constants is None else dict(constants)
    picked = picked_arguments(model, data_args, response_arg, constants, integers)
    program = Program(model, constants, picked.response_arg)
    if power_integral not in (None, "auto") and not isinstance(power_integral, Rule):
        raise TypeError(
            f"power_integral: expected 'auto', None, or a rule such as bc.models.Quadrature(), got {power_integral!r}."
        )
    if response is not None:
        check_choice("response", response, get_args(Response))
    if picked.response_arg is None:
        kind: Response = "none"
    else:
        kind = response or _response_kind(program, picked)
    return NumPyroModel(program, picked, kind, power_integral, unit, name)


def _response_kind(program: Program, picked: Picked) -> Response:
    """Return what the response of a model is, told from the support of what it observes."""
    width = picked.width
    if width is None:
        # Columns by name: any places will do to see what is observed.
        names = {one for _, wanted in picked.arguments for one in (wanted if isinstance(wanted, tuple) else (wanted,))}
        columns = sorted(str(one) for one in names if one is not None)
        picked, width = picked.placed(columns), len(columns)
    for_all = any(wanted is None for _, wanted in picked.arguments)
    tried = range(max(width, 1), MOST_COLUMNS) if for_all else [width]
    problem: Exception | None = None
    with single_precision():
        for columns_tried in tried:
            try:
                return kind_of(look_into(program, picked, columns_tried, True).distribution)
            except ValueError as error:
                problem = problem or error
                if "model: it failed on a table" not in str(error):
                    raise
    assert problem is not None  # nothing was returned
    raise problem
