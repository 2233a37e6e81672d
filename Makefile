# Needs Python 3.11 or later, make and access to a Python package index; everything else lands in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Two workers with one BLAS thread each; more threads than cores would make them wait for one another.
WORKERS ?= 2
# Dependency groups need pip 25.1.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
PYTEST := $(THREADS) $(BIN)/python -m pytest -n $(WORKERS)
SOURCES := src reproduction tests benchmarks benchmark_norm_ball examples tools docs

.PHONY: test test-all test-reproduction test-minimum slow lint types install format reproduce reproduce-full bench docs docs-serve docs-links clean

test: lint types
	$(PYTEST) -m "not slow"

test-all: lint types
	$(PYTEST)

# All tests of the reproduction; `make test` runs the fast ones.
test-reproduction: $(STAMP)
	$(PYTEST) tests/reproduction

slow: $(STAMP)
	$(PYTEST) -m slow

# The oldest versions that pyproject.toml allows, in an environment of their own, and the tests that touch other packages.
MINIMUM := .venv-minimum
test-minimum:
	test -x $(MINIMUM)/bin/python || $(PYTHON) -m venv $(MINIMUM)
	$(MINIMUM)/bin/python $(PIP_INSTALL) -c tools/minimum.txt \
		-e ".[cli,data,plots]" hypothesis polars pytest pytest-xdist
	$(THREADS) $(MINIMUM)/bin/python -m pytest -n $(WORKERS) -m "not slow" tests/cli tests/data_sources tests/datasets \
		tests/estimators tests/persist tests/test_public.py tests/test_readme.py

lint: $(STAMP)
	$(BIN)/ruff check $(wildcard $(SOURCES))
	$(BIN)/ruff format --check $(wildcard $(SOURCES))

types: $(STAMP)
	$(BIN)/mypy

install: $(STAMP)

# Reinstalled only when the dependencies may have changed.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) "pip>=25.1"
	$(BIN)/python $(PIP_INSTALL) -e ".[all]" --group dev
	touch $@

format: $(STAMP)
	$(BIN)/ruff check --fix $(wildcard $(SOURCES))
	$(BIN)/ruff format $(wildcard $(SOURCES))

# The quick run on packaged data: five minutes. The full one takes about an hour and goes on where it was interrupted.
reproduce: $(STAMP)
	$(THREADS) $(BIN)/python -m reproduction --quick --force --out reproduction-report

reproduce-full: $(STAMP)
	$(THREADS) $(BIN)/python -m reproduction --full --out reproduction-full

# Some peers ask for older versions of NumPy, so they live in an environment of their own. `make bench OPTIONS=--commit`
# writes the tables into benchmarks/results.
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed
BENCHES ?= passes small sparse search defaults constraints cluster
bench: $(PEERS_STAMP)
	for each in $(BENCHES); do $(PEERS)/bin/python benchmarks/$$each.py $(OPTIONS) || exit 1; done

$(PEERS_STAMP): pyproject.toml
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python $(PIP_INSTALL) "pip>=25.1"
	$(PEERS)/bin/python $(PIP_INSTALL) -e ".[all]" --group peers
	touch $@

# The site, with every warning an error; GALLERY=fast shows the slow examples without running them.
DOCS := docs/_build
DOCS_STAMP := $(VENV)/.docs-installed
SPHINX := $(THREADS) PROJFREE_GALLERY=$(GALLERY) $(BIN)/python -m sphinx -W --keep-going

docs: $(DOCS_STAMP)
	$(SPHINX) -b html docs $(DOCS)/html

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory $(DOCS)/html 8000

# Asks the network whether the addresses on the pages still answer.
docs-links: $(DOCS_STAMP)
	$(SPHINX) -b linkcheck docs $(DOCS)/links

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python $(PIP_INSTALL) -e ".[all]" --group docs
	touch $@

clean:
	rm -rf $(VENV) $(MINIMUM) $(PEERS) build dist docs/_build docs/_drawn docs/api docs/gallery docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src reproduction tests benchmarks examples tools -name __pycache__ -type d -prune -exec rm -rf {} +
