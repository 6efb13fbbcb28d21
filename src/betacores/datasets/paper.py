"""Real data sets, prepared: those of the β-Cores paper, and three more.

Every function returns a `Split`, prepared as `betacores.datasets.splits` says. Raw files are found as
`betacores.datasets.files` says. Labels are 0 and 1, responses are in the units of the raw file. Hospital Readmissions
is in `betacores.datasets.hospital`.
"""

from __future__ import annotations

import numpy as np

from betacores.datasets.files import arrays, column_names, read
from betacores.datasets.splits import COMPONENTS, PathLike, Split, balanced_rows, check_settings, prepare, random_tenth

ADULT_NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_CATEGORIES = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country")
BIKE_NUMERIC = ("temp", "atemp", "hum", "windspeed")
BIKE_FLAGS = ("yr", "holiday", "workingday")
BIKE_CATEGORIES = ("season", "mnth", "hr", "weekday", "weathersit")


def adult(*, preparation: str = "paper", balanced: bool = True, seed: int = 0, path: PathLike = None) -> Split:
    """Return Adult: whether a person of the 1994 census earns more than 50,000 dollars (1) or not (0).

    Rows with a missing cell are dropped: 30,162 training rows, and 15,060 test rows of which 3,700 are positive. If
    `balanced`, `seed` draws as many of the negative test rows, 7,400 rows in all (the paper: 7,413).
    """
    check_settings(preparation, seed)
    raw = arrays(read("adult", path=path, columns=[*ADULT_NUMERIC, *ADULT_CATEGORIES, "income", "split"]))
    complete = ~np.any([raw[name] == "?" for name in ADULT_CATEGORIES], axis=0)
    # Test labels of the raw file end in a dot.
    y = np.char.startswith(raw["income"].astype(str), ">50K").astype(int)
    train = np.flatnonzero(complete & (raw["split"] == "train"))
    test = np.flatnonzero(complete & (raw["split"] == "test"))
    test = balanced_rows(test, y, seed) if balanced else test
    return prepare(raw, y, train, test, preparation, ADULT_NUMERIC, ADULT_CATEGORIES, components=COMPONENTS)


def phishing(*, preparation: str = "paper", balanced: bool = False, seed: int = 0, path: PathLike = None) -> Split:
    """Return Phishing: whether a web site is legitimate (1) or phishing (0).

    As in the paper, whose code loses the first row: 8,844 training rows, the last 2,210 for testing, 1,230 of them
    positive. If `balanced`, `seed` draws as many positive test rows as there are negative ones. The thirty codes -1,
    0, 1 share one scale, so for the paper's components they are not standardised.
    """
    check_settings(preparation, seed)
    names = [name for name in column_names("phishing", path=path) if name != "Result"]
    raw = arrays(read("phishing", path=path, columns=[*names, "Result"]))
    y = (raw["Result"] == 1).astype(int)
    rows = np.arange(1, len(y))
    cut = len(rows) - int(0.2 * len(rows))
    test = balanced_rows(rows[cut:], y, seed) if balanced else rows[cut:]
    return prepare(raw, y, rows[:cut], test, preparation, flags=names, components=COMPONENTS)


def boston_housing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Housing: the median value of homes in a Boston suburb, in 1,000 dollars.

    `seed` draws the paper's 446 training and 50 test rows; ten rows with which the paper starts are left out. The
    column ``B`` is a transformed share of Black residents, for which other libraries no longer offer this data set.
    """
    return random_tenth("boston_housing", "MEDV", preparation, seed, path, aside=10)


def songs(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Songs: the year of release, from 90 numbers about the sound; `seed` draws a tenth for testing.

    The file known here is a subset of 8,162 rows: 7,346 and 816. Pass `path` for the full 515,345 rows, as Parquet with
    columns ``year``, ``timbre_avg_1`` to ``12`` and ``timbre_cov_1`` to ``78``.
    """
    names = [f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)]
    return random_tenth("songs", "year", preparation, seed, path, numeric=names)


def webspam(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return WebSpam: whether a web page is spam (1) or not (0); `seed` draws a tenth for testing.

    The file known here is a sample of 500 rows, for trying things out. Pass `path` for more, as Parquet with a column
    ``label`` (positive for spam) and numeric columns.
    """
    split = random_tenth("webspam", "label", preparation, seed, path)
    return split._replace(y_train=(split.y_train > 0).astype(int), y_test=(split.y_test > 0).astype(int))


def covtype(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Covertype: whether a patch of forest is lodgepole pine, class 2 of 7 (1), or not (0).

    Not in the paper: it stands in for the full WebSpam. `seed` draws a tenth of the 581,012 rows for testing.
    """
    names = column_names("covtype", path=path)
    flags = [name for name in names if name.startswith(("Wilderness_Area", "Soil_Type"))]
    numeric = [name for name in names if name not in flags and name != "Cover_Type"]
    split = random_tenth("covtype", "Cover_Type", preparation, seed, path, numeric=numeric, flags=flags)
    return split._replace(y_train=(split.y_train == 2).astype(int), y_test=(split.y_test == 2).astype(int))


def california_housing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return California Housing (not in the paper): the median house value of a block group, in 100,000 dollars."""
    return random_tenth("california_housing", "MedHouseVal", preparation, seed, path)


def bike_sharing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Bike Sharing: the number of bicycles rented in an hour, from calendar and weather. Not in the paper.

    `seed` draws a tenth of the 17,379 rows for testing. The two parts that add up to the count are not among the
    features.
    """
    return random_tenth("bike_sharing", "cnt", preparation, seed, path, BIKE_NUMERIC, BIKE_CATEGORIES, BIKE_FLAGS)
