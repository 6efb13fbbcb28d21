"""What is assumed of a row: one model a file, and the registry of their names."""

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.models.black_box import BlackBox
from betacores.models.gaussian_mean import GaussianMean
from betacores.models.linear import LinearRegression
from betacores.models.logistic import LogisticRegression
from betacores.models.negative_binomial import NegativeBinomialRegression
from betacores.models.numpyro_source import from_numpyro
from betacores.models.poisson import PoissonRegression
from betacores.models.power_rules import Enumerate, MonteCarlo, Quadrature
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.softmax import SoftmaxRegression

MODELS: dict[str, type[Model]] = {
    cls.name: cls
    for cls in (
        GaussianMean,
        LinearRegression,
        LogisticRegression,
        SoftmaxRegression,
        PoissonRegression,
        NegativeBinomialRegression,
    )
}

__all__ = [
    "MODELS",
    "BlackBox",
    "Enumerate",
    "GaussianMean",
    "GaussianPrior",
    "LinearPredictor",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "MonteCarlo",
    "NegativeBinomialRegression",
    "PoissonRegression",
    "Quadrature",
    "Rows",
    "SeveralPredictors",
    "SoftmaxRegression",
    "from_numpyro",
    "gaussian_prior",
]
