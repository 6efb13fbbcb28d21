"""What the estimators share: their parameters, and the way from a table as given to a coreset in its units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
import pyarrow
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state, check_X_y
from sklearn.utils.validation import check_is_fitted, validate_data

from betacores.checks import check_choice
from betacores.coreset import Coreset
from betacores.estimators.reading import column_names, is_plain, take_groups, take_response, take_rows, without
from betacores.estimators.scaling import Scaling, as_given, robust_scaling
from betacores.front_door import summarize
from betacores.groups import Groups
from betacores.inputs import encode_rows, read_weights
from betacores.models import LinearRegression, Model
from betacores.noise import robust_noise, told_of_exactness
from betacores.origin import Origin
from betacores.precision import single_precision
from betacores.sources import ArraySource
from betacores.tables import TableEncoder
from betacores.tables.columns import SEEN_ROWS
from betacores.tables.encoder import MISSING, checked, filler

SEEDS = 2**31 - 1
# In units of the response's robust scale.
LEAST_NOISE = 1e-3


# Models of rows without a response that are shown columns centred and scaled.
CENTRED = ("auto", "gaussian-mean")


class Summary(NamedTuple):
    """A coreset in the units it was built in, those units, and the same coreset in the units of the table."""

    built: Coreset
    scaling: Scaling
    coreset: Coreset


class Given(NamedTuple):
    """A table as it was handed in: the frame, what its columns became, and what the response is called."""

    frame: Any
    sources: list[str]
    notes: list[str]
    target: str | None

    def origin(self, x: np.ndarray, y: np.ndarray | None, kept: np.ndarray) -> Origin:
        """Return the origin of a coreset of some of the columns."""
        sources = [name for name, keep in zip(self.sources, kept, strict=True) if keep] if self.sources else []
        return Origin(x[:, kept], y, self.frame, sources, self.target)


class Table(NamedTuple):
    """A table as it came in, checked: numbers, names, what the rows count and belong to, and where they come from."""

    x: np.ndarray
    names: list[str]
    sample_weight: np.ndarray | None
    groups: Groups | None
    given: Given

    def scaling(self, y: np.ndarray | None) -> Scaling:
        """Return units for the table, and for the response if it is real, from the rows that count."""
        counted = slice(None) if self.sample_weight is None else self.sample_weight > 0
        return robust_scaling(self.x[counted], None if y is None else y[counted])


class CoresetEstimator(BaseEstimator):
    """Parameters and inner workings of the estimators; see the subclasses."""

    coreset_: Coreset | None
    n_features_in_: int

    def __init__(
        self,
        *,
        model: str | Model = "auto",
        size: int | str = "auto",
        beta: float | str = "auto",
        method: str = "pursuit",
        guard: str | Callable[[np.ndarray], Any] | None = "auto",
        max_groups: int | str = "auto",
        scale: str | None = "robust",
        missing: str = "impute",
        random_state: Any = 0,
        method_settings: Mapping[str, Any] | None = None,
    ):
        self.model = model
        self.size = size
        self.beta = beta
        self.method = method
        self.guard = guard
        self.max_groups = max_groups
        self.scale = scale
        self.missing = missing
        self.random_state = random_state
        self.method_settings = method_settings

    def _read(self, X: Any, y: Any, sample_weight: Any, groups: Any, **checks: Any) -> tuple[Table, Any]:
        """Return the table of `fit` and its response, checked as scikit-learn does."""
        if self.scale is not None:
            check_choice("scale", self.scale, ("robust",))
        check_choice("missing", self.missing, MISSING)
        frame = X if column_names(X) else None
        X, labels, self._group_columns = take_groups(X, groups)
        y, target = (None, None) if y is None else take_response(y)
        wanted = {"dtype": [np.float64, np.float32], "ensure_min_samples": 2, **checks}
        self._plain = is_plain(X)
        if self._plain:
            x, response = self._validated(X, y, **wanted)
            weights = read_weights(sample_weight, len(x))
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(x.shape[1])])
            self._encoder = filler(X, np.median(x[:: -(-len(x) // SEEN_ROWS)], 0), self.missing)
            sources = column_names(X)
        else:
            self._validated(X, y, skip_check_array=True)
            X = checked(self, X, reset=True)
            weights = read_weights(sample_weight, len(X))
            x = self._encoded(X, weights)
            x, response = (x, None) if y is None else check_X_y(x, y, estimator=self, **wanted)
            names = self._encoder.get_feature_names_out()
            own = dict(zip(self._encoder.names_in(), column_names(X), strict=False))
            sources = [own.get(name, name) for name in self._encoder.sources_]
        given = Given(frame, sources, self._encoder.notes_, target)
        return Table(x, [str(name) for name in names], weights, labels, given), response

    def _validated(self, X: Any, y: Any, **wanted: Any) -> tuple[Any, Any]:
        """Return table and response as scikit-learn checks them; the response may be None where none is required."""
        if y is None and not self.__sklearn_tags__().target_tags.required:
            return validate_data(self, X, **wanted), None
        return validate_data(self, X, y, **wanted)

    def _encoded(self, X: Any, weights: np.ndarray | None) -> np.ndarray:
        """Return a table as numbers, and keep how; rows that count nothing have no say in it."""
        self._encoder = TableEncoder(missing=self.missing, scale=None)
        if weights is None or weights.all():
            return self._encoder.fit_transform(X)
        self._encoder.fit(take_rows(X, np.flatnonzero(weights)))
        return self._encoder.encode(X)

    def _summarise(self, table: Table, y: np.ndarray | None, model: str | Model, *, real: bool) -> Summary:
        """Return the coreset of a table whose response, if it has one, is real or else a label."""
        # Models of whole rows but the simplest find their own units, and some are of codes or counts.
        scaled = self.scale is not None and not isinstance(model, Model) and (y is not None or model in CENTRED)
        scaling = table.scaling(y if real else None) if scaled else as_given(table.x)
        names = [name for name, varies in zip(table.names, scaling.varies, strict=True) if varies]
        response = scaling.response(y) if real and y is not None else y
        x = scaling.table(table.x)
        said: list[str] = []
        if scaled and model == "linear" and response is not None:
            model, said = _with_some_noise(x, response, table.sample_weight, names)
        built = summarize(
            _named(x, names),
            response,
            model=model,
            sample_weight=table.sample_weight,
            guard=_in_own_units(self.guard, table.x),
            **self._arguments(table),
        )
        built.info.notes[:0] = [*table.given.notes, *said]
        # The person's own guard, not the wrapped one that holds on to the table.
        built.info.settings["guard"] = self.guard if callable(self.guard) else built.info.settings["guard"]
        return Summary(built, scaling, _in_own_rows(built, scaling, table, y))

    def _arguments(self, table: Table) -> dict[str, Any]:
        """Return the arguments of `summarize` that do not depend on units."""
        groups = None if table.groups is None else len(table.groups)
        own = {
            "size": _at_most(self.size, len(table.x)),
            "beta": self.beta,
            "method": self.method,
            "groups": table.groups,
            "max_groups": self.max_groups if groups is None else _at_most(self.max_groups, groups),
            "seed": self._seed(),
        }
        return {**own, **self._further({*own, "model", "guard", "sample_weight"})}

    def _further(self, own: set[str]) -> dict[str, Any]:
        """Return the settings of the method, none of which the estimator has itself."""
        further = dict(self.method_settings or {})
        taken = [name for name in further if name in own]
        if taken:
            raise ValueError(f"method_settings: {taken[0]!r} is a parameter of the estimator or of fit; pass it there.")
        return further

    def _seed(self) -> int:
        if isinstance(self.random_state, (int, np.integer)):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(SEEDS))

    def _learn(self, fitted: Any, table: Table) -> None:
        """Keep what a coreset, or another fit, says of the rows of a table and of its groups if there are any."""
        self.sample_indices_ = fitted.indices
        self.sample_weight_ = fitted.weights
        self.scores_ = fitted.scores
        self.groups_ = None if table.groups is None else fitted.groups

    def _read_rows(self, X: Any) -> np.ndarray:
        """Return rows to predict, checked against those of `fit`."""
        check_is_fitted(self)
        X = without(X, self._group_columns)
        if self._plain and is_plain(X):
            return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return self._encoder.encode(checked(self, X, reset=False))

    def __sklearn_tags__(self) -> Tags:
        """Say that words and, unless refused, missing cells are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.string = True
        return tags


def _named(x: np.ndarray, names: list[str]) -> Any:
    """Return a table with names, so that what is said of columns is said by theirs."""
    if names == [f"x{j}" for j in range(x.shape[1])]:
        return x
    return pyarrow.table(dict(zip(names, np.ascontiguousarray(x.T), strict=True)))


def _with_some_noise(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray | None, names: list[str]
) -> tuple[str | Model, list[str]]:
    """Return a linear model that rows exactly on a plane do not overstrain, and what to say of such rows.

    Single precision cannot hold the mode without some noise.
    """
    rows = encode_rows(x, y, None)
    with single_precision():
        noise = robust_noise(ArraySource(rows.x, rows.y, weights=weights), True, jax.random.key(0))
    if noise >= LEAST_NOISE:
        return "linear", []
    return LinearRegression(LEAST_NOISE), told_of_exactness(x, y, names, noise)


def _at_most(asked: Any, most: int) -> Any:
    whole = isinstance(asked, (int, np.integer)) and not isinstance(asked, bool)
    return min(int(asked), most) if whole else asked


def _in_own_units(guard: Any, x: np.ndarray) -> Any:
    """Return a person's guard as one that is shown the table as given, whatever units it is summarised in."""
    return (lambda _: guard(x)) if callable(guard) else guard


def _in_own_rows(built: Coreset, scaling: Scaling, table: Table, y: np.ndarray | None) -> Coreset:
    """Return a coreset with rows, response and model as the table was given."""
    path, x = built.path.indices, table.x
    rows, response = x[path][:, scaling.varies], None if y is None else y[path]
    if built.path.points is not None:
        rows, response = scaling.undone(built.path_X), built.path_y
        if response is not None and built.labels is None:
            response = scaling.response_undone(response)
    origin = table.given.origin(x, y, scaling.varies)
    own = replace(built, path_X=rows, path_y=response, model=scaling.model(built.model), origin=origin)
    if isinstance(own.model, LinearRegression) and isinstance(built.model, LinearRegression):
        before, after = (f"noise: {float(model.noise):.3g}" for model in (built.model, own.model))
        own.info.notes[:] = [note.replace(before, after) for note in own.info.notes]
    for told in (own.info.guard or {}).get("columns", []):
        j = built.columns.index(told["column"])
        told["typical"] = [float(scaling.centre[j] + scaling.scale[j] * end) for end in told["typical"]]
    return own.at(len(own.path.weights))
