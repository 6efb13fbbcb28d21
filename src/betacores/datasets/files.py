"""Where the raw data files lie: looked for in a few places, checked, and never downloaded.

Each data set is one Parquet file with the values of its public source. A file is looked for in the folder named by the
environment variable ``BETACORES_DATA``, then in ``betacores/`` of the user's cache folder; the first one found counts,
and its SHA-256 must be the one kept here, so that results mean the same everywhere. A file handed over by ``path=`` is
taken as it is, since it may be the full data set where only a part is known here; it must have the columns needed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from betacores.checks import check_choice


class DataFile(NamedTuple):
    """A file's name, the SHA-256 of its bytes, and where its content comes from."""

    file: str
    sha256: str
    source: str


FILES = {
    "adult": DataFile(
        "adult.parquet",
        "41785a47aa19a871e23598cbdb93a167cdd7995fcf29b964b14f8ea94805f3d8",
        "UCI Machine Learning Repository: Adult (adult.data and adult.test)",
    ),
    "phishing": DataFile(
        "phishing.parquet",
        "65586d732a043e3490021b779b48abe1c29c5924eebf85c987f404531ac228f2",
        "UCI Machine Learning Repository: Phishing Websites (Training Dataset.arff)",
    ),
    "hospital_readmissions": DataFile(
        "hospital_readmissions.parquet",
        "4851a059e80b6ff097e7ff28ccf269daf0e7c4dd9c9a0a94a1d5bc83887a4f5c",
        "UCI Machine Learning Repository: Diabetes 130-US Hospitals for Years 1999-2008 (diabetic_data.csv)",
    ),
    "boston_housing": DataFile(
        "boston_housing.parquet",
        "520da012d198624447b095c6f8b5052ac91a13f5c0e452e7861751dcf190ccb7",
        "UCI Machine Learning Repository: Housing (housing.data)",
    ),
    "songs": DataFile(
        "songs_subset.parquet",
        "6dd3074a3fcb461cada894868bed39c8854519b02df969b2ac17ba7f9c687275",
        "UCI Machine Learning Repository: YearPredictionMSD (8,162 of its 515,345 rows)",
    ),
    "webspam": DataFile(
        "webspam_sample500.parquet",
        "aecb0f140d5a62ce6a90d9078a948755b466fe502fb90b0b8cf7ac37d34b7de4",
        "LIBSVM data: webspam, unigram (500 of its 350,000 rows)",
    ),
    "covtype": DataFile(
        "covtype.parquet",
        "083047ed4d45f1868f987df5e2af8c132fd64aca979a788347c313919237c59a",
        "UCI Machine Learning Repository: Covertype (covtype.data)",
    ),
    "california_housing": DataFile(
        "california_housing.parquet",
        "9f4b4ce281db8ef0d619b580c39cc72aa4d760bd918727699075ce10221638e3",
        "StatLib: California Housing, in scikit-learn's derived form",
    ),
    "bike_sharing": DataFile(
        "bike_sharing_hour.parquet",
        "79e744515f62540b309e9f254283f3b81eb0700b752b2f1278f1d4ce7fba0d6d",
        "UCI Machine Learning Repository: Bike Sharing (hour.csv)",
    ),
}


def find(name: str, *, path: str | os.PathLike[str] | None = None, columns: Iterable[str] = ()) -> Path:
    """Return the Parquet file of a data set.

    Parameters
    ----------
    name
        One of `FILES`.
    path
        A Parquet file to take instead; only its columns are checked.
    columns
        Columns the file must have.

    Raises
    ------
    FileNotFoundError
        When there is no such file: says where it was looked for and where its content comes from.
    ValueError
        When the file found is not the one known here, or lacks columns.
    """
    known = FILES[check_choice("name", name, FILES)]
    if path is not None:
        found = Path(path)
        if not found.is_file():
            raise FileNotFoundError(f"path: {found} is not a file; expected a Parquet file of {known.source}.")
    else:
        found = _look_for(known)
        received = hashlib.sha256(found.read_bytes()).hexdigest()
        if received != known.sha256:
            raise ValueError(
                f"{found} is not the file known for {name!r}: its SHA-256 is {received}, expected {known.sha256}. "
                "Replace it, or pass path= to use it as it is."
            )
    _check_columns(found, columns)
    return found


def read(name: str, *, path: str | os.PathLike[str] | None = None, columns: Iterable[str]) -> pa.Table:
    """Return columns of a data set, found as by `find`."""
    columns = list(columns)
    return pq.read_table(find(name, path=path, columns=columns), columns=columns)


def column_names(name: str, *, path: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the names of all columns of a data set, for those whose number of columns is open."""
    return pq.read_schema(find(name, path=path)).names


def arrays(table: pa.Table) -> dict[str, np.ndarray]:
    """Return the columns of a table by name."""
    return {name: table[name].to_numpy() for name in table.column_names}


def places() -> list[Path]:
    """Return the folders that are looked into, in this order."""
    folders = []
    if given := os.environ.get("BETACORES_DATA"):
        folders.append(Path(given).expanduser())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say to ignore a relative folder: it would mean another place for each working directory.
    folders.append((Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "betacores")
    return folders


def _look_for(known: DataFile) -> Path:
    folders = places()
    for folder in folders:
        if (folder / known.file).is_file():
            return folder / known.file
    hint = "" if os.environ.get("BETACORES_DATA") else " (BETACORES_DATA is not set)"
    raise FileNotFoundError(
        f"{known.file} was not found in {' or '.join(map(str, folders))}{hint}. Nothing is downloaded: put the file "
        f"there, set BETACORES_DATA to its folder, or pass path=. Its content is that of {known.source}."
    )


def _check_columns(found: Path, columns: Iterable[str]) -> None:
    try:
        present = set(pq.read_schema(found).names)
    except pa.ArrowInvalid:
        raise ValueError(f"{found} is not a Parquet file; write the table as Parquet first.") from None
    missing = [name for name in columns if name not in present]
    if missing:
        listed = ", ".join(map(repr, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise ValueError(f"{found} lacks columns: {listed}; rename its columns or choose another file.")
