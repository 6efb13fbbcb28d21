"""What a person asked for, as one value: it reads the table, and is written beside the coreset."""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from betacores.cli.names import MODELS, one_of

if TYPE_CHECKING:
    from betacores.cli.columns import Asked

# Options that several commands have in common.
File = Annotated[Path, typer.Argument(help="The table: CSV (.csv, .tsv, .csv.gz), Parquet or Feather.")]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="The table: a file, CSV (.csv, .tsv, .csv.gz), Parquet or Feather; or, read block by block, several "
        "Parquet files, a folder or a pattern of them, or an .npy file.",
    ),
]
Where = Annotated[str | None, typer.Option(help="Rows to take, for example \"year > 2020 and region == 'north'\".")]
Target = Annotated[str | None, typer.Option(help="Column of the response; none for the mean of rows.")]
Model = Annotated[
    str,
    typer.Option(
        help="gaussian-mean, linear, logistic (two classes), noisy-logistic (labels flipped at random), softmax "
        "(several classes), poisson or negative-binomial (counts); auto looks at the target, and says what it chose.",
        autocompletion=one_of(*MODELS),
    ),
]
Drop = Annotated[list[str] | None, typer.Option(help="Column to leave out, or a pattern like 'x1*'; repeatable.")]
Keep = Annotated[list[str] | None, typer.Option(help="Column to learn from, no others; repeatable.")]
Words = Annotated[list[str] | None, typer.Option(help="Column of words, though it looks like numbers; repeatable.")]
Na = Annotated[list[str] | None, typer.Option(help="A cell of a text file that means missing; repeatable.")]
Missing = Annotated[
    str, typer.Option(help="Missing cells: impute (and flag) or error.", autocompletion=one_of("impute", "error"))
]
DropMissingTarget = Annotated[bool, typer.Option("--drop-missing-target", help="Leave rows without a target out.")]
Delimiter = Annotated[str | None, typer.Option(help="Between columns of a text file; by default its ending's.")]
Decimal = Annotated[str, typer.Option(help="Decimal sign of a text file.")]
Encoding = Annotated[str, typer.Option(help="How a text file is written, for example latin-1.")]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Force = Annotated[bool, typer.Option("--force", help="Replace what an earlier run wrote.")]
AsJson = Annotated[bool, typer.Option("--json", help="Say the result in JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]


@dataclass(frozen=True)
class Options:
    """Everything that decides a result, by the names of the options; lists are tuples."""

    target: str | None = None
    model: str = "auto"
    size: int | str = "auto"
    beta: float | str = "auto"
    method: str = "pursuit"
    groups: tuple[str, ...] = ()
    max_groups: int | str = "auto"
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    missing: str = "impute"
    drop_missing_target: bool = False
    guard: bool = True
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    seed: int = 0
    where: str | None = None
    y: str | None = None
    out_of_core: bool | None = None

    def read(self, *files: Path) -> Asked:
        """Return what is asked for of a table, in memory."""
        if self.groups and self.size != "auto":
            raise ValueError("--size: with --groups the budget is --max-groups; leave --size out.")
        if not self.groups and self.max_groups != "auto":
            raise ValueError("--max-groups: there are no groups; name their column with --groups, or leave it out.")
        from betacores.cli.columns import Wanted, asked_for
        from betacores.cli.reading import Dialect, read_whole

        table, notes = read_whole(list(files), self, Dialect(self.delimiter, self.decimal, self.encoding, self.na))
        target = self.target if self.y is None else "y"
        asked = asked_for(
            table, Wanted(target, self.groups, self.drop, self.keep, self.words, self.drop_missing_target)
        )
        return asked._replace(notes=[*notes, *asked.notes])

    def command(self, *files: Path, name: str = "summarize") -> str:
        """Return the command that asks for this."""
        words = ["betacores", name, *map(str, files)]
        for field in fields(self):
            value, option = getattr(self, field.name), "--" + field.name.replace("_", "-")
            if value == field.default:
                continue
            if field.name == "out_of_core":
                words.append("--out-of-core" if value else "--in-memory")
                continue
            if isinstance(value, bool):
                words.append(option if value else option.replace("--", "--no-", 1))
                continue
            for one in value if isinstance(value, tuple) else (value,):
                words += [option, str(one)]
        return shlex.join(words)

    def as_record(self) -> dict[str, Any]:
        """Return a record that JSON can hold."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Options:
        """Return the options of a record; those it does not know of have their defaults."""
        known = {field.name for field in fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name in known
        }
        return cls(**given)

    def differences(self, other: Options) -> list[str]:
        """Return the names of the options that differ."""
        return [
            "--" + field.name.replace("_", "-")
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


def number_or_auto(option: str, given: str, kind: type) -> Any:
    """Return a number, or ``"auto"``."""
    if given == "auto":
        return "auto"
    try:
        return kind(given)
    except ValueError:
        wanted = "a whole number" if kind is int else "a number"
        raise ValueError(f"{option}: expected {wanted} or auto, got {given!r}.") from None
