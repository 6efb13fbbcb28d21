"""Rows and weights for any other estimator, as scikit-learn and imbalanced-learn would have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from betacores.checks import check_choice
from betacores.estimators.base import CoresetEstimator
from betacores.estimators.reading import take_rows
from betacores.models import MODELS, Model
from betacores.responses import all_numbers, check_few_labels


class CoresetSelector(CoresetEstimator):
    """Choose a few weighted rows that stand for the clean part of a table, for any other estimator to learn from.

    >>> selector = CoresetSelector(size=100)  # doctest: +SKIP
    >>> X_few, y_few = selector.fit_resample(X, y)  # doctest: +SKIP
    >>> Ridge().fit(X_few, y_few, sample_weight=selector.sample_weight_)  # doctest: +SKIP

    There is no ``transform``: a transformer returns as many rows as it is given, or a pipeline would pair the rows that
    are left with the labels of others. ``fit_resample`` changes both, as in imbalanced-learn, whose pipelines take it;
    they know nothing of the weights, so hand these over yourself wherever you can.

    Rows are judged with words, categories, truth values, dates and missing cells encoded as
    `betacores.tables.TableEncoder` does, and come back as they are.

    Parameters
    ----------
    model
        What the rows are judged by: ``"gaussian-mean"``, ``"linear"``, ``"logistic"``, ``"noisy-logistic"``,
        ``"softmax"``, ``"poisson"``, ``"negative-binomial"`` or a `betacores.models.Model`; by default chosen from the
        response: none, two values, words of more kinds, or numbers.
    size
        The largest number of rows to keep, at most all; ``"auto"`` for as many as are needed.
    beta
        Robustness: 0 trusts every row; ``"auto"`` chooses it from the data.
    method
        How rows are chosen, see `betacores.summarize`; ``"psvi"``, which moves them, is not for selecting.
    guard
        Whether rows with absurd covariates count less: ``"auto"``, a function of the table that returns each row's
        trust, or None.
    max_groups
        The largest number of groups to keep, at most all, when `fit` is given groups.
    scale
        ``"robust"`` judges rows with columns, and a real response, centred and scaled by medians, so that the model's
        prior suits any units; the rows themselves stay as they are. None takes the numbers as they are, and so does a
        model given as an object.
    missing
        ``"impute"``: a missing cell (also an infinite one) of a column of numbers gets the median, and a 0/1 column
        tells where; a missing word is a level of its own. ``"error"`` refuses them, and names them.
    random_state
        Same number, same result. A NumPy RandomState gives another one at every fit, None too.
    method_settings
        Further keywords of `betacores.summarize`: the method's settings, ``readout``, ``score_beta``, ``weights_by``.

    Attributes
    ----------
    sample_indices_, sample_weight_
        Numbers of the rows that were kept, and their weights.
    scores_
        For every row how much the model believes it: about 1 for clean rows, near 0 for outliers.
    coreset_
        The `betacores.Coreset`, its rows, response and model in the table's units, without columns that are
        constant; words are 0/1 columns called ``column=level``, and its ``info.notes`` say what was imputed, pooled and
        left out.
    groups_
        Labels of the groups that were kept, in order of selection; None without groups.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the table has them.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> CoresetSelector:
        """Choose rows.

        Parameters
        ----------
        X, y
            A pandas, polars or pyarrow table of numbers, words, categories, truth values and dates, or an array,
            and its response, if there is one.
        sample_weight
            How many rows each row stands for; one of weight 0 is never kept.
        groups
            Keep whole groups of rows: a label for every row, or the name of a column of ``X``, or of several, which
            then are no covariates.
        """
        if self.method == "psvi":
            raise ValueError("method: 'psvi' moves points away from the rows, and none is selected; choose another.")
        if not isinstance(self.model, Model):
            check_choice("model", self.model, ("auto", *MODELS))
        table, response = self._read(X, y, sample_weight, groups)
        model = self._chosen_model(response)
        real = (MODELS[model] if isinstance(model, str) else model).response == "real"
        if real and response is not None:
            response = _numbers(response)
        self.coreset_ = self._summarise(table, response, model, real=real).coreset
        self._learn(self.coreset_, table)
        self._row_count = len(table.x)
        return self

    def fit_resample(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Choose rows and return them with their responses; the rows alone if there is no response.

        Their weights are in ``sample_weight_``.
        """
        return self.fit(X, y, sample_weight, groups).select(X, *(() if y is None else (y,)))

    def select(self, *tables: Any) -> Any:
        """Return the chosen rows of tables that have those of `fit`, in its order: frames as frames, arrays as arrays.

        One table comes back as itself, several as a tuple.
        """
        check_is_fitted(self)
        for table in tables:
            if len(table) != self._row_count:
                raise ValueError(f"select: expected the {self._row_count} rows that were fitted, got {len(table)}.")
        chosen = tuple(take_rows(table, self.sample_indices_) for table in tables)
        return chosen[0] if len(chosen) == 1 else chosen

    def __sklearn_tags__(self) -> Tags:
        """Say that a response is welcome, but not needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _chosen_model(self, y: np.ndarray | None) -> str | Model:
        if self.model != "auto":
            return self.model
        if y is None:
            return "gaussian-mean"
        values = np.unique(y)
        if len(values) != 2 and not all_numbers(values):
            check_few_labels(values)
            return "softmax"
        return "logistic" if len(values) == 2 else "linear"


def _numbers(response: np.ndarray) -> np.ndarray:
    if response.dtype.kind in "fiub":
        return response
    try:
        return response.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y: a linear model needs numbers, got {response[0]!r}; for two labels use model='logistic'."
        ) from None
