"""Robust Bayesian regression on a coreset, as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.base import RegressorMixin

from betacores.checks import check_choice, check_number
from betacores.estimators.base import CoresetEstimator
from betacores.estimators.regression import Regression, counting, linear, neural
from betacores.models import LinearRegression, Model, NegativeBinomialRegression, PoissonRegression

if TYPE_CHECKING:
    from jaxtyping import Float

MODELS = ("auto", "linear", "poisson", "negative-binomial", "neural-linear")
KINDS = (LinearRegression, PoissonRegression, NegativeBinomialRegression)


class CoresetRegressor(RegressorMixin, CoresetEstimator):
    """Bayesian regression on a few weighted rows, which leaves the outliers of the table behind.

    `fit` summarises the table with `betacores.summarize`; `predict` averages over the posterior given the rows it kept.

    Tables are taken as people have them: words, categories, truth values, dates and missing cells are encoded as
    `betacores.tables.TableEncoder` does. A table of finite numbers is taken as it is.

    Parameters
    ----------
    model
        ``"linear"`` (what ``"auto"`` means); ``"poisson"`` or ``"negative-binomial"`` for counts, whose mean is then
        predicted; ``"neural-linear"`` (linear in the last layer of a network; see `betacores.neural`); or a
        `betacores.models.LinearRegression`, `PoissonRegression` or `NegativeBinomialRegression` with noise, prior or
        exposure of your own.
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
        ``"robust"`` centres and scales the columns and the response by medians, and brings columns of two values to 0
        and 1, so that the model's prior suits any units; predictions and ``coreset_`` are in the table's own. None
        takes the numbers as they are, and so does a model given as an object, whose noise and prior have units.
        Noise below a thousandth of the response's scale is taken as that much.
    missing
        ``"impute"``: a missing cell (also an infinite one) of a column of numbers gets the median, and a 0/1 column
        tells where; a missing word is a level of its own. ``"error"`` refuses them, and names them.
    random_state
        Same number, same result. A NumPy RandomState gives another one at every fit, None too.
    method_settings
        Further keywords of `betacores.summarize`: the method's settings, ``readout``, ``score_beta``, ``weights_by``.
        For ``"neural-linear"``, of `betacores.neural.fit_neural_linear`; groups are its batches, and ``max_groups`` how
        many may enter after the first.

    Attributes
    ----------
    coreset_
        The `betacores.Coreset`, its rows, response and model in the table's units, without columns that are constant;
        words are 0/1 columns called ``column=level``, and its ``info.notes`` say what was imputed, pooled and left out.
        None for ``"neural-linear"``. Its ``posterior`` is in single precision, and where the cells of a column are
        hundreds of times as large as their spread, `predict` is the better word.
    sample_indices_, sample_weight_
        Numbers of the rows that were kept, and their weights.
    scores_
        For every row how much the model believes it: about 1 for clean rows, near 0 for outliers.
    groups_
        Labels of the groups that were kept, in order of selection; None without groups.
        For ``"neural-linear"`` those that entered after the rows to begin with.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the table has them.

    Examples
    --------
    >>> from betacores import CoresetRegressor
    >>> regressor = CoresetRegressor(size=50).fit(X, y)  # doctest: +SKIP
    >>> mean, deviation = regressor.predict(X, return_std=True)  # doctest: +SKIP
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CoresetRegressor:
        """Summarise a table and learn from the rows that are kept.

        Parameters
        ----------
        X, y
            A pandas, polars or pyarrow table of numbers, words, categories, truth values and dates, or an array,
            and its response.
        sample_weight
            How many rows each row stands for; one of weight 0 is never kept.
        groups
            Keep whole groups of rows: a label for every row, or the name of a column of ``X``, or of several, which
            then are no covariates and may be left out or not when predicting.
        """
        self._check_model()
        table, response = self._read(X, y, sample_weight, groups, y_numeric=True)
        response = np.asarray(response, np.float64)
        if self.model == "neural-linear":
            fitted: Regression = neural(
                table, response, scaled=self.scale is not None, arguments=self._neural_arguments()
            )
        else:
            model = "linear" if self.model == "auto" else self.model
            real = model == "linear" or isinstance(model, LinearRegression)
            summary = self._summarise(table, response, model, real=real)
            fitted = linear(summary) if real else counting(summary)
        self._regression = fitted
        self.coreset_ = fitted.coreset
        self._learn(fitted, table)
        return self

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Float[np.ndarray, " n"]: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]: ...

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean of the response of rows, a count or another number, averaged over the posterior.

        Parameters
        ----------
        X
            Rows with the columns of the table `fit` was given.
        return_std
            Whether to return the standard deviation of a new response too: the noise, and what is not known of the
            line.
        """
        rows = self._read_rows(X)
        mean, deviation = self._regression.predict(rows)
        return (mean, deviation) if return_std else mean

    def _neural_arguments(self) -> dict[str, Any]:
        if self.size != "auto" or callable(self.guard):
            raise ValueError(
                "model: 'neural-linear' keeps batches of rows and has its own guard; leave size 'auto', say how many "
                "batches by max_groups, and let guard be 'auto' or None."
            )
        if self.max_groups != "auto":
            check_number("max_groups", self.max_groups, at_least=1, whole=True)
        own = {
            "method": self.method,
            "beta": None if self.beta == "auto" else self.beta,
            "guard": self.guard,
            "rounds": None if self.max_groups == "auto" else self.max_groups,
            "seed": self._seed(),
        }
        return {**own, **self._further({*own, "batches"})}

    def _check_model(self) -> None:
        if isinstance(self.model, Model):
            if not isinstance(self.model, KINDS):
                names = ", ".join(f"a {kind.__name__}" for kind in KINDS[:-1])
                raise ValueError(f"model: a regressor needs {names} or a {KINDS[-1].__name__}, got {self.model!r}.")
        else:
            check_choice("model", self.model, MODELS)
