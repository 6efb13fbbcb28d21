"""Data sets for the experiments, the demonstration and the tests: simulated ones, real ones, and ways to dirty them."""

from betacores.datasets.contamination import SCHEMES, contaminate
from betacores.datasets.hospital import HospitalGroup, hospital_groups, hospital_readmissions
from betacores.datasets.paper import (
    adult,
    bike_sharing,
    boston_housing,
    california_housing,
    covtype,
    phishing,
    songs,
    webspam,
)
from betacores.datasets.simulated import (
    GAUSSIAN_OUTLIERS,
    Dirty,
    contaminated_gaussian,
    contaminated_logistic,
    corrupted_logistic,
    flipped_logistic,
    gaussian_with,
    shifted_linear,
)
from betacores.datasets.splits import Split

__all__ = [
    "GAUSSIAN_OUTLIERS",
    "SCHEMES",
    "Dirty",
    "HospitalGroup",
    "Split",
    "adult",
    "bike_sharing",
    "boston_housing",
    "california_housing",
    "contaminate",
    "contaminated_gaussian",
    "contaminated_logistic",
    "corrupted_logistic",
    "covtype",
    "flipped_logistic",
    "gaussian_with",
    "hospital_groups",
    "hospital_readmissions",
    "phishing",
    "shifted_linear",
    "songs",
    "webspam",
]
