"""The lines that every program begins with: reading a saved coreset without betacores.

Names of columns never become part of a program: columns are found by position, so that no quotation mark, newline or
`<script>` among them breaks anything. Numbers are written out; vectors and matrices are read from `summary.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from betacores.export.ingredients import further_prior, has_intercept, prior_of
from betacores.models.one_further import OneFurther

if TYPE_CHECKING:
    from betacores.coreset import Coreset

KINDS = {
    "gaussian-mean": "the mean of Gaussian rows",
    "linear": "linear regression",
    "logistic": "logistic regression",
    "noisy-logistic": "logistic regression with flipped labels",
    "softmax": "softmax regression",
    "poisson": "Poisson regression",
    "negative-binomial": "negative binomial regression",
}
# Of models whose last parameter is no coefficient.
FURTHER_NAMES = {
    "negative-binomial": "logarithm of the dispersion",
    "noisy-logistic": "log-odds of twice the rate of flips",
}


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
    if coreset.model.name in ("logistic", "noisy-logistic"):
        low, high = _label(coreset, 0), _label(coreset, 1)
        lines.append(f"# One is {high}, zero is {low}.")
        lines.append(f"y = np.array([label == {high} for label in table.column(1).to_pylist()]).astype(int)")
    if coreset.model.name == "softmax":
        assert coreset.labels is not None  # several classes have labels
        labels = ", ".join(_label(coreset, place) for place in range(len(coreset.labels)))
        lines.append(f"labels = [{labels}]")
        lines.append("y = np.array([labels.index(label) for label in table.column(1).to_pylist()])")
    lines.append(f"names = table.column_names[{first}:]")
    if coreset.model.name in ("poisson", "negative-binomial"):
        lines += _counts(coreset)
    if has_intercept(coreset):
        lines.append("z = np.column_stack([x, np.ones(len(x))])  # the last coefficient is the intercept")
        lines.append('names = [*names, "intercept"]')
    else:
        lines += ["z = x"] if coreset.y is not None else []
    if coreset.model.name == "softmax":
        lines.append('names = [f"{name} ({label})" for label in labels[1:] for name in names]')
    if isinstance(coreset.model, OneFurther) and coreset.model.further:
        lines.append(f'names = [*names, "{coreset.parameter_names[-1]}"]')
    return lines


def _counts(coreset: Coreset) -> list[str]:
    """Return the lines that read counts and their exposure."""
    lines, column = ["y = table.column(1).to_numpy().astype(int)"], coreset.model.column  # type: ignore[attr-defined]
    if column is None:
        return [*lines, "log_exposure = np.zeros(len(x))"]
    exposure = f"x[:, {column}]"
    logarithm = exposure if coreset.model.offset is not None else f"np.log({exposure})"  # type: ignore[attr-defined]
    return [
        *lines,
        f"log_exposure = {logarithm}  # it has no coefficient",
        f"x, names = np.delete(x, {column}, axis=1), names[:{column}] + names[{column + 1}:]",
    ]


def _label(coreset: Coreset, which: int) -> str:
    assert coreset.labels is not None  # a response of labels has some
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
    prior, whitener = prior_of(coreset.model), getattr(coreset.model, "whitener", 1.0)
    return any(np.ndim(part) for part in (prior.mean, prior.precision, whitener))


def _prior(coreset: Coreset) -> list[str]:
    model, prior = coreset.model, prior_of(coreset.model)
    extra = model if isinstance(model, OneFurther) and model.further else None
    count, key = (
        f"len(names){' - 1' * (extra is not None)}",
        "coefficient_prior" if hasattr(model, "coefficient_prior") else "prior",
    )
    lines = ["# The prior is N(prior_mean, prior_scale @ prior_scale.T)."]
    if _stored(coreset):
        lines.append(
            'settings = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["model"]["settings"]'
        )
    mean = f'settings["{key}"]["mean"]' if np.ndim(prior.mean) else repr(float(prior.mean))
    lines.append(f"prior_mean = np.full({count}, {mean})")
    lines.append("prior_scale = " + _factor(prior.precision, f'settings["{key}"]["precision"]', count))
    if extra is not None:
        own, width = further_prior(extra)
        lines.append(f"# The {FURTHER_NAMES[model.name]} has a prior of its own.")
        lines.append(f"prior_mean = np.append(prior_mean, {own!r})")
        lines.append("prior_scale = np.pad(prior_scale, (0, 1))")
        lines.append(f"prior_scale[-1, -1] = {width!r}")
    return lines


def _spread(coreset: Coreset) -> list[str]:
    """Return what the likelihood needs beside the parameters."""
    if coreset.model.name == "linear":
        return [f"noise = {float(coreset.model.noise)!r}"]  # type: ignore[attr-defined]
    if getattr(coreset.model, "dispersion", None) is not None:
        return [f"dispersion = {float(coreset.model.dispersion)!r}"]  # type: ignore[attr-defined]
    if getattr(coreset.model, "rate", None) is not None:
        return [f"rate = {float(coreset.model.rate)!r}"]  # type: ignore[attr-defined]
    if coreset.model.name != "gaussian-mean":
        return []
    whitener = np.asarray(coreset.model.whitener)  # type: ignore[attr-defined]
    comment = "# Rows scatter about the mean with covariance spread @ spread.T."
    if whitener.ndim == 2:
        return [comment, 'whitener = np.array(settings["whitener"])', "spread = " + _matrix("whitener.T @ whitener")]
    if whitener.ndim == 1:
        return [comment, 'spread = np.diag(1 / np.array(settings["whitener"]))']
    return [comment, f"spread = np.diag(np.full(len(names), {float(1 / whitener)!r}))"]


def _factor(precision: np.ndarray, stored: str, count: str = "len(names)") -> str:
    if np.ndim(precision) == 2:
        return _matrix(stored)
    deviation = f"np.array({stored}) ** -0.5" if np.ndim(precision) else repr(float(precision) ** -0.5)
    return f"np.diag(np.full({count}, {deviation}))"


def _matrix(precision: str) -> str:
    return f"np.linalg.cholesky(np.linalg.inv({precision}))"
