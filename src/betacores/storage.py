"""Coresets on disk: a folder of Parquet and JSON.

=====================  ====================================================================
``coreset.parquet``    the chosen rows with their numbers and weights, for any other tool
``path.parquet``       every row ever inserted, and its weight after each outer iteration
``scores.parquet``     the scores of every input row, and the number of its group if there are groups
``summary.json``       everything else: version, model, settings, timings, warnings
=====================  ====================================================================

With these may stand files that others made of the coreset, a report for example. The folder is written under another
name first and put in place at the end: a broken run leaves nothing half done.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from betacores.constructions.path import Path
from betacores.coreset import Coreset
from betacores.groups import Groups
from betacores.info import Info
from betacores.labels import as_json, from_json, in_microseconds
from betacores.models import MODELS, GaussianPrior, Model
from betacores.names import distinct
from betacores.quality import KLEstimate
from betacores.row_numbers import read_numbers, write_numbers

FORMAT = 3


def save(
    coreset: Coreset,
    folder: FilePath,
    *,
    overwrite: bool = False,
    run: Mapping[str, Any] | None = None,
    extra: Mapping[str, str | bytes] | None = None,
) -> FilePath:
    """Write a coreset to a folder.

    Parameters
    ----------
    coreset, folder
        What to write, and where.
    overwrite
        Whether a coreset that is there may be replaced.
    run
        What else is to be known of how it came about, for ``summary.json``; see `read_run`.
    extra
        Further files by their names, put in place together with the others.
    """
    if folder.exists() and not overwrite:
        raise FileExistsError(f"{folder} exists already; pass overwrite=True to replace it.")
    if folder.exists() and not is_coreset(folder):
        raise FileExistsError(f"{folder} is not a saved coreset and will not be replaced; choose another place.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = FilePath(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        iterations = np.asarray(coreset.path.weights).T
        kept = _table(coreset.columns, coreset.indices, coreset.X, coreset.y, pa.array(coreset.weights))
        path = _table(coreset.columns, coreset.path.indices, coreset.path_X, coreset.path_y, pa.array(list(iterations)))
        pq.write_table(kept, draft / "coreset.parquet")
        pq.write_table(path, draft / "path.parquet")
        write_numbers(
            draft / "scores.parquet",
            {
                "score": coreset.scores,
                "covariate_score": coreset.covariate_scores,
                "group": None if coreset.grouping is None else coreset.grouping.codes,
            },
        )
        about = _summary(coreset) | ({} if run is None else {"run": _plain(dict(run))})
        text = json.dumps(about, indent=2, allow_nan=False)
        (draft / "summary.json").write_text(text + "\n", encoding="utf-8")
        for name, content in (extra or {}).items():
            (draft / name).write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        draft.chmod(0o755)
        _put_in_place(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return folder


def _put_in_place(draft: FilePath, folder: FilePath) -> None:
    """Rename the draft; what it replaces is there until then, and comes back if that fails."""
    if not folder.exists():
        draft.rename(folder)
        return
    aside = FilePath(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        folder.rename(aside / "old")
        try:
            draft.rename(folder)
        except BaseException:
            (aside / "old").rename(folder)
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def read_run(folder: FilePath) -> dict[str, Any] | None:
    """Return what `save` was told of the run; None if it was told nothing, or there is no coreset."""
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return summary.get("run") if isinstance(summary, dict) and "betacores" in summary else None


def load(path: str | FilePath, *, model: Model | None = None) -> Coreset:
    """Read a coreset that `Coreset.save` wrote.

    Parameters
    ----------
    path
        The folder.
    model
        The model, needed only if it is not one of the built-in ones.
    """
    folder = FilePath(path)
    if not (folder / "summary.json").is_file():
        raise FileNotFoundError(f"{folder} holds no saved coreset (summary.json is missing).")
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    if summary.get("format") != FORMAT:
        raise ValueError(
            f"{folder} has format {summary.get('format')!r}, this version reads {FORMAT}; install a matching betacores."
        )
    if model is None:
        model = _model_from(summary["model"])
    else:
        model = model.bound(summary["columns"], _labels_from(summary)).restored(summary["model"]["settings"])
    kept, rows = pq.read_table(folder / "coreset.parquet"), pq.read_table(folder / "path.parquet")
    scores = read_numbers(folder / "scores.parquet")
    info = Info(**summary["info"])
    if info.kl_estimate is not None:
        info.kl_estimate = KLEstimate(*info.kl_estimate)
    columns = summary["columns"]
    iterations = [np.asarray(w, np.float64) for w in rows["weight"].to_pylist()]
    count = summary["iterations"]
    weights = np.stack(iterations, axis=1) if iterations else np.zeros((count, 0))
    return Coreset(
        indices=kept["row"].to_numpy().astype(summary["dtypes"]["row"]),
        weights=kept["weight"].to_numpy(),
        X=_matrix(kept, columns),
        y=_response(kept, summary),
        scores=scores["score"],
        covariate_scores=scores.get("covariate_score"),
        contamination=summary["contamination"],
        contamination_interval=tuple(summary["contamination_interval"]),
        model=model,
        method=summary["method"],
        beta=summary["beta"],
        info=info,
        columns=columns,
        labels=_labels_from(summary),
        path=Path(rows["row"].to_numpy().astype(summary["dtypes"]["row"]), weights),
        path_X=_matrix(rows, columns),
        path_y=_response(rows, summary),
        grouping=Groups(list(map(from_json, summary["groups"])), scores["group"]) if "groups" in summary else None,
    )


def _labels_from(summary: dict[str, Any]) -> np.ndarray | None:
    if summary["labels"] is None:
        return None
    labels = map(from_json, summary["labels"])
    return np.fromiter(labels, object, len(summary["labels"])).astype(summary["dtypes"]["y"])


def is_coreset(folder: FilePath) -> bool:
    """Return whether a folder is a saved coreset."""
    try:
        return "betacores" in json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False


def _table(columns: list[str], indices: np.ndarray, x: np.ndarray, y: np.ndarray | None, weights: pa.Array) -> pa.Table:
    # Names of input columns may be anything, even "weight"; position tells them apart.
    names = ["row", *(["y"] if y is not None else []), "weight", *columns]
    arrays = [pa.array(indices), *([pa.array(y)] if y is not None else []), weights]
    arrays += [pa.array(np.ascontiguousarray(x[:, j])) for j in range(x.shape[1])]
    return pa.Table.from_arrays(arrays, names=distinct(names))


def _matrix(table: pa.Table, columns: list[str]) -> np.ndarray:
    first = table.num_columns - len(columns)
    values = [table.column(first + j).to_numpy() for j in range(len(columns))]
    return np.column_stack(values) if values else np.empty((table.num_rows, 0))


def _response(table: pa.Table, summary: dict[str, Any]) -> np.ndarray | None:
    if summary["dtypes"]["y"] is None:
        return None
    return np.asarray(table.column(1).to_pylist()).astype(summary["dtypes"]["y"])


def _summary(coreset: Coreset) -> dict[str, Any]:
    from betacores import __version__

    return {
        "format": FORMAT,
        "betacores": __version__,
        "model": {"name": coreset.model.name, "settings": _plain(vars(coreset.model))},
        "method": coreset.method,
        "beta": coreset.beta,
        "contamination": coreset.contamination,
        "contamination_interval": list(coreset.contamination_interval),
        "rows": coreset.row_count,
        "kept": len(coreset),
        "iterations": len(coreset.path.weights),
        "columns": coreset.columns,
        "labels": None if coreset.labels is None else list(map(as_json, in_microseconds(coreset.labels).tolist())),
        "dtypes": {"row": str(coreset.indices.dtype), "y": None if coreset.y is None else coreset.y.dtype.str},
        "info": _plain(vars(coreset.info)),
        **({} if coreset.grouping is None else {"groups": list(map(as_json, coreset.grouping.labels))}),
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it, exactly."""
    if isinstance(value, GaussianPrior):
        return {"mean": _plain(value.mean), "precision": _plain(value.precision)}
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode("latin-1")
    return getattr(value, "__name__", repr(value)) if callable(value) else value


def _model_from(stored: dict[str, Any]) -> Model:
    if stored["name"] not in MODELS:
        raise ValueError(f"The model {stored['name']!r} is not built in; pass it: load(path, model=...).")
    # Restored attribute by attribute, past the constructor: its derived numbers must come back exactly.
    model = object.__new__(MODELS[stored["name"]])
    for name, value in stored["settings"].items():
        if isinstance(value, dict):
            # Priors are all that is stored as a dictionary.
            value = GaussianPrior(np.asarray(value["mean"]), np.asarray(value["precision"]))
        if isinstance(value, list):
            # Arrays hold floating-point numbers; whole numbers are a shape, and part of the program.
            value = tuple(value) if value and all(isinstance(one, int) for one in value) else np.asarray(value)
        vars(model)[name] = value
    return model
