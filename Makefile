# Two commands need nothing but Python and make: `make demo`, which installs what the tour needs, and `make test`, which
# installs everything.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DEMO_READY := .venv/.demo-ready

# Compiled modules are kept, whatever the environment says: tests start hundreds of processes that would compile anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo serve test test-all check slow mutants bench mission versus pictures docs clean

setup: $(READY)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Discreet needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo 'Creating .venv and updating pip there ...'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --upgrade pip

$(READY): pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[accounting,learn,mcp,pictures,postgres,server,spark,yaml]' --group dev
	$(BIN)/python -m compileall -q src
	@touch $(DEMO_READY) $(READY)

$(DEMO_READY): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing what the tour needs into .venv (about half a minute, longer on a slow network) ..."
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[attacks]'
	@touch $(DEMO_READY)

demo: $(DEMO_READY)
	@$(BIN)/discreet demo

serve: setup
	@$(BIN)/python -m tools.serve_town

test: check
	$(BIN)/python -m pytest

test-all: setup
	$(BIN)/python tools/evidence.py test-all

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell src docs examples tools mission bench versus *.md
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/claims.py check

slow: setup
	$(BIN)/python tools/evidence.py slow

mutants: setup
	$(BIN)/python tools/evidence.py mutants

bench: setup
	$(BIN)/python -m bench

mission: setup
	$(BIN)/python tools/evidence.py mission

versus: setup
	nice -n 10 $(BIN)/python -m versus

pictures: setup
	$(BIN)/python -m tools.pictures

docs: setup
	$(BIN)/python tools/documentation_site.py

clean:
	rm -rf site .venv .peers .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .mutants tour .town
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
