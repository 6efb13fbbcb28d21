"""Real data sets, prepared: those of the β-Cores paper, and three more.

Every function returns a `Split`. Raw files are found as `betacores.datasets.files` says. Whatever is learned from the
data (means, scales, levels of categories, principal components) is learned from the training rows only.

``preparation="paper"``
    Numeric columns standardised by mean and standard deviation, categories one-hot, and for Adult, Phishing and
    Hospital Readmissions the first ten principal components of these. (The paper's published code then scales each
    component to unit variance, which the paper does not mention; that is left to the caller.)
``preparation="robust"``
    Numeric columns centred by the median and divided by a robust scale, columns of two values mapped to 0 and 1,
    categories one-hot, no components: far-off cells stay visible and do not move the other rows.

Columns that are constant in the training rows are dropped; a level that only test rows have is zero in all columns.
Labels are 0 and 1, responses are in the units of the raw file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from betacores.checks import check_choice, check_seed
from betacores.datasets.files import arrays, column_names, read
from betacores.robust import robust_location_scale

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped

PathLike = str | os.PathLike[str] | None
PREPARATIONS = ("paper", "robust")
COMPONENTS = 10

ADULT_NUMERIC = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
ADULT_CATEGORIES = ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country")
HOSPITAL_DIAGNOSES = ("diag_1", "diag_2", "diag_3")
HOSPITAL_NUMERIC = (
    *("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_outpatient"),
    *("number_emergency", "number_inpatient", *HOSPITAL_DIAGNOSES, "number_diagnoses"),
)
# Identifiers, and columns that are mostly missing.
HOSPITAL_UNUSED = ("encounter_id", "patient_nbr", "weight", "payer_code", "medical_specialty", "max_glu_serum")
HOSPITAL_TRAINING = 60_000
HOSPITAL_CELLS = ("age", "race", "gender")
# Cells of no more patients make no groups.
SMALL_CELL = 40
BIKE_NUMERIC = ("temp", "atemp", "hum", "windspeed")
BIKE_FLAGS = ("yr", "holiday", "workingday")
BIKE_CATEGORIES = ("season", "mnth", "hr", "weekday", "weathersit")


class Split(NamedTuple):
    """Training and test rows, their responses, and the names of the columns."""

    x_train: Float[np.ndarray, "rows columns"]
    y_train: Shaped[np.ndarray, " rows"]
    x_test: Float[np.ndarray, "others columns"]
    y_test: Shaped[np.ndarray, " others"]
    columns: tuple[str, ...]


def adult(*, preparation: str = "paper", balanced: bool = True, seed: int = 0, path: PathLike = None) -> Split:
    """Return Adult: whether a person of the 1994 census earns more than 50,000 dollars (1) or not (0).

    Rows with a missing cell are dropped: 30,162 training rows, and 15,060 test rows of which 3,700 are positive. If
    `balanced`, `seed` draws as many of the negative test rows, 7,400 rows in all (the paper: 7,413).
    """
    _check(preparation, seed)
    raw = arrays(read("adult", path=path, columns=[*ADULT_NUMERIC, *ADULT_CATEGORIES, "income", "split"]))
    complete = ~np.any([raw[name] == "?" for name in ADULT_CATEGORIES], axis=0)
    # Test labels of the raw file end in a dot.
    y = np.char.startswith(raw["income"].astype(str), ">50K").astype(int)
    train = np.flatnonzero(complete & (raw["split"] == "train"))
    test = np.flatnonzero(complete & (raw["split"] == "test"))
    test = _balanced(test, y, seed) if balanced else test
    return _prepare(raw, y, train, test, preparation, ADULT_NUMERIC, ADULT_CATEGORIES, components=COMPONENTS)


def phishing(*, preparation: str = "paper", balanced: bool = False, seed: int = 0, path: PathLike = None) -> Split:
    """Return Phishing: whether a web site is legitimate (1) or phishing (0).

    As in the paper, whose code loses the first row: 8,844 training rows, the last 2,210 for testing, 1,230 of them
    positive. If `balanced`, `seed` draws as many positive test rows as there are negative ones. The thirty codes -1,
    0, 1 share one scale, so for the paper's components they are not standardised.
    """
    _check(preparation, seed)
    names = [name for name in column_names("phishing", path=path) if name != "Result"]
    raw = arrays(read("phishing", path=path, columns=[*names, "Result"]))
    y = (raw["Result"] == 1).astype(int)
    rows = np.arange(1, len(y))
    cut = len(rows) - int(0.2 * len(rows))
    test = _balanced(rows[cut:], y, seed) if balanced else rows[cut:]
    return _prepare(raw, y, rows[:cut], test, preparation, flags=names, components=COMPONENTS)


def hospital_readmissions(
    *,
    preparation: str = "paper",
    balanced: bool = True,
    seed: int = 0,
    path: PathLike = None,
    as_published: bool = False,
) -> Split:
    """Return Hospital Readmissions: whether a diabetes patient was admitted again (1) or not (0).

    One row a patient, in the order of patient numbers: of every column the first value that is not missing, by
    encounter. Only ``?`` is missing; ``None`` is a category (no test was made). The first 60,000 patients are for
    training. Diagnosis codes are taken as numbers and patients with other codes dropped, as the paper does: 55,163
    training rows, and 7,839 test rows of which 3,034 are positive. If `balanced`, `seed` draws as many negative test
    rows, 6,068 in all (the paper: 6,079). Patients who died (``discharge_disposition_id=11``) are among them.

    Parameters
    ----------
    preparation, balanced, seed, path
        As for all data sets.
    as_published
        The paper's code one-hot encodes the target along with the categories, so that the features hold the answer.
        True does the same, to compare with published numbers. Never use it to learn anything about patients.
    """
    _check(preparation, seed)
    raw, train, test = _hospital_patients(path)
    y = (raw["readmitted"] != "NO").astype(int)
    test = _balanced(test, y, seed) if balanced else test
    aside = {*HOSPITAL_UNUSED, *HOSPITAL_NUMERIC, *(() if as_published else ("readmitted",))}
    categories = [name for name in column_names("hospital_readmissions", path=path) if name not in aside]
    return _prepare(raw, y, train, test, preparation, HOSPITAL_NUMERIC, categories, components=COMPONENTS)


class HospitalGroup(NamedTuple):
    """What a group of patients has in common, and which of the three parts of its cell it is."""

    age: str
    race: str
    gender: str
    quality: int


def hospital_groups(*, seed: int = 0, path: PathLike = None) -> list[HospitalGroup | None]:
    """Return the group of every training row of `hospital_readmissions`, None for rows in no group.

    As in the paper: cells of age, race and gender with more than 40 patients, each split at random, by `seed`, in three
    parts that differ by one patient at most. The parts are called quality 0, 1 and 2; nothing but the name tells them
    apart, until an experiment makes them differ. Of the 55,163 rows 54,615 are in the 165 groups of 55 cells.
    """
    check_seed(seed)
    random = np.random.default_rng(seed)
    raw, train, _ = _hospital_patients(path, HOSPITAL_CELLS)
    cells: dict[tuple[str, str, str], list[int]] = {}
    for row, cell in enumerate(zip(*(raw[name][train] for name in HOSPITAL_CELLS), strict=True)):
        age, race, gender = map(str, cell)
        cells.setdefault((age, race, gender), []).append(row)
    groups: list[HospitalGroup | None] = [None] * len(train)
    for cell in sorted(cells):
        if len(cells[cell]) > SMALL_CELL:
            for place, row in enumerate(random.permutation(cells[cell])):
                groups[row] = HospitalGroup(*cell, place % 3)
    return groups


def boston_housing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Housing: the median value of homes in a Boston suburb, in 1,000 dollars.

    `seed` draws the paper's 446 training and 50 test rows; ten rows with which the paper starts are left out. The
    column ``B`` is a transformed share of Black residents, for which other libraries no longer offer this data set.
    """
    return _random_tenth("boston_housing", "MEDV", preparation, seed, path, aside=10)


def songs(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Songs: the year of release, from 90 numbers about the sound; `seed` draws a tenth for testing.

    The file known here is a subset of 8,162 rows: 7,346 and 816. Pass `path` for the full 515,345 rows, as Parquet with
    columns ``year``, ``timbre_avg_1`` to ``12`` and ``timbre_cov_1`` to ``78``.
    """
    names = [f"timbre_avg_{i}" for i in range(1, 13)] + [f"timbre_cov_{i}" for i in range(1, 79)]
    return _random_tenth("songs", "year", preparation, seed, path, numeric=names)


def webspam(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return WebSpam: whether a web page is spam (1) or not (0); `seed` draws a tenth for testing.

    The file known here is a sample of 500 rows, for trying things out. Pass `path` for more, as Parquet with a column
    ``label`` (positive for spam) and numeric columns.
    """
    split = _random_tenth("webspam", "label", preparation, seed, path)
    return split._replace(y_train=(split.y_train > 0).astype(int), y_test=(split.y_test > 0).astype(int))


def covtype(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Covertype: whether a patch of forest is lodgepole pine, class 2 of 7 (1), or not (0).

    Not in the paper: it stands in for the full WebSpam. `seed` draws a tenth of the 581,012 rows for testing.
    """
    names = column_names("covtype", path=path)
    flags = [name for name in names if name.startswith(("Wilderness_Area", "Soil_Type"))]
    numeric = [name for name in names if name not in flags and name != "Cover_Type"]
    split = _random_tenth("covtype", "Cover_Type", preparation, seed, path, numeric=numeric, flags=flags)
    return split._replace(y_train=(split.y_train == 2).astype(int), y_test=(split.y_test == 2).astype(int))


def california_housing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return California Housing (not in the paper): the median house value of a block group, in 100,000 dollars."""
    return _random_tenth("california_housing", "MedHouseVal", preparation, seed, path)


def bike_sharing(*, preparation: str = "paper", seed: int = 0, path: PathLike = None) -> Split:
    """Return Bike Sharing: the number of bicycles rented in an hour, from calendar and weather. Not in the paper.

    `seed` draws a tenth of the 17,379 rows for testing. The two parts that add up to the count are not among the
    features.
    """
    return _random_tenth("bike_sharing", "cnt", preparation, seed, path, BIKE_NUMERIC, BIKE_CATEGORIES, BIKE_FLAGS)


def _check(preparation: str, seed: int) -> None:
    check_choice("preparation", preparation, PREPARATIONS)
    check_seed(seed)


def _random_tenth(
    name: str,
    target: str,
    preparation: str,
    seed: int,
    path: PathLike,
    numeric: Sequence[str] | None = None,
    categories: Sequence[str] = (),
    flags: Sequence[str] = (),
    aside: int = 0,
) -> Split:
    """Return a data set of which a random tenth is for testing; by default all other columns are numeric."""
    _check(preparation, seed)
    if numeric is None:
        numeric = [column for column in column_names(name, path=path) if column != target]
    raw = arrays(read(name, path=path, columns=[*numeric, *categories, *flags, target]))
    rows = np.random.default_rng(seed).permutation(len(raw[target]))
    cut = len(rows) - len(rows) // 10
    y = raw[target].astype(np.float64)
    return _prepare(raw, y, rows[: cut - aside], rows[cut:], preparation, numeric, categories, flags)


def _prepare(
    raw: dict[str, np.ndarray],
    y: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    preparation: str,
    numeric: Sequence[str] = (),
    categories: Sequence[str] = (),
    flags: Sequence[str] = (),
    components: int | None = None,
) -> Split:
    """Return the split, in which flags are columns that the paper's preparation leaves as they are."""
    names, parts = [*numeric, *flags], []
    for name in names:
        column = raw[name].astype(np.float64)
        if preparation == "robust" or name not in flags:
            centre, scale = _location_scale(column[train], preparation)
            column = (column - centre) / scale
        parts.append(column)
    for name in categories:
        for level in np.unique(raw[name][train]):
            names.append(f"{name}={level}")
            parts.append((raw[name] == level).astype(np.float64))
    varies = [bool((column[train] != column[train[0]]).any()) for column in parts]
    names = [name for name, kept in zip(names, varies, strict=True) if kept]
    parts = [part for part, kept in zip(parts, varies, strict=True) if kept]
    x_train, x_test = (np.column_stack([part[rows] for part in parts]) for rows in (train, test))
    if components is not None and preparation == "paper":
        x_train, x_test = _principal_components(x_train, x_test, components)
        names = [f"component {i + 1}" for i in range(x_train.shape[1])]
    return Split(x_train, y[train], x_test, y[test], tuple(names))


def _location_scale(column: np.ndarray, preparation: str) -> tuple[float, float]:
    low, high = column.min(), column.max()
    if low == high:
        return low, 1.0
    if preparation == "paper":
        return column.mean(), column.std()
    if np.all((column == low) | (column == high)):
        return low, high - low
    centre, scale = robust_location_scale(column[:, None])
    return centre[0], scale[0]


def _principal_components(x_train: np.ndarray, x_test: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    mean = x_train.mean(0)
    _, vectors = np.linalg.eigh(np.cov(x_train, rowvar=False))
    axes = vectors[:, ::-1][:, :count]
    # An axis has no sign of its own; fixing it makes every machine return the same numbers.
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])
    return (x_train - mean) @ axes, (x_test - mean) @ axes


def _balanced(rows: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Return all rows of the rarer label and as many of the other, in their order."""
    few, many = sorted((rows[y[rows] == label] for label in (0, 1)), key=len)
    return np.sort(np.concatenate([few, np.random.default_rng(seed).permutation(many)[: len(few)]]))


def _hospital_patients(
    path: PathLike, needed: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return one row a patient, and which rows are for training and for testing, before balancing."""
    columns = ["encounter_id", "patient_nbr", *HOSPITAL_NUMERIC, "readmitted", *needed]
    everything = column_names("hospital_readmissions", path=path)
    raw = _first_encounters(read("hospital_readmissions", path=path, columns=dict.fromkeys([*columns, *everything])))
    raw |= {name: _as_numbers(raw[name]) for name in HOSPITAL_DIAGNOSES}
    coded = ~np.isnan(np.array([raw[name] for name in HOSPITAL_DIAGNOSES])).any(0)
    train, test = (rows[coded[rows]] for rows in np.split(np.arange(len(coded)), [HOSPITAL_TRAINING]))
    return raw, train, test


def _first_encounters(table: pa.Table) -> dict[str, np.ndarray]:
    """Return one row a patient, complete in all columns used, in the order of patient numbers."""
    used = [name for name in table.column_names if name not in HOSPITAL_UNUSED]
    columns = {"patient_nbr": table["patient_nbr"]}
    for name in used:
        column = table[name]
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        columns[name] = pc.if_else(pc.equal(column, "?"), None, column) if text else column
    by_encounter = pa.table(columns).take(pc.sort_indices(table["encounter_id"]))
    # Threads would see the encounters of a patient in any order.
    patients = by_encounter.group_by("patient_nbr", use_threads=False).aggregate([(name, "first") for name in used])
    columns_by_patient = arrays(patients.sort_by("patient_nbr").drop_null())
    return {name.removesuffix("_first"): column for name, column in columns_by_patient.items()}


def _as_numbers(codes: np.ndarray) -> np.ndarray:
    """Return codes as numbers; codes that begin with a letter become NaN."""
    return np.array([np.nan if code[0].isalpha() else float(code) for code in codes])
