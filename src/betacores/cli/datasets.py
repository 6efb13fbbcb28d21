"""``betacores datasets``: which tables are known, where they are, and how to get one as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betacores.cli import options as o
from betacores.cli.names import DATASETS, SIMULATED, one_of

if TYPE_CHECKING:
    import pyarrow as pa

UCI = "CC BY 4.0"
LICENCES = {
    "boston_housing": "none stated; column B is why scikit-learn removed this set",
    "california_housing": "none stated",
    "webspam": "none stated",
}


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="The table to write; none lists them.", autocompletion=one_of(*DATASETS, *SIMULATED)),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write, .csv or .parquet; by default NAME.parquet.")] = None,
    rows: Annotated[int, typer.Option(help="Rows of a simulated table.")] = 5000,
    fraction: Annotated[float, typer.Option(help="Share of dirty rows of a simulated table.")] = 0.05,
    seed: o.Seed = 0,
    force: o.Force = False,
    as_json: o.AsJson = False,
    quiet: o.Quiet = False,
) -> None:
    """List the known tables, or write one as CSV or Parquet.

    Example: betacores datasets contaminated_logistic --out dirty.csv

    A simulated table has a column `dirty` that tells its dirty rows; leave it out with --drop dirty.
    """
    if name is None:
        found = _known()
        if as_json:
            typer.echo(json.dumps(found, indent=2))
        elif not quiet:
            typer.echo(_listing(found))
        return
    from betacores.checks import check_choice
    from betacores.cli.places import check_place, write_whole

    check_choice("name", name, (*DATASETS, *SIMULATED))
    out = out or Path(f"{name}.parquet")
    if out.suffix not in (".csv", ".parquet"):
        raise ValueError(f"--out: expected a file that ends in .csv or .parquet, got {out}.")
    check_place(out, force=force)
    if out.is_dir():
        raise IsADirectoryError(f"--out: {out} is a folder; name a file, such as {out / name}.parquet.")
    table = _simulated(name, rows, fraction, seed) if name in SIMULATED else _read(name)
    write_whole(out, _as_bytes(table, out.suffix))
    if as_json:
        said = {"out": str(out), "rows": table.num_rows, "columns": table.column_names}
        typer.echo(json.dumps(said, indent=2))
    elif not quiet:
        typer.echo(f"{out}: {table.num_rows:,} rows, columns {', '.join(table.column_names)}")


def _known() -> list[dict[str, Any]]:
    from betacores.datasets.files import FILES, places

    found: list[dict[str, Any]] = []
    for name, known in FILES.items():
        there = [folder / known.file for folder in places() if (folder / known.file).is_file()]
        found.append(
            {
                "name": name,
                "kind": "real",
                "file": known.file,
                "present": bool(there),
                "where": str(there[0]) if there else None,
                "source": known.source,
                "licence": LICENCES.get(name, UCI),
            }
        )
    return found + [
        {"name": name, "kind": "simulated", "file": None, "present": True, "where": None} for name in SIMULATED
    ]


def _listing(found: list[dict[str, Any]]) -> str:
    from betacores.datasets.files import places

    lines = ["Real tables. Nothing is downloaded: put a file into a folder that is looked into."]
    for one in found:
        if one["kind"] == "real":
            lines.append(f"  {one['name']:<24}{one['where'] or 'not there: ' + one['file']}")
            lines.append(f"  {'':<24}{one['source']}; licence: {one['licence']}")
    lines += ["", "Looked into: " + ", ".join(map(str, places())) + " (BETACORES_DATA names the first)", ""]
    lines += ["Simulated tables, with a column `dirty` that tells their dirty rows:"]
    lines += [f"  {one['name']}" for one in found if one["kind"] == "simulated"]
    return "\n".join([*lines, "", "Write one to a file: betacores datasets contaminated_logistic --out dirty.csv"])


def _simulated(name: str, rows: int, fraction: float, seed: int) -> pa.Table:
    import pyarrow as pa

    from betacores.checks import check_number, check_seed
    from betacores.datasets import simulated

    check_number("rows", rows, at_least=2, whole=True)
    check_number("fraction", fraction, at_least=0, below=1)
    made = getattr(simulated, name)(check_seed(seed), fraction, rows=rows)
    columns = {f"x{j}": made.x[:, j] for j in range(made.x.shape[1])}
    return pa.table({**columns, **({} if made.y is None else {"y": made.y}), "dirty": made.outlier})


def _read(name: str) -> pa.Table:
    import pyarrow.parquet as pq

    from betacores.datasets.files import find

    return pq.read_table(find(name))


def _as_bytes(table: pa.Table, ending: str) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    if ending == ".csv":
        from pyarrow import csv

        csv.write_csv(table, sink)
    else:
        import pyarrow.parquet as pq

        pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()
