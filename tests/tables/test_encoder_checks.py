"""scikit-learn's own battery of checks, for the encoder."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from betacores import make_robust_preprocessor


@parametrize_with_checks([make_robust_preprocessor(), make_robust_preprocessor(missing="error", scale=None)])
def test_the_encoder_meets_scikit_learns_checks(estimator, check):
    check(estimator)
