# `make run` starts Pullcord, `make test` runs its tests. Both first install what they need:
# Python >= 3.11, git >= 2.38 and make are all that has to be there.

.PHONY: run test setup check docs fuzz lock clean help
.DEFAULT_GOAL := help
SHELL := /bin/sh

# The one in .venv, or the first on PATH that is new enough. $(or) looks no further than it must, for
# looking takes longer than all of a second set-up.
PYTHON ?= $(or $(wildcard .venv/bin/python),$(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done))
SETUP = $(or $(PYTHON),$(error Python 3.11 or newer is needed and was not found))\
	-IS board/management/setup.py
VENV = .venv/bin/python

# More arguments for the program that a target runs: make run ARGS="--port 9000"
ARGS ?=
# Tests run in this many processes.
JOBS ?= 2

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile

run: ## Start Pullcord
	@$(SETUP)
	@exec $(VENV) manage.py up $(ARGS)

test: ## Run all tests, on SQLite and on PostgreSQL
	@$(SETUP) --dev
	@# A file stays in one process: its tests share a running product. tests/order.py orders the files.
	@exec $(VENV) -m tests.databases -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

setup: ## Install everything, start nothing
	@$(SETUP) --dev

check: ## Style, types, layers, migrations
	@$(SETUP) --dev
	$(VENV) -m ruff check
	$(VENV) -m ruff format --check
	$(VENV) -m mypy
	.venv/bin/lint-imports
	$(VENV) manage.py makemigrations --check --dry-run

docs: ## Check the documentation against the code
	@$(SETUP) --dev
	@exec $(VENV) -m pytest tests/test_docs.py $(ARGS)

fuzz: ## Compare the gate with the real bash on random programs
	@$(SETUP) --dev
	@exec $(VENV) -m tests.agents.harness.policy.fuzzing $(ARGS)

lock: ## Write the lock files anew from pyproject.toml and package.json
	@$(SETUP) --dev
	$(LOCK) --output-file requirements.lock
	$(LOCK) --output-file requirements-dev.lock --group dev --constraint requirements.lock
	npm install --package-lock-only
LOCK = .venv/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url $(ARGS)

clean: ## Remove what set-up and tools made; data/ stays
	rm -rf .venv node_modules static/vendor staticfiles dist htmlcov .coverage* test-results
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find board agents tests -name __pycache__ -type d -prune -exec rm -rf {} +
