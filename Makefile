# One command each, on a fresh machine too: whatever a target needs is set up first.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test prove check test-large fmt bundle page samples pictures screenshots prices integrations performance profiles setup clean

# scripts/setup writes down which uv and which Python it found.
ENVIRONMENT := build/environment.sh
WITH := source $(ENVIRONMENT) &&
RUN := $(WITH) "$$UV" run --frozen --no-sync

help: ## Show what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## Record sample runs from end to end on the embedded AWS, and show what it made of them
	@$(RUN) runtally demo

test: setup ## Run all tests that belong to a change: units, properties, infrastructure, end to end, page
	@$(WITH) npm --prefix web run --silent test
	@$(RUN) scripts/browser >/dev/null
	@scripts/valkey
	@$(RUN) pytest -n 2 --dist loadgroup -m "not large"

test-large: setup ## Run the long tests: large runs, many steps
	@$(RUN) pytest -m large

prove: setup ## Play 200,000 schedules of the simulation, an hour on two cores; see docs/reliability.md
	@$(RUN) python -m tests.simulation --schedules 200000 --report build/prove.json

check: setup ## Lint, format, types and layers of all code, the page's too, as the pre-commit hook does
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) mypy
	@$(RUN) lint-imports
	@$(WITH) npm --prefix web run --silent check

fmt: setup ## Format, and mend what ruff can mend
	@$(RUN) ruff check --fix-only --quiet
	@$(RUN) ruff format
	@$(WITH) npm --prefix web run --silent fix

bundle: setup ## Build the code of the functions for AWS, below build/
	@$(RUN) python -m cdk.bundle --platform aws

page: setup ## Build the Pipeline page, below build/, and weigh it
	@$(RUN) python -m cdk.page

samples: setup ## Record the sample runs anew by running their programs
	@$(RUN) python -m local.samples

pictures: setup ## Draw the demo's picture in docs/pictures anew
	@$(RUN) runtally demo --picture docs/pictures/demo.svg

screenshots: setup ## Take the pictures of the page in docs/pictures anew
	@$(RUN) python -m tests.page.screenshots

prices: setup ## Bring the newest genai-prices and make the price table of the library from it
	@$(WITH) "$$UV" lock --quiet --upgrade-package genai-prices && "$$UV" sync --frozen --quiet
	@$(RUN) python -m tools.prices

integrations: setup ## Run the recipes of docs/integrations.md: each framework, against a scripted model
	@$(RUN) pytest tests/integrations

performance: setup ## Measure everything, half an hour on an idle machine: tables and plots of docs/performance.md
	@mkdir -p build
	@$(RUN) python -m benchmarks --into build/benchmarks.json
	@$(RUN) python -m tools.performance_tables build/benchmarks.json
	@$(WITH) "$$UV" run --quiet --script tools/plots.py build/benchmarks.json docs/pictures

profiles: setup ## Draw the flame graphs of docs/performance.md anew
	@$(RUN) python -m benchmarks.flames docs/pictures

setup: ## Bring uv, Python packages and the CDK command line; say what is missing
	@scripts/setup $(ENVIRONMENT)

clean: ## Remove everything that was made here
	@rm -rf build .venv node_modules web/node_modules
