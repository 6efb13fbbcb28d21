"""Heavy and optional packages stay out until they are asked for."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
import betacores
betacores.summarize, betacores.load, betacores.Coreset, betacores.models
import betacores.posteriors, betacores.pilot, betacores.scores, betacores.tangent, betacores.constructions
print(" ".join(sorted({name.split(".")[0] for name in sys.modules})))
"""
OPTIONAL = ("blackjax", "arviz", "pandas", "polars", "typer", "rich", "matplotlib", "jinja2", "numpyro", "stan")


@pytest.fixture(scope="module")
def loaded():
    """Top-level packages in a fresh interpreter after everything but a sampler was imported."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_package_itself_was_loaded(loaded):
    assert {"betacores", "jax", "numpy"} <= loaded


@pytest.mark.parametrize("name", OPTIONAL)
def test_optional_packages_are_not_imported(loaded, name):
    assert name not in loaded
