# `make` alone lists the targets.

PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.setup-complete
ARCHIVE := build/spark-eos-environment.tar.gz
IS_3_11 := import sys; sys.exit(sys.version_info[:2] != (3, 11))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup check test test-slow test-versions archive demo docs bench-quick bench-read bench-log bench-endurance chaos mutations mutations-chaos clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with pinned versions and fetch the jars, once

check: $(STAMP) ## check format, lint, types and import rules, in seconds
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ."; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo

test: check ## run check and all tests, two at a time
	@$(BIN)/python -m pytest -n 2

test-slow: $(STAMP) ## run the longest fault tests, in some minutes
	@$(BIN)/python -m pytest -m slow tests

test-versions: $(STAMP) ## run the tests with the lowest and the newest versions of the dependencies
	@$(BIN)/python -m tests.versions

demo: $(STAMP) ## show a stream that survives a kill, on its own broker
	@$(BIN)/python -m demo

docs: $(STAMP) ## generate the tables of options in the docs
	@$(BIN)/python -m docs.option_tables

archive: $(ARCHIVE) ## pack the environment for spark-submit --archives

bench-quick: $(STAMP) ## measure speed, in a few minutes
	@$(BIN)/python -m benchmarks.quick

bench-read: $(STAMP) ## measure the speed of reads
	@$(BIN)/python -m benchmarks.read

bench-log: $(STAMP) ## measure the cost of a batch as the transaction log grows
	@$(BIN)/python -m benchmarks.log_growth

bench-endurance: $(STAMP) ## run 10,000 micro-batches and check that nothing grows, in about an hour
	@$(BIN)/python -m benchmarks.endurance

chaos: $(STAMP) ## inject random faults: make chaos SEED=1 MINUTES=30
	@$(BIN)/python -m chaos --seed $(or $(SEED),1) --minutes $(or $(MINUTES),5)

mutations: $(STAMP) ## change one line of the protocol at a time, and expect a failing test
	@$(BIN)/python -m tests.mutations

mutations-chaos: $(STAMP) ## run the mutations that the chaos bench can detect
	@$(BIN)/python -m tests.mutations.chaos

clean: ## remove the results of builds, tests and tools, but not .venv and the jars
	@rm -rf build dist *.egg-info .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache spark-warehouse metastore_db derby.log artifacts
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(ARCHIVE): $(STAMP) $(shell find spark_eos pyspark_txnkafka -name '*.py')
	@$(BIN)/spark-eos archive $@

# Looks for Python and Java first, so that a missing one is reported before any download.
$(STAMP): setup.py constraints.txt
	@python=; for name in $(PYTHON) python3.11 python3 python; do \
		if "$$name" -c '$(IS_3_11)' 2>/dev/null; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "Python 3.11 was not found. Install it, or run 'make setup PYTHON=/path/to/python3.11'" >&2; exit 1; \
	fi; \
	"$$python" -m spark_eos.testing java || exit 1; \
	if [ -e .venv ] && ! $(BIN)/python -c '$(IS_3_11)' 2>/dev/null; then \
		echo ".venv is not a Python 3.11 environment. Remove it and run 'make setup' again" >&2; exit 1; \
	fi; \
	if [ ! -e .venv ] && ! "$$python" -m venv .venv >/dev/null 2>&1; then \
		rm -rf .venv; \
		echo "$$python cannot create a virtual environment. Install its venv module (on Debian: apt install python3.11-venv)" >&2; exit 1; \
	fi
	@echo "installing the pinned packages into .venv"
	@# compat: Spark looks for pyspark_* modules in the folders of sys.path, not in import hooks.
	@$(BIN)/python -m pip install --quiet --use-pep517 --disable-pip-version-check -c constraints.txt \
		--config-settings editable_mode=compat -e '.[dev]'
	@echo "fetching the jars of Kafka, Delta and Spark's Kafka connector"
	@$(BIN)/python -m spark_eos.testing
	@touch $@
