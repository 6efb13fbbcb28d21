"""``betacores compare``: methods side by side on one's own table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betacores.cli import options as o
from betacores.cli.names import METHODS, one_of, several_of
from betacores.cli.options import Options

if TYPE_CHECKING:
    import pandas

# Those that take seconds.
QUICK = "pursuit,quasi-newton,giga,uniform"
# What is shown of a comparison, and how, as far as it is there; the file has all.
SHOWN = {
    "kept": "{:.0f}",
    "beta": "{:.2g}",
    "accuracy": "{:.1%}",
    "rmse": "{:.3g}",
    "log_density": "{:.3f}",
    "seconds": "{:.1f}",
}


def compare(
    file: o.File,
    target: o.Target = None,
    methods: Annotated[
        str,
        typer.Option(
            "--methods",
            "--method",
            help="Names of methods with commas between; beta-cores, sparse-vi and psvi take a minute each, or more.",
            autocompletion=several_of(*METHODS),
        ),
    ] = QUICK,
    sizes: Annotated[
        str, typer.Option("--sizes", "--size", help="Numbers of rows to keep, with commas between.")
    ] = "10,30,100",
    trials: Annotated[int, typer.Option(help="How often, with other rows held out.")] = 1,
    sampler: Annotated[
        str,
        typer.Option(
            help="laplace is quick and approximate; nuts takes minutes.", autocompletion=one_of("laplace", "nuts")
        ),
    ] = "laplace",
    model: o.Model = "auto",
    drop: o.Drop = None,
    keep: o.Keep = None,
    words: o.Words = None,
    na: o.Na = None,
    missing: o.Missing = "impute",
    drop_missing_target: o.DropMissingTarget = False,
    delimiter: o.Delimiter = None,
    decimal: o.Decimal = ".",
    encoding: o.Encoding = "utf-8",
    seed: o.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for the results; by default FILE-comparison.")] = None,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare methods by how well their coresets predict rows they have not seen.

    Example: betacores compare houses.csv --target price --methods pursuit,uniform --sizes 20,100

    Writes comparison.csv and comparison.png.
    """
    from betacores.checks import check_choice
    from betacores.cli.places import check_place
    from betacores.cli.reading import stem

    asked = Options(
        target=target,
        model=model,
        drop=tuple(drop or ()),
        keep=tuple(keep or ()),
        words=tuple(words or ()),
        na=tuple(na or ()),
        missing=missing,
        drop_missing_target=drop_missing_target,
        delimiter=delimiter,
        decimal=decimal,
        encoding=encoding,
        seed=seed,
    )
    names = [check_choice("--methods", name.strip(), METHODS) for name in methods.split(",")]
    wanted = [_whole("--sizes", size) for size in sizes.split(",")]
    check_choice("--sampler", sampler, ("laplace", "nuts"))
    _check_plots()
    out = check_place(out or file.with_name(f"{stem(file)}-comparison"), force=force)
    _check_only_ours(out)
    frame, notes = _compared(
        file, asked, hidden=quiet or as_json, methods=names, sizes=wanted, trials=trials, sampler=sampler
    )
    files = _written(frame, out)
    if as_json:
        said = {"out": str(out), "files": files, "notes": notes, "rows": json.loads(frame.to_json(orient="records"))}
        typer.echo(json.dumps(said, indent=2))
    elif not quiet:
        _show(frame, notes)
        typer.echo("\n".join(str(out / name) for name in files))


def _compared(file: Path, asked: Options, *, hidden: bool, **settings: Any) -> tuple[pandas.DataFrame, list[str]]:
    import warnings

    table = asked.read(file)

    from betacores.cli.cache import keep_compiled
    from betacores.cli.columns import suited_model
    from betacores.cli.outcome import complain
    from betacores.cli.progress import progress_bar
    from betacores.comparison import compare as compared
    from betacores.estimators.scaling import robust_scaling
    from betacores.tables import TableEncoder

    keep_compiled()
    model, why = suited_model(asked.model, table.y, asked.target)
    encoder = TableEncoder(missing=asked.missing, scale=None)
    x = encoder.fit_transform(table.data)
    scaling = robust_scaling(x, table.y if model == "linear" else None)
    names = [name for name, varies in zip(encoder.get_feature_names_out(), scaling.varies, strict=True) if varies]

    import numpy as np
    import pyarrow as pa

    data = pa.table(dict(zip(map(str, names), np.ascontiguousarray(scaling.table(x).T), strict=True)))
    y = table.y if table.y is None or model != "linear" else scaling.response(table.y)
    with warnings.catch_warnings(record=True) as caught, progress_bar("Methods", hidden=hidden) as progress:
        warnings.simplefilter("always")
        frame = compared(data, y, model=model, seed=asked.seed, progress=progress, **settings)
    for line in dict.fromkeys(str(warning.message) for warning in caught if not hidden):
        complain(line, "yellow")
    if "rmse" in frame:
        # Back to the units of the table.
        frame["rmse"] *= scaling.unit
        frame["log_density"] -= np.log(scaling.unit)
    drawn = f"draws by {settings['sampler']}" + (", quick and approximate" if settings["sampler"] == "laplace" else "")
    return frame, [note for note in (why, *table.notes, *encoder.notes_, drawn) if note]


def _show(frame: pandas.DataFrame, notes: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    told = [name for name in SHOWN if name in frame]
    table = Table(title="Prediction of rows not seen", title_justify="left")
    table.add_column("method", no_wrap=True)
    for name in ["size", *told]:
        table.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    means = frame.groupby(["method", "size"], sort=False, dropna=False)[told].mean().reset_index()
    for record in means.to_dict("records"):
        cells = [_cell(SHOWN[name], record[name]) for name in told]
        table.add_row(str(record["method"]), _cell("{:.0f}", record["size"]), *cells)
    console = Console()
    console.print(table)
    for note in notes:
        console.print(f"  {note}", markup=False, highlight=False)


def _cell(form: str, value: Any) -> str:
    return "" if value is None or value != value else form.format(float(value))


def _written(frame: pandas.DataFrame, out: Path) -> list[str]:
    from betacores.cli.comparison_figure import drawn
    from betacores.cli.places import write_whole

    contents = {"comparison.csv": frame.to_csv(index=False).encode("utf-8"), "comparison.png": drawn(frame)}
    for name, content in contents.items():
        write_whole(out / name, content)
    return list(contents)


def _check_plots() -> None:
    try:
        import matplotlib  # noqa: F401
        import pandas  # noqa: F401
    except ImportError as error:
        raise ImportError(f"compare needs {error.name}; install betacores[plots,pandas].") from None


def _check_only_ours(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise FileExistsError(
            f"{out} is a file, and will not be replaced by a folder; choose another place with --out."
        )


def _whole(option: str, given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise ValueError(f"{option}: expected whole numbers with commas between, got {given!r}.") from None
