"""The lines that every program begins with: reading a saved coreset without betacores.

Names of columns never become part of a program: columns are found by position, so that no quotation mark, newline or
`<script>` among them breaks anything. Numbers are written out; vectors and matrices are read from `summary.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.export.ingredients import has_intercept

if TYPE_CHECKING:
    from betacores.coreset import Coreset

KINDS = {"gaussian-mean": "the mean of Gaussian rows", "linear": "linear regression", "logistic": "logistic regression"}


def opening(coreset: Coreset, tool: str, packages: str) -> str:
    """Return the first lines of a program: what it does and what it needs."""
    rows = "1 weighted row" if len(coreset) == 1 else f"{len(coreset)} weighted rows"
    return f'"""{tool}: {KINDS[coreset.model.name]} from {rows}. Needs {packages}."""\n\n'


def imports(coreset: Coreset, *own: str) -> str:
    """Return the imports of a program, its own among those that reading needs."""
    lines = ["import numpy as np", "import pyarrow.parquet as pq", *own]
    first = ["import json"] if _stored(coreset) else []
    ordered = sorted(lines, key=lambda line: (line.startswith("from"), line.split()[1].lower()))
    return "\n".join([*first, "from pathlib import Path", "", *ordered]) + "\n"


def reading(coreset: Coreset, folder: str | Path) -> str:
    """Return the lines that read rows, weights, prior and noise."""
    lines = [
        f"folder = Path({str(folder)!r})  # where coreset.save(...) wrote it",
        'table = pq.read_table(folder / "coreset.parquet")',
        *_rows(coreset),
        "",
        *_prior(coreset),
        *_spread(coreset),
    ]
    return "\n".join(lines) + "\n"


def _rows(coreset: Coreset) -> list[str]:
    first = 2 if coreset.y is None else 3
    stands = "number of the row, weight" if coreset.y is None else "number of the row, response, weight"
    lines = [
        f"# By position, since columns may be called anything: {stands}, then the columns of the model.",
        f"weights = table.column({first - 1}).to_numpy()",
        f"x = np.column_stack([column.to_numpy() for column in table.columns[{first}:]]).astype(float)",
    ]
    if coreset.model.name == "linear":
        lines.append("y = table.column(1).to_numpy().astype(float)")
    if coreset.model.name == "logistic":
        low, high = _label(coreset, 0), _label(coreset, 1)
        lines.append(f"# One is {high}, zero is {low}.")
        lines.append(f"y = np.array([label == {high} for label in table.column(1).to_pylist()]).astype(int)")
    if has_intercept(coreset):
        lines.append("z = np.column_stack([x, np.ones(len(x))])  # the last parameter is the intercept")
        lines.append(f'names = [*table.column_names[{first}:], "intercept"]')
    else:
        lines += ["z = x"] if coreset.y is not None else []
        lines.append(f"names = table.column_names[{first}:]")
    return lines


def _label(coreset: Coreset, which: int) -> str:
    assert coreset.labels is not None  # a binary response has two labels
    value = coreset.labels.tolist()[which]
    kinds: tuple[type, ...] = (bool, int, float, str, bytes)
    for kind in kinds:
        if isinstance(value, kind):
            # A plain value of the kind: NumPy's own would show itself as `np.str_('yes')`.
            return repr(kind(value))
    raise ValueError(
        f"labels: {value!r} is of type {type(value).__name__}, which a program cannot spell; use words or numbers."
    )


def _stored(coreset: Coreset) -> bool:
    """Return whether a setting of the model is too long to be written out."""
    prior, whitener = coreset.model.prior, getattr(coreset.model, "whitener", 1.0)
    return any(np.ndim(part) for part in (prior.mean, prior.precision, whitener))


def _prior(coreset: Coreset) -> list[str]:
    prior = coreset.model.prior
    lines = ["# The prior is N(prior_mean, prior_scale @ prior_scale.T)."]
    if _stored(coreset):
        lines.append(
            'settings = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["model"]["settings"]'
        )
    mean = 'settings["prior"]["mean"]' if np.ndim(prior.mean) else repr(float(prior.mean))
    lines.append(f"prior_mean = np.full(len(names), {mean})")
    lines.append("prior_scale = " + _factor(prior.precision, 'settings["prior"]["precision"]'))
    return lines


def _spread(coreset: Coreset) -> list[str]:
    """Return what the likelihood needs beside the parameters."""
    if coreset.model.name == "linear":
        return [f"noise = {float(coreset.model.noise)!r}"]  # type: ignore[attr-defined]
    if coreset.model.name != "gaussian-mean":
        return []
    whitener = np.asarray(coreset.model.whitener)  # type: ignore[attr-defined]
    comment = "# Rows scatter about the mean with covariance spread @ spread.T."
    if whitener.ndim == 2:
        return [comment, 'whitener = np.array(settings["whitener"])', "spread = " + _matrix("whitener.T @ whitener")]
    if whitener.ndim == 1:
        return [comment, 'spread = np.diag(1 / np.array(settings["whitener"]))']
    return [comment, f"spread = np.diag(np.full(len(names), {float(1 / whitener)!r}))"]


def _factor(precision: np.ndarray, stored: str) -> str:
    if np.ndim(precision) == 2:
        return _matrix(stored)
    deviation = f"np.array({stored}) ** -0.5" if np.ndim(precision) else repr(float(precision) ** -0.5)
    return f"np.diag(np.full(len(names), {deviation}))"


def _matrix(precision: str) -> str:
    return f"np.linalg.cholesky(np.linalg.inv({precision}))"
