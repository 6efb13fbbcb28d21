"""scikit-learn's own battery of checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from betacores import CoresetClassifier, CoresetRegressor, CoresetSelector

# More rows than the battery's tables need parameters, but few draws.
LIGHT = {"size": 20, "beta": 0.5, "guard": None, "method_settings": {"draws": 100}}

WEIGHTS = (
    "Weighted rows equal repeated ones in the sums that a coreset stands for, and it stands for them up to its error. "
    "The check asks for seven digits, through random draws and through units that are medians of the rows as given."
)
EXPECTED_TO_FAIL = {
    "CoresetClassifier": {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
    "CoresetRegressor": {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
}


def battery(*estimators):
    return parametrize_with_checks(
        list(estimators),
        expected_failed_checks=lambda estimator: EXPECTED_TO_FAIL.get(type(estimator).__name__, {}),
        xfail_strict=True,
    )


# The battery's tables are of a few random rows, and the library rightly doubts some of its results.
@pytest.mark.filterwarnings("ignore::UserWarning")
@battery(CoresetClassifier(**LIGHT))
def test_the_classifier_meets_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@battery(CoresetRegressor(**LIGHT), CoresetSelector(**LIGHT))
def test_the_others_meet_scikit_learns_checks(estimator, check):
    check(estimator)
