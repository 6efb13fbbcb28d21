"""Robust Bayesian classification on a coreset, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from betacores.checks import check_choice
from betacores.estimators.base import CoresetEstimator
from betacores.estimators.prediction import mean_sigmoid, predictor
from betacores.models import LogisticRegression, Model

if TYPE_CHECKING:
    from jaxtyping import Float


class CoresetClassifier(ClassifierMixin, CoresetEstimator):
    """Bayesian logistic regression on a few weighted rows, which leaves the outliers of the table behind.

    `fit` summarises the table with `betacores.summarize`; `predict_proba` averages over the posterior given the rows it
    kept. Of two classes only.

    Tables are taken as people have them: words, categories, truth values, dates and missing cells are encoded as
    `betacores.tables.TableEncoder` does. A table of finite numbers is taken as it is.

    Parameters
    ----------
    model
        ``"logistic"`` (what ``"auto"`` means), or a `betacores.models.LogisticRegression` with a prior of your own.
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
        The two labels, in order.
    coreset_
        The `betacores.Coreset`, its rows and model in the table's units, without columns that are constant; words are
        0/1 columns called ``column=level``, and its ``info.notes`` say what was imputed, pooled and left out. Its
        ``posterior`` is in single precision, and where the cells of a column are hundreds of times as large as their
        spread, `predict_proba` is the better word.
    sample_indices_, sample_weight_
        Numbers of the rows that were kept, and their weights.
    scores_
        For every row how much the model believes it: about 1 for clean rows, near 0 for outliers.
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
            and its labels, of two kinds.
        sample_weight
            How many rows each row stands for; one of weight 0 is never kept.
        groups
            Keep whole groups of rows: a label for every row, or the name of a column of ``X``, or of several, which
            then are no covariates and may be left out or not when predicting.
        """
        self._check_model()
        table, labels = self._read(X, y, sample_weight, groups)
        self.classes_ = _two_classes(labels)
        model = "logistic" if self.model == "auto" else self.model
        summary = self._summarise(table, labels, model, real=False)
        self._scaling, self._posterior = summary.scaling, predictor(summary.built)
        self.coreset_ = summary.coreset
        self._learn(self.coreset_.indices, self.coreset_.weights, self.coreset_.scores)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the more probable label of rows, averaged over the posterior."""
        more_probable = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[more_probable]

    def predict_proba(self, X: Any) -> Float[np.ndarray, "n 2"]:
        """Return the probabilities of the two labels, averaged over the posterior."""
        mean, variance = self._moments(X)
        positive = mean_sigmoid(mean, variance)
        return np.column_stack([1 - positive, positive])

    def decision_function(self, X: Any) -> Float[np.ndarray, " n"]:
        """Return the log-odds of the second label, from probabilities averaged over the posterior."""
        mean, variance = self._moments(X)
        # Either probability by itself, since one less the other has no digits when it is small.
        tiny = np.finfo(np.float64).tiny
        positive, negative = (np.maximum(mean_sigmoid(sign * mean, variance), tiny) for sign in (1, -1))
        return np.log(positive) - np.log(negative)

    def __sklearn_tags__(self) -> Tags:
        """Say that there are two classes."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _moments(self, X: Any) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        rows = self._read_rows(X)
        return self._posterior.moments(self._scaling.table(rows))

    def _check_model(self) -> None:
        if isinstance(self.model, Model):
            if not isinstance(self.model, LogisticRegression):
                raise ValueError(f"model: a classifier needs a LogisticRegression, got {self.model!r}.")
        else:
            check_choice("model", self.model, ("auto", "logistic"))


def _two_classes(labels: np.ndarray) -> np.ndarray:
    check_classification_targets(labels)
    kind = type_of_target(labels, input_name="y")
    if kind != "binary":
        raise ValueError(
            f"y: Only binary classification is supported. The type of the target is {kind}, with "
            f"{len(np.unique(labels))} classes; there is no softmax regression yet. Wrap the classifier in "
            "sklearn.multiclass.OneVsRestClassifier."
        )
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"y: all rows are of one class, {classes.tolist()[0]!r}; rows of two classes are needed.")
    return classes
