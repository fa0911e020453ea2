# `make demo` and `make test` are the two commands to know; both set up .venv first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test integration browser-test chromium bench paper paper-quick lint format clean

setup: .venv/.installed

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[cli,dev,models,plots,serve]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py

test: setup lint
	$(BIN)/python -m pytest -n auto -m "not slow and not integration"

# A service in processes of its own: contract, load, faults, clients that others wrote.
integration: .venv/.integration chromium
	$(BIN)/python -m pytest -m integration

# The page of the service in a browser.
browser-test: .venv/.integration chromium
	$(BIN)/python -m pytest -m integration tests/serve/test_page_in_browser.py

# The browser of that test, by Debian's packages; without it the test is skipped, and says so.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
		echo "chromium could not be installed: tests of the page are skipped" >&2

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
	$(BIN)/python -m benchmarks.group_answers insurance --seeds 1 --halves 5
	$(BIN)/python -m benchmarks.wrapped_models --count 100

# Every empirical figure, for hours: goes on where it stopped, and writes docs/results.md.
paper: .venv/.bench
	$(BIN)/python -m benchmarks.evaluation A B C D page

# The same with small settings, into build/evaluation-quick.
paper-quick: .venv/.bench
	$(BIN)/python -m benchmarks.evaluation A B C D page --quick

.venv/.bench: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build
	find . -name __pycache__ -prune -exec rm -rf {} +
