# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check bench docs format clean

$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) not found: install Python 3.11 or later, or say PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

demo: $(STAMP)   ## a small living web is served, crawled, searched (STAY=1 keeps it running)
	$(BIN)/bowerbird demo $(if $(STAY),--stay)

test: $(STAMP)   ## all tests and checks
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest

check: $(STAMP)  ## types, style, the order of the rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.bench   ## speed and memory, side by side with peers; results in out/bench
	$(BIN)/python benchmarks/run.py

docs: $(STAMP)   ## the reference pages that are made from the program itself
	$(BIN)/python docs/reference.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) out demo-crawl build .mypy_cache .ruff_cache .pytest_cache
