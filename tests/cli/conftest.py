"""Commands run in this process, as a shell would run them in one of their own; small tables, quickly compiled."""

import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from small_programs import one_length_for_all_tables  # noqa: F401
from typer.testing import CliRunner

from betacores.cli import app


@dataclass
class Done:
    code: int
    out: str
    error: str


@pytest.fixture(autouse=True)
def own_places(monkeypatch):
    """Keep this process's JAX as it is, and the person's cache out of it."""
    monkeypatch.setenv("BETACORES_CACHE", "off")
    monkeypatch.delenv("BETACORES_TRACEBACK", raising=False)


@pytest.fixture
def nothing_compiled(monkeypatch):
    """Let processes that are started know of no compiled programs but their own."""
    for name in [name for name in os.environ if name.startswith("JAX_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def run():
    def run(*arguments) -> Done:
        result = CliRunner().invoke(app, [str(word) for word in arguments], catch_exceptions=False)
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def refused(run):
    """Return the one line that a mistake is told in."""

    def refused(*arguments) -> str:
        done = run(*arguments)
        assert done.code == 2, done
        (line,) = done.error.strip().splitlines()
        assert line.startswith("betacores: ")
        assert done.out == ""
        return line

    return refused


@pytest.fixture
def people() -> pa.Table:
    """A table as people have them: words, truth values, holes, odd units, and one answer in fifteen turned round."""
    random = np.random.default_rng(0)
    rows = 240
    age, income = random.normal(45, 12, rows), np.exp(random.normal(10, 0.5, rows))
    city, member = random.choice(["Bari", "Oslo", "Rome"], rows), random.uniform(size=rows) < 0.4
    eta = (age - 45) / 6 + 3 * (np.log(income) - 10) + 2.0 * (city == "Oslo")
    bought = random.uniform(size=rows) < 1 / (1 + np.exp(-2 * eta))
    turned = random.permutation(rows)[: rows // 15]
    bought[turned] = ~bought[turned]
    holes = pa.array([None if row % 20 == 3 else float(value) for row, value in enumerate(income)])
    answer = np.where(bought, "yes", "no")
    return pa.table({"age": age, "income": holes, "city": city, "member": member, "bought": answer})
