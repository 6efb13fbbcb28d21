"""A table of any columns in, a table of finite numbers out: as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from betacores.checks import check_choice, check_number
from betacores.tables.columns import NumberPlan, Plan, plan_of
from betacores.tables.reading import Cells, Numbers, Other, Wanted, as_frame, read_columns

if TYPE_CHECKING:
    from jaxtyping import Float

MISSING = ("impute", "error")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn numbers, truth values, words, categories and dates, with cells missing, into finite numbers.

    What is learned is robust: wild cells, up to half of a column, move neither its centre nor its scale, and they stay
    wild.

    - **Numbers** are centred by the median and divided by a robust scale; a column of two values becomes 0 and 1.
      Truth values become 0 and 1. Dates, moments (in UTC) and durations become days first.
    - **Words and categories** become one 0/1 column a level, called ``column=level``; the most frequent level is told
      by zeros. Levels held by less than 1 % of the rows that have a word, or by fewer than 5 rows (a tenth of them if
      there are fewer than 50), and those beyond ``max_levels``, are pooled into ``column=other (rare)``. A level never
      seen counts as one of them, or as the most frequent if none were pooled.
    - **Texts that are numbers** in nine of ten cells at least, such as ``"1,234"``, are numbers, and other words among
      them, such as ``"n/a"``, are missing cells. Codes with leading zeros stay words. Declare a column categorical
      (pandas ``category``, polars ``Categorical`` or ``Enum``) to have its levels taken as words.
    - **Missing cells** are null, None, NaN, NaT, infinite numbers and blank texts. Numbers get the median, and the 0/1
      column ``column missing``; words get the 0/1 column ``column=missing``. A column complete in `fit` has no such
      column, and its missing cells later on count as the median, or as the most frequent level.
    - **Left out** are constant columns, columns missing everywhere, texts none of which is frequent (identifiers, free
      text), and lists.

    Parameters
    ----------
    missing
        ``"impute"`` fills missing cells as said; ``"error"`` refuses them, and names them.
    scale
        ``"robust"``, or None to leave numbers in the units they have.
    max_levels
        The largest number of 0/1 columns for levels of one column, beside those for rare and missing ones.

    Attributes
    ----------
    sources_
        For every column of the result, the column it was made of.
    notes_
        What was imputed, pooled and left out, a sentence for each.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the table has them; columns without names are called x0, x1, ...

    Examples
    --------
    >>> import pandas as pd
    >>> from betacores.tables import TableEncoder
    >>> frame = pd.DataFrame({"age": [20.0, None, 40.0, 31.0], "city": ["Rome", "Bari", "Rome", "Bari"]})
    >>> encoder = TableEncoder(scale=None).fit(frame)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age missing', 'city=Rome']
    >>> encoder.transform(frame).tolist()
    [[20.0, 0.0, 1.0], [31.0, 1.0, 0.0], [40.0, 0.0, 1.0], [31.0, 0.0, 0.0]]
    """

    n_features_in_: int

    def __init__(self, *, missing: str = "impute", scale: str | None = "robust", max_levels: int = 20):
        self.missing = missing
        self.scale = scale
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Decide how every column of a table is encoded.

        Parameters
        ----------
        X
            A pandas, polars or pyarrow table, or a two-dimensional array.
        y
            Not used.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> Float[np.ndarray, "rows out"]:
        """Decide how every column of a table is encoded, and encode it."""
        return self._encoded(self._fit(X))

    def transform(self, X: Any) -> Float[np.ndarray, "rows out"]:
        """Return rows as numbers, encoded as was decided in `fit`."""
        check_is_fitted(self)
        return self.encode(checked(self, X, reset=False))

    def encode(self, X: Any) -> Float[np.ndarray, "rows out"]:
        """Return rows as numbers, for those who have checked that the columns are those of `fit`."""
        columns = list(read_columns(X, [_kind(plan) for plan in self._plans]))
        for name, plan, cells in zip(self.names_in(), self._plans, columns, strict=True):
            if plan is not None and cells is not None:
                _check_kind(name, plan, cells)
                self._refuse_missing(name, cells)
        return self._encoded(columns)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return the names of the columns of the result.

        Parameters
        ----------
        input_features
            Names of the columns of the table, for one that has none.
        """
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        # A name made here gives way to one of the table, and to one made before.
        taken, out = set(names), []
        for name, plan in zip(names, self._plans, strict=True):
            for ending in [] if plan is None else plan.endings():
                made, number = name + ending, 2
                while ending and made in taken:
                    made, number = f"{name}{ending} ({number})", number + 1
                taken.add(made)
                out.append(made)
        return np.array(out, object)

    def __sklearn_tags__(self) -> Tags:
        """Say that words and, unless refused, missing cells are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "impute"
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _fit(self, X: Any) -> Sequence[Cells | None]:
        check_choice("missing", self.missing, MISSING)
        if self.scale is not None:
            check_choice("scale", self.scale, ("robust",))
        check_number("max_levels", self.max_levels, at_least=1, whole=True)
        X = checked(self, X, reset=True)
        columns: list[Cells] = []
        plans: list[Plan | None] = []
        notes: list[str] = []
        for name, cells in zip(self.names_in(), read_columns(X), strict=True):
            assert cells is not None  # every column was asked for
            self._refuse_missing(name, cells)
            plan, said = plan_of(cells, self.scale, self.max_levels)
            notes += [f"column {name!r}: {note}." for note in said]
            plans.append(plan)
            columns.append(cells)
        if not any(plan is not None for plan in plans):
            raise ValueError(f"X: no column is left to learn from; pass one that varies. {' '.join(notes[:5])}")
        self._plans = plans
        self.notes_ = notes
        self.sources_ = [
            name
            for name, plan in zip(self.names_in(), plans, strict=True)
            for _ in ([] if plan is None else plan.endings())
        ]
        return columns

    def _encoded(self, columns: Sequence[Cells | None]) -> Float[np.ndarray, "rows out"]:
        made = [
            column
            for plan, cells in zip(self._plans, columns, strict=True)
            if plan is not None and cells is not None
            for column in plan.columns(cells)
        ]
        return np.column_stack(made)

    def names_in(self) -> list[str]:
        """Return the names of the columns of the table; x0, x1, ... if it has none."""
        return [str(name) for name in _check_feature_names_in(self)]

    def _refuse_missing(self, name: str, cells: Cells) -> None:
        if self.missing != "error" or isinstance(cells, Other):
            return
        missing = cells.missing
        if missing.any():
            word = cells.stray if isinstance(cells, Numbers) else None
            such = "" if word is None else f" (words among numbers count as missing, such as {word!r})"
            raise ValueError(
                f"X: Input X contains NaN or other missing cells: column {name!r} has {missing.sum():,}, the first in "
                f"row {missing.argmax()}{such}; fill them, drop these rows, or choose missing='impute'."
            )


def checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return a table whose shape and names an estimator can take, or has taken before; an array if it is no frame."""
    frame = as_frame(X)
    least = 2 if reset else 1
    if frame is None:
        cells = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False, ensure_min_samples=least)
        return np.where(np.ma.getmaskarray(X), np.nan, cells.astype(np.float64)) if np.ma.is_masked(X) else cells
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if len(frame) < least or not frame.columns:
        raise ValueError(
            f"X: expected at least {least} rows and one column, got {len(frame)} rows and {len(frame.columns)} columns."
        )
    return X


def filler(X: Any, medians: Float[np.ndarray, " columns"], missing: str) -> TableEncoder:
    """Return an encoder that leaves a table of numbers as it is, but for missing cells, which get the medians.

    Parameters
    ----------
    X
        A table with the names to expect.
    medians
        Of its columns.
    missing
        As of `TableEncoder`.
    """
    encoder = TableEncoder(missing=missing, scale=None)
    validate_data(encoder, X, skip_check_array=True)
    encoder._plans = [NumberPlan(float(median)) for median in medians]
    encoder.sources_, encoder.notes_ = encoder.names_in(), []
    return encoder


def make_robust_preprocessor(
    *, missing: str = "impute", scale: str | None = "robust", max_levels: int = 20
) -> TableEncoder:
    """Return a transformer that turns any table into finite numbers of about one, whatever outliers it has.

    For the first step of a pipeline. Means and standard deviations are ruined by the very outliers that a coreset is to
    leave behind; medians are not.

    Parameters
    ----------
    missing
        ``"impute"`` fills missing cells and tells them in columns of their own; ``"error"`` refuses them.
    scale
        ``"robust"`` centres and scales by medians; None leaves numbers in the units they have.
    max_levels
        The largest number of 0/1 columns for words of one column; rarer words are pooled.

    Returns
    -------
    TableEncoder
        See `betacores.tables.TableEncoder` for what becomes of every kind of column.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> import betacores as bc
    >>> model = make_pipeline(bc.make_robust_preprocessor(), Ridge())
    """
    return TableEncoder(missing=missing, scale=scale, max_levels=max_levels)


def _kind(plan: Plan | None) -> Wanted:
    if plan is None:
        return "nothing"
    return "numbers" if isinstance(plan, NumberPlan) else "words"


def _check_kind(name: str, plan: Plan, cells: Cells) -> None:
    """Say if a column is of another kind than the one that `fit` saw."""
    kind = "numbers" if isinstance(plan, NumberPlan) else "words"
    was = f"X: column {name!r} held {kind} in fit, and now holds"
    if isinstance(cells, Other):
        raise ValueError(f"{was} values of the kind {cells.kind}; pass the columns that were fitted.")
    allowed = isinstance(plan, NumberPlan) and plan.words_allowed
    if isinstance(cells, Numbers) and cells.strays and not allowed:
        raise ValueError(f"{was} {cells.stray!r}, which is not numeric; correct such cells, or make them missing.")
