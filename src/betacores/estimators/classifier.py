"""Robust Bayesian classification on a coreset, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from betacores.checks import check_choice
from betacores.estimators.base import CoresetEstimator
from betacores.estimators.prediction import mean_sigmoid, predictor
from betacores.models import LogisticRegression, Model, NoisyLogistic, SoftmaxRegression

if TYPE_CHECKING:
    from jaxtyping import Float


class CoresetClassifier(ClassifierMixin, CoresetEstimator):
    """Bayesian logistic or softmax regression on a few weighted rows, which leaves the outliers of the table behind.

    `fit` summarises the table with `betacores.summarize`; `predict_proba` averages over the posterior given the rows it
    kept.

    Tables are taken as people have them: words, categories, truth values, dates and missing cells are encoded as
    `betacores.tables.TableEncoder` does. A table of finite numbers is taken as it is.

    Parameters
    ----------
    model
        ``"logistic"`` (what ``"auto"`` means for two classes), ``"noisy-logistic"`` (two classes, some labels flipped
        at random), ``"softmax"`` (for more), or a `betacores.models.LogisticRegression`, `NoisyLogistic` or
        `SoftmaxRegression` with a prior of your own. Of ``"noisy-logistic"`` probabilities are of the true label, not
        of the one that would be observed.
    size
        The largest number of rows to keep, at most all; ``"auto"`` for as many as are needed.
    beta
        Robustness: 0 trusts every row; ``"auto"`` chooses it from the data.
    method
        How rows are chosen, see `betacores.summarize`.
    guard
        Whether rows with absurd covariates count less: ``"auto"``, a function of the table that returns each row's
        trust, or None.
    max_groups
        The largest number of groups to keep, at most all, when `fit` is given groups.
    scale
        ``"robust"`` centres and scales the columns by medians, and brings columns of two values to 0 and 1, so that the
        model's prior suits any units; ``coreset_`` is in the table's own. None takes the numbers as they are, and so
        does a model given as an object, whose prior has units.
    missing
        ``"impute"``: a missing cell (also an infinite one) of a column of numbers gets the median, and a 0/1 column
        tells where; a missing word is a level of its own. ``"error"`` refuses them, and names them.
    random_state
        Same number, same result. A NumPy RandomState gives another one at every fit, None too.
    method_settings
        Further keywords of `betacores.summarize`: the method's settings, ``readout``, ``score_beta``, ``weights_by``.

    Attributes
    ----------
    classes_
        The labels, in order.
    coreset_
        The `betacores.Coreset`, its rows and model in the table's units, without columns that are constant; words are
        0/1 columns called ``column=level``, and its ``info.notes`` say what was imputed, pooled and left out. Its
        ``posterior`` is in single precision, and where the cells of a column are hundreds of times as large as their
        spread, `predict_proba` is the better word.
    sample_indices_, sample_weight_
        Numbers of the rows that were kept, and their weights.
    scores_
        For every row how much the model believes it: about 1 for clean rows, near 0 for outliers.
    groups_
        Labels of the groups that were kept, in order of selection; None without groups.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the table has them.

    Examples
    --------
    >>> from betacores import CoresetClassifier
    >>> classifier = CoresetClassifier(size=50).fit(X, y)  # doctest: +SKIP
    >>> probability = classifier.predict_proba(X)[:, 1]  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CoresetClassifier:
        """Summarise a table and learn from the rows that are kept.

        Parameters
        ----------
        X, y
            A pandas, polars or pyarrow table of numbers, words, categories, truth values and dates, or an array,
            and its labels, of two kinds or more.
        sample_weight
            How many rows each row stands for; one of weight 0 is never kept.
        groups
            Keep whole groups of rows: a label for every row, or the name of a column of ``X``, or of several, which
            then are no covariates and may be left out or not when predicting.
        """
        self._check_model()
        table, labels = self._read(X, y, sample_weight, groups)
        self.classes_ = _classes(labels)
        model = self.model
        if model == "auto":
            model = "logistic" if len(self.classes_) == 2 else "softmax"
        if len(self.classes_) > 2 and (name := _of_two(model)):
            raise ValueError(f"model: {name!r} is of two classes, y has {len(self.classes_)}; choose 'softmax'.")
        summary = self._summarise(table, labels, model, real=False)
        self._scaling, self._posterior = summary.scaling, predictor(summary.built)
        self.coreset_ = summary.coreset
        self._learn(self.coreset_, table)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label of rows, averaged over the posterior."""
        most_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[most_probable]

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n classes"]:
        """Return the probabilities of the labels, averaged over the posterior.

        Those of the true labels, where the model has flipped ones.
        """
        rows = self._in_units(X)
        if self._is_softmax:
            return self._posterior.class_probabilities(rows)
        positive = mean_sigmoid(*self._posterior.moments(rows))
        return np.column_stack([1 - positive, positive])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the log-odds of the second of two labels, and of more than two every label's log-probability.

        They are of probabilities averaged over the posterior.
        """
        rows, tiny = self._in_units(X), np.finfo(np.float64).tiny
        if self._is_softmax:
            logs = np.log(np.maximum(self._posterior.class_probabilities(rows), tiny))
            return logs if len(self.classes_) > 2 else logs[:, 1] - logs[:, 0]
        mean, variance = self._posterior.moments(rows)
        # Either probability by itself, since one less the other has no digits when it is small.
        positive, negative = (np.maximum(mean_sigmoid(sign * mean, variance), tiny) for sign in (1, -1))
        return np.log(positive) - np.log(negative)

    def __sklearn_tags__(self) -> Tags:
        """Say that there may be more than two classes, unless the model is of two."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = _of_two(self.model) is None
        return tags

    @property
    def _is_softmax(self) -> bool:
        check_is_fitted(self)
        return isinstance(self._posterior.model, SoftmaxRegression)

    def _in_units(self, X: Any) -> np.ndarray:
        rows = self._read_rows(X)
        return self._scaling.table(rows)

    def _check_model(self) -> None:
        if isinstance(self.model, Model):
            if not isinstance(self.model, (LogisticRegression, NoisyLogistic, SoftmaxRegression)):
                raise ValueError(
                    "model: a classifier needs a LogisticRegression, a NoisyLogistic or a SoftmaxRegression, got "
                    f"{self.model!r}."
                )
        else:
            check_choice("model", self.model, ("auto", "logistic", "noisy-logistic", "softmax"))


def _of_two(model: str | Model) -> str | None:
    """Return the name of a model if it is one of two classes."""
    kinds = (LogisticRegression, NoisyLogistic)
    if isinstance(model, Model):
        return model.name if isinstance(model, kinds) else None
    return model if model in [kind.name for kind in kinds] else None


def _classes(labels: np.ndarray) -> np.ndarray:
    check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"y: all rows are of one class, {classes.tolist()[0]!r}; rows of two classes are needed.")
    return classes
