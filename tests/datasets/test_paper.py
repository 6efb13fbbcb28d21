"""Prepared data sets: the paper's row counts, no leak, and nothing learned from test rows."""

import functools
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from betacores import datasets
from betacores.datasets import hospital, paper, splits
from betacores.datasets.files import FILES

ROWS = 60


def words(*levels, rows=ROWS):
    return np.resize(levels, rows)


def tiny_adult():
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, 50, ROWS) for name in paper.ADULT_NUMERIC}
    columns |= {name: rng.choice(["p", "q", "r"], ROWS) for name in paper.ADULT_CATEGORIES}
    columns["workclass"][:2] = "?"
    columns["split"] = np.where(np.arange(ROWS) < 40, "train", "test")
    columns["sex"][40:] = "only in test"
    columns["income"] = np.where(np.arange(ROWS) % 4 == 0, ">50K", "<=50K")
    columns["income"] = np.where(columns["split"] == "test", np.char.add(columns["income"], "."), columns["income"])
    return columns


def tiny_hospital():
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, 9, ROWS) for name in hospital.NUMERIC}
    columns |= {name: words("250", "8.5", "V27", "401") for name in hospital.DIAGNOSES}
    # Three encounters a patient, the latest first in the file.
    columns |= {"encounter_id": np.arange(ROWS)[::-1], "patient_nbr": np.arange(ROWS) % 20}
    columns |= {name: words("?") for name in hospital.UNUSED[2:]}
    columns["A1Cresult"] = rng.choice(["None", ">7"], ROWS)
    columns["race"] = np.where(np.arange(ROWS) >= 40, "?", words("A", "B", "C"))
    columns["examide"] = words("No")
    columns["readmitted"] = rng.choice(["NO", "<30", ">30"], ROWS)
    return columns


def tiny_phishing():
    rng = np.random.default_rng(3)
    return {f"f{i}": rng.integers(-1, 2, ROWS) for i in range(12)} | {"Result": words(1, -1)}


def tiny_bikes():
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(0, 4, ROWS) for name in (*paper.BIKE_CATEGORIES, "casual", "registered", "cnt")}
    columns |= {name: words(0, 1, 1) for name in paper.BIKE_FLAGS}
    return columns | {name: rng.normal(size=ROWS) for name in paper.BIKE_NUMERIC}


def tiny_numbers(target, *names):
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=ROWS) for name in names} | {target: rng.integers(0, 3, ROWS)}


TINY = {
    "adult": tiny_adult,
    "phishing": tiny_phishing,
    "hospital_readmissions": tiny_hospital,
    "boston_housing": lambda: tiny_numbers("MEDV", "CRIM", "RM"),
    "songs": lambda: tiny_numbers(
        "year", *(f"timbre_avg_{i}" for i in range(1, 13)), *(f"timbre_cov_{i}" for i in range(1, 79))
    ),
    "webspam": lambda: tiny_numbers("label", "f1", "f2") | {"f3": np.zeros(ROWS)},
    "covtype": lambda: tiny_numbers("Cover_Type", "Elevation") | {"Soil_Type1": words(0, 1, 1)},
    "california_housing": lambda: tiny_numbers("MedHouseVal", "MedInc"),
    "bike_sharing": tiny_bikes,
}
every = pytest.mark.parametrize("name", FILES)
preparations = pytest.mark.parametrize("preparation", splits.PREPARATIONS)


def write(path, columns):
    pq.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), path)
    return path


@every
@preparations
def test_tiny_files_are_prepared(tmp_path, name, preparation):
    path = write(tmp_path / "tiny.parquet", TINY[name]())
    load = functools.partial(getattr(datasets, name), preparation=preparation, path=path)
    split = load(seed=1)
    assert split.x_train.shape == (len(split.y_train), len(split.columns))
    assert split.x_test.shape == (len(split.y_test), len(split.columns))
    assert np.isfinite(split.x_train).all()
    assert np.isfinite(split.x_test).all()
    assert (np.ptp(split.x_train, axis=0) > 0).all()
    for one, two in zip(split, load(seed=1), strict=True):
        np.testing.assert_array_equal(one, two)


@every
@preparations
def test_test_rows_teach_nothing(tmp_path, monkeypatch, name, preparation):
    """Training rows come out the same when the features of the test rows are replaced."""
    monkeypatch.setattr(hospital, "TRAINING", 12)
    columns = TINY[name]()
    load = functools.partial(getattr(datasets, name), preparation=preparation)
    if name in ("adult", "phishing", "hospital_readmissions"):
        load = functools.partial(load, balanced=False)
    before = load(path=write(tmp_path / "before.parquet", columns))
    order = np.random.default_rng(0).permutation(ROWS)
    held = {
        "adult": np.arange(40, ROWS),
        "phishing": np.arange(ROWS - 11, ROWS),
        "hospital_readmissions": np.flatnonzero(np.arange(ROWS) % 20 >= 12),
    }.get(name, order[ROWS - 6 :])
    kept = ("Result", "label", "Cover_Type", "MEDV", "year", "cnt", "encounter_id", "patient_nbr")
    for feature, column in columns.items():
        if column.dtype.kind == "f":
            column[held] = 1e3
        elif column.dtype.kind == "i" and feature not in kept:
            column[held] = 77
    after = load(path=write(tmp_path / "after.parquet", columns))
    np.testing.assert_array_equal(before.x_train, after.x_train)
    assert before.columns == after.columns
    assert not np.array_equal(before.x_test, after.x_test)


def test_standardised_and_robust_columns(tmp_path):
    path = write(tmp_path / "tiny.parquet", TINY["covtype"]())
    split = paper.covtype(path=path)
    np.testing.assert_allclose([split.x_train[:, 0].mean(), split.x_train[:, 0].std()], [0, 1], atol=1e-12)
    assert set(split.x_train[:, 1]) == {0, 1}, "indicators stay"
    robust = paper.covtype(path=path, preparation="robust").x_train[:, 0]
    np.testing.assert_allclose([np.median(robust), np.median(np.abs(robust))], [0, 1 / 1.4826], atol=1e-12)


def test_components_are_those_of_the_covariance(tmp_path):
    path = write(tmp_path / "tiny.parquet", TINY["adult"]())
    x = paper.adult(path=path).x_train
    covariance = np.cov(x, rowvar=False)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    assert (np.diff(np.diag(covariance)) <= 1e-12).all()
    np.testing.assert_allclose(x.mean(0), 0, atol=1e-12)


def test_adult_drops_missing_rows_reads_dotted_labels_and_balances(tmp_path):
    path = write(tmp_path / "tiny.parquet", tiny_adult())
    split = paper.adult(path=path, preparation="robust", balanced=False)
    assert (len(split.y_train), len(split.y_test), split.y_test.sum()) == (38, 20, 5)
    sex = [j for j, name in enumerate(split.columns) if name.startswith("sex=")]
    assert (split.x_train[:, sex].sum(1) == 1).all()
    assert not split.x_test[:, sex].any(), "a level unseen in training is zero everywhere"
    one, two = (paper.adult(path=path, seed=seed) for seed in (0, 1))
    assert (len(one.y_test), one.y_test.sum()) == (10, 5)
    np.testing.assert_array_equal(one.x_train, two.x_train)
    assert not np.array_equal(one.x_test, two.x_test)


def test_hospital_takes_first_known_values_by_encounter(tmp_path):
    columns = tiny_hospital()
    split = hospital.hospital_readmissions(path=write(tmp_path / "tiny.parquet", columns), preparation="robust")
    # The first encounter of patient p is row 40 + p; its race is missing and comes from row 20 + p.
    rows = [40 + p for p in range(20) if columns["diag_1"][40 + p] != "V27"]
    np.testing.assert_array_equal(split.y_train, columns["readmitted"][rows] != "NO")
    race = split.columns.index("race=B")
    np.testing.assert_array_equal(split.x_train[:, race], columns["race"][[row - 20 for row in rows]] == "B")
    none = split.columns.index("A1Cresult=None")
    np.testing.assert_array_equal(split.x_train[:, none], columns["A1Cresult"][rows] == "None")
    assert not any(name.startswith(("readmitted", "examide", "weight", "patient")) for name in split.columns)


def tiny_cells():
    """Patients of three cells: five old women, nine old men, six young men; two of them are dropped for their codes."""
    columns = tiny_hospital()
    patient = columns["patient_nbr"]
    columns |= {"race": words("A"), "age": np.where(patient < 14, "[80-90)", "[20-30)")}
    columns["gender"] = np.where(patient < 5, "Female", "Male")
    columns |= {name: np.where(patient % 10 == 6, "V27", "250") for name in hospital.DIAGNOSES}
    return columns


def test_hospital_groups_are_parts_of_cells(tmp_path, monkeypatch):
    monkeypatch.setattr(hospital, "SMALL_CELL", 5)
    path = write(tmp_path / "tiny.parquet", tiny_cells())
    groups = hospital.hospital_groups(path=path)
    split = hospital.hospital_readmissions(path=path)
    assert len(groups) == len(split.y_train) == 18
    assert groups[:5] == [None] * 5, "five women are too few for groups"
    assert groups[13:] == [None] * 5, "and of the six young men one was dropped"
    sizes = Counter(groups[5:13])
    assert sizes.keys() == {("[80-90)", "A", "Male", quality) for quality in range(3)}
    assert sorted(sizes.values()) == [2, 3, 3]
    assert hospital.hospital_groups(path=path) == groups
    assert any(hospital.hospital_groups(path=path, seed=seed) != groups for seed in range(1, 4))


def test_hospital_groups_need_their_columns(tmp_path):
    with pytest.raises(ValueError, match="lacks columns: 'age', 'gender'"):
        hospital.hospital_groups(path=write(tmp_path / "tiny.parquet", tiny_hospital()))


@pytest.mark.data
def test_real_hospital_groups():
    split, groups = real("hospital_readmissions"), real_groups(0)
    assert len(groups) == len(split.y_train)
    sizes = Counter(group for group in groups if group is not None)
    assert (len(sizes), sizes.total()) == (165, 54_615)
    for cell in {group[:3] for group in sizes}:
        parts = [sizes[hospital.HospitalGroup(*cell, quality)] for quality in range(3)]
        assert sum(parts) > 40
        assert max(parts) - min(parts) <= 1
    again, other = hospital.hospital_groups(seed=0), hospital.hospital_groups(seed=1)
    assert again == groups
    assert other != groups
    assert [g and g[:3] for g in other] == [g and g[:3] for g in groups], "the seed moves no row to another cell"


@pytest.mark.data
def test_real_hospital_groups_tell_age_and_gender_of_their_rows():
    split, groups = real("hospital_readmissions", preparation="robust"), real_groups(0)
    for name, place in (("age", 0), ("race", 1), ("gender", 2)):
        for level in {group[place] for group in groups if group is not None}:
            column = split.x_train[:, split.columns.index(f"{name}={level}")]
            assert all(column[row] == (group[place] == level) for row, group in enumerate(groups) if group is not None)


def test_bad_requests_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'robust'"):
        paper.adult(preparation="robst")
    columns = tiny_hospital()
    del columns["readmitted"]
    with pytest.raises(ValueError, match="lacks columns: 'readmitted'"):
        hospital.hospital_readmissions(path=write(tmp_path / "tiny.parquet", columns))


@functools.cache
def real(name, **settings):
    try:
        return getattr(datasets, name)(**settings)
    except FileNotFoundError:
        pytest.skip(f"BETACORES_DATA does not hold {FILES[name].file}")


@functools.cache
def real_groups(seed):
    real("hospital_readmissions")  # Skips where the file is missing.
    return hospital.hospital_groups(seed=seed)


# Training rows, columns, test rows, and positive training and test rows where labels are counted.
FACTS = {
    "adult": (30_162, 10, 7_400, 7_508, 3_700),
    "phishing": (8_844, 10, 2_210, 4_927, 1_230),
    "hospital_readmissions": (55_163, 10, 6_068, 22_540, 3_034),
    "boston_housing": (446, 13, 50),
    "songs": (7_346, 90, 816),
    "webspam": (450, 99, 50),
    "covtype": (522_911, 54, 58_101),
    "california_housing": (18_576, 8, 2_064),
    "bike_sharing": (15_642, 58, 1_737),
}


@pytest.mark.data
@every
def test_real_row_counts(name):
    split = real(name)
    expected = FACTS[name]
    assert (*split.x_train.shape, len(split.x_test)) == expected[:3]
    if len(expected) > 3:
        assert (split.y_train.sum(), split.y_test.sum()) == expected[3:]


@pytest.mark.data
def test_real_test_sets_before_balancing():
    for name, rows, positive in [("adult", 15_060, 3_700), ("hospital_readmissions", 7_839, 3_034)]:
        y = real(name, balanced=False).y_test
        assert (len(y), y.sum()) == (rows, positive)
    assert real("phishing", balanced=True).y_test.mean() == 0.5


@pytest.mark.data
def test_real_classes_of_covtype():
    split = real("covtype")
    assert split.y_train.sum() + split.y_test.sum() == 283_301


def explained(split):
    """Return the share of the label's variance that a straight line in all features explains."""
    x = np.column_stack([split.x_train, np.ones(len(split.x_train))])
    y = split.y_train
    return 1 - (y - x @ np.linalg.lstsq(x, y, rcond=None)[0]).var() / y.var()


@pytest.mark.data
def test_no_feature_holds_the_hospital_target():
    split = real("hospital_readmissions", preparation="robust")
    y = split.y_train
    for name, column in zip(split.columns, split.x_train.T, strict=True):
        assert abs(np.corrcoef(column, y)[0, 1]) < 0.2, name
        if name == "discharge_disposition_id=11":
            continue  # The patient died: this settles the answer, but was known before it.
        if len(values := np.unique(column)) == 2 and min((column == value).sum() for value in values) > 100:
            assert all(0.02 < y[column == value].mean() < 0.98 for value in values), name
    assert explained(split) < 0.1


@pytest.mark.data
def test_the_published_leak_is_there_only_when_asked_for():
    leaky = real("hospital_readmissions", preparation="robust", as_published=True)
    assert {"readmitted=NO", "readmitted=<30", "readmitted=>30"} <= set(leaky.columns)
    assert explained(leaky) > 0.999


@pytest.mark.data
def test_bike_features_do_not_add_up_to_the_count():
    assert not {"casual", "registered", "cnt", "instant"} & set(real("bike_sharing").columns)
