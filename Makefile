# Everything runs in a virtual environment of the project's own, built on first use.
PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/python

.PHONY: demo test test-slow docs bench reproduce lint format clean

# The stamp is newer than what the environment was built from, or the environment is built again.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: $(VENV)/ready
	$(RUN) -m betacores demo --out demo-output --force

test: $(VENV)/ready lint
	$(RUN) -m pytest --numprocesses auto --dist loadfile

test-slow: $(VENV)/ready
	XLA_FLAGS= $(RUN) -m pytest -m slow

docs: $(VENV)/ready
	$(RUN) -m sphinx --fail-on-warning --keep-going --jobs auto --builder html docs docs/_build

bench: $(VENV)/ready
	$(RUN) benchmarks/incremental_vs_numpy.py
	$(RUN) benchmarks/pursuit_vs_beta_cores.py --out docs/results/pursuit
	$(RUN) benchmarks/pursuit_vs_sklearn.py --out docs/results/pursuit/speed-sklearn.json
	$(RUN) benchmarks/scale_rows.py --out docs/results/scale
	$(RUN) benchmarks/scale_nuts.py --out docs/results/scale
	$(RUN) benchmarks/families.py --out docs/results/families

reproduce: $(VENV)/ready
	$(RUN) -m betacores reproduce gaussian --out docs/results/gaussian
	$(RUN) -m betacores reproduce pursuit --out docs/results/pursuit
	$(RUN) -m betacores reproduce logistic --out docs/results/logistic
	$(RUN) -m betacores reproduce groups --out docs/results/groups
	$(RUN) -m betacores reproduce neural-linear --out docs/results/neural-linear

lint: $(VENV)/ready
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(VENV)/ready
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

clean:
	rm -rf $(VENV) demo-output docs/_build docs/jupyter_execute .jax_cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
