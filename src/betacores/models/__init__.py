"""What is assumed of a row: one model a file, and the registry of their names."""

from betacores.models.auxiliary import SeveralPredictors
from betacores.models.base import LinearPredictor, Model, Rows
from betacores.models.black_box import BlackBox
from betacores.models.categorical import CategoricalDensity
from betacores.models.exponential import ExponentialDensity
from betacores.models.family import ExponentialFamily
from betacores.models.gamma import GammaRegression
from betacores.models.gaussian import GaussianDensity
from betacores.models.gaussian_mean import GaussianMean
from betacores.models.gaussian_regression import GaussianRegression
from betacores.models.linear import LinearRegression
from betacores.models.logistic import LogisticRegression
from betacores.models.mixture import GaussianMixture
from betacores.models.multinomial import MultinomialDensity
from betacores.models.negative_binomial import NegativeBinomialRegression
from betacores.models.noisy_logistic import NoisyLogistic
from betacores.models.numpyro_source import from_numpyro
from betacores.models.poisson import PoissonRegression
from betacores.models.power_rules import Enumerate, MonteCarlo, Quadrature
from betacores.models.prior import GaussianPrior, gaussian_prior
from betacores.models.scaled import ScaledPredictor
from betacores.models.softmax import SoftmaxRegression
from betacores.models.student_t import StudentTRegression

MODELS: dict[str, type[Model]] = {
    cls.name: cls
    for cls in (
        GaussianMean,
        LinearRegression,
        LogisticRegression,
        NoisyLogistic,
        SoftmaxRegression,
        PoissonRegression,
        NegativeBinomialRegression,
        GaussianRegression,
        StudentTRegression,
        GammaRegression,
        GaussianDensity,
        GaussianMixture,
        ExponentialDensity,
        CategoricalDensity,
        MultinomialDensity,
    )
}

__all__ = [
    "MODELS",
    "BlackBox",
    "CategoricalDensity",
    "Enumerate",
    "ExponentialDensity",
    "ExponentialFamily",
    "GammaRegression",
    "GaussianDensity",
    "GaussianMean",
    "GaussianMixture",
    "GaussianPrior",
    "GaussianRegression",
    "LinearPredictor",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "MonteCarlo",
    "MultinomialDensity",
    "NegativeBinomialRegression",
    "NoisyLogistic",
    "PoissonRegression",
    "Quadrature",
    "Rows",
    "ScaledPredictor",
    "SeveralPredictors",
    "SoftmaxRegression",
    "StudentTRegression",
    "from_numpyro",
    "gaussian_prior",
]
