"""Hospital Readmissions: diabetes patients, one row each, and the groups of patients of the β-Cores paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from betacores.checks import check_seed
from betacores.datasets.files import arrays, column_names, read
from betacores.datasets.splits import COMPONENTS, PathLike, Split, balanced_rows, check_settings, prepare

DIAGNOSES = ("diag_1", "diag_2", "diag_3")
NUMERIC = (
    *("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_outpatient"),
    *("number_emergency", "number_inpatient", *DIAGNOSES, "number_diagnoses"),
)
# Identifiers, and columns that are mostly missing.
UNUSED = ("encounter_id", "patient_nbr", "weight", "payer_code", "medical_specialty", "max_glu_serum")
TRAINING = 60_000
CELLS = ("age", "race", "gender")
# Cells of no more patients make no groups.
SMALL_CELL = 40


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
    check_settings(preparation, seed)
    raw, train, test = _patients(path)
    y = (raw["readmitted"] != "NO").astype(int)
    test = balanced_rows(test, y, seed) if balanced else test
    aside = {*UNUSED, *NUMERIC, *(() if as_published else ("readmitted",))}
    categories = [name for name in column_names("hospital_readmissions", path=path) if name not in aside]
    return prepare(raw, y, train, test, preparation, NUMERIC, categories, components=COMPONENTS)


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
    raw, train, _ = _patients(path, CELLS)
    cells: dict[tuple[str, str, str], list[int]] = {}
    for row, cell in enumerate(zip(*(raw[name][train] for name in CELLS), strict=True)):
        age, race, gender = map(str, cell)
        cells.setdefault((age, race, gender), []).append(row)
    groups: list[HospitalGroup | None] = [None] * len(train)
    for cell in sorted(cells):
        if len(cells[cell]) > SMALL_CELL:
            for place, row in enumerate(random.permutation(cells[cell])):
                groups[row] = HospitalGroup(*cell, place % 3)
    return groups


def _patients(path: PathLike, needed: Sequence[str] = ()) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return one row a patient, and which rows are for training and for testing, before balancing."""
    columns = ["encounter_id", "patient_nbr", *NUMERIC, "readmitted", *needed]
    everything = column_names("hospital_readmissions", path=path)
    raw = _first_encounters(read("hospital_readmissions", path=path, columns=dict.fromkeys([*columns, *everything])))
    raw |= {name: _as_numbers(raw[name]) for name in DIAGNOSES}
    coded = ~np.isnan(np.array([raw[name] for name in DIAGNOSES])).any(0)
    train, test = (rows[coded[rows]] for rows in np.split(np.arange(len(coded)), [TRAINING]))
    return raw, train, test


def _first_encounters(table: pa.Table) -> dict[str, np.ndarray]:
    """Return one row a patient, complete in all columns used, in the order of patient numbers."""
    used = [name for name in table.column_names if name not in UNUSED]
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
