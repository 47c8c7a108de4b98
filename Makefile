# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test browser postgres java check bench docs format clean

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" && "$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "Python 3.11 or later not found: install it, or say make PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,bench]'
	touch $@

demo: $(STAMP)   ## a small living web is served, crawled, searched (STAY=1 keeps it running)
	$(BIN)/bowerbird demo $(if $(STAY),--stay)

browser:   ## headless Chromium, which the tests of the web page need
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing chromium for the tests of the web page"; \
	    apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium >/dev/null; \
	  else echo "chromium not found: the browser tests are skipped. Install it (e.g. sudo apt-get install chromium) to run them."; fi; }

postgres:   ## PostgreSQL, which the tests of crawls in it need; they start a server of their own
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing postgresql for the tests of crawls in it"; \
	    apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends postgresql >/dev/null; \
	  else echo "PostgreSQL not found: its tests are skipped. Install it (e.g. sudo apt-get install postgresql) to run them."; fi; }

$(VENV)/.spark: $(STAMP)   # PySpark is 450 MB: only the tests need it, and not the demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,spark]'
	touch $@

java:   ## a Java runtime, which the tests of the Spark engine need
	@command -v java >/dev/null || test -x "$$JAVA_HOME/bin/java" || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing a Java runtime for the tests of the Spark engine"; \
	    apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends default-jre-headless >/dev/null; \
	  else echo "java not found: the Spark tests are skipped. Install it (e.g. sudo apt-get install default-jre-headless) to run them."; fi; }

test: $(STAMP) $(VENV)/.spark browser postgres java   ## all tests and checks
	$(MAKE) --no-print-directory check
	$(BIN)/python -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile

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
	rm -rf $(VENV) out demo-crawl demo-crawl-plain build .mypy_cache .ruff_cache .pytest_cache
