# DeerFlow. `make run` installs, starts and says where the page is; `make test` installs what tests need and runs them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
UV_VERSION := 0.13.9
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-emit-find-links --python-version 3.11
export VIRTUAL_ENV := $(abspath $(VENV))
export UV_LINK_MODE ?= copy
# Many tests start processes: each would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run dev chat install install-dev page wheels standalone node-modules test test-python test-page lint-python lint-page types-page e2e nightly screenshots budget lint fmt types bench doctor lock \
	tool-image clean check start stop setup setup-sandbox config config-upgrade up down logs \
	docker-image docker-image-full docker-sandbox docker-init docker-start docker-stop docker-logs test-docker
NODE := scripts/with-node
DOCKER ?= docker
COMPOSE ?= $(shell $(DOCKER) compose version >/dev/null 2>&1 && echo $(DOCKER) compose || echo docker-compose)
BUILD = $(DOCKER) build $(addprefix --build-arg ,http_proxy https_proxy PIP_INDEX_URL UV_DEFAULT_INDEX) $(DOCKER_BUILD_FLAGS)
# Timeouts by a thread: a signal cannot end a test that waits for a lock for ever, as of the coverage tracer. Two workers a core: a test
# waits for three quarters of its time.
WORKERS = $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
PYTEST = $(BIN)/python -m pytest -p no:langsmith_plugin --timeout=300 --timeout-method=thread -n $(WORKERS) --dist worksteal $(if $(CI),--reruns 1)
PAGE := packages/app/deerflow_app/gateway/web
STANDALONE := frontend/build/standalone
PAGE_SOURCES = $(shell find frontend/src frontend/public -type f -not -name '*.test.*') frontend/next.config.ts frontend/postcss.config.mjs \
	frontend/scripts/publish.mjs

help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install tool-image page ## Install everything and serve DeerFlow at http://localhost:2026
	@$(BIN)/deerflow serve

dev: install tool-image node-modules ## Serve the API on 8001 and the page, as you edit it, on http://localhost:3000
	@trap 'kill 0' EXIT; DEER_FLOW_TRUSTED_ORIGINS=http://localhost:3000 $(BIN)/deerflow serve --no-ui & cd frontend && NEXT_TELEMETRY_DISABLED=1 ../$(NODE) npx next dev

chat: install tool-image ## Install everything and open DeerFlow in the terminal
	@$(BIN)/deerflow

install: $(VENV)/.run

install-dev: $(VENV)/.dev

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "DeerFlow needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Set PYTHON=python3.12, for example."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "Could not create a virtual environment. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv==$(UV_VERSION)'

$(VENV)/.run: $(UV) requirements/run.txt packages/harness/pyproject.toml packages/app/pyproject.toml
	@if [ ! -f $(VENV)/.dev ]; then echo "Installing DeerFlow ..."; $(UV) pip sync --quiet --require-hashes requirements/run.txt; fi
	@$(UV) pip install --quiet --no-deps --no-build-isolation -e packages/harness -e packages/app
	@touch $@

$(VENV)/.dev: $(UV) requirements/dev.txt packages/harness/pyproject.toml packages/app/pyproject.toml
	@echo "Installing DeerFlow and its development tools ..."
	@$(UV) pip sync --quiet --require-hashes requirements/dev.txt
	@$(UV) pip install --quiet --no-deps --no-build-isolation -e packages/harness -e packages/app
	@touch $@ $(VENV)/.run

tool-image: install
	@$(BIN)/deerflow setup --quiet || true

page: $(PAGE)/index.html ## Build the page

node-modules: frontend/node_modules/.installed

frontend/node_modules/.installed: frontend/package.json frontend/package-lock.json | install
	@echo "Installing what the page is built with ..."
	@cd frontend && ../$(NODE) npm ci --no-audit --no-fund --no-update-notifier --loglevel=error
	@touch $@

$(PAGE)/index.html: frontend/node_modules/.installed $(PAGE_SOURCES)
	@echo "Building the page (a minute or two, once) ..."
	@cd frontend && NEXT_TELEMETRY_DISABLED=1 NEXT_OUTPUT=export ../$(NODE) npx next build > .next-build.log 2>&1 || { cat .next-build.log; exit 1; }
	@cd frontend && ../$(NODE) node scripts/publish.mjs ../$(PAGE)

wheels: install page ## Build what `pip install` takes: dist/*.whl, with the page inside
	@rm -rf dist
	@for name in harness app; do $(UV) build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist packages/$$name || exit 1; done
	@ls dist/*.whl

docker-image: wheels ## Build the image of DeerFlow (docs/docker.md)
	@$(BUILD) --quiet --tag deerflow --file deploy/docker/Dockerfile .

docker-image-full: wheels ## Build it with the sandbox's Python packages inside (docs/docker.md)
	@$(BUILD) --build-arg TOOL_IMAGE=1 --quiet --tag deerflow:full --file deploy/docker/Dockerfile .

docker-sandbox: ## Build the image of sandboxes that are containers
	@$(DOCKER) build --build-arg http_proxy --build-arg https_proxy $(DOCKER_BUILD_FLAGS) --quiet --tag deerflow-sandbox deploy/sandbox

up: ## Serve DeerFlow in a container at http://localhost:2026
	@$(DOCKER) image inspect deerflow >/dev/null 2>&1 || $(MAKE) docker-image
	@cd deploy && $(COMPOSE) up --detach
	@echo "DeerFlow is at http://localhost:$${PORT:-2026}; 'make logs' shows what it says, 'make down' stops it and keeps its data."

down: ## Stop the container and keep its data
	@cd deploy && $(COMPOSE) down

docker-init: docker-image docker-sandbox

docker-start: ## Serve the API in a container from this checkout, again at each change
	@cd deploy && $(COMPOSE) --file compose.dev.yaml up --detach

docker-stop:
	@cd deploy && $(COMPOSE) --file compose.dev.yaml down

docker-logs:
	@cd deploy && $(COMPOSE) --file compose.dev.yaml logs --follow --tail 200

test-docker: install-dev docker-image docker-image-full docker-sandbox ## Try images, compose files and containers as sandboxes, with the engine of DOCKER_HOST
	@$(BIN)/python -m pytest -m docker -n 0 --timeout=600 --timeout-method=thread tests

standalone: $(STANDALONE)/server.js ## Build the page as a Node.js server of its own, for use behind nginx

$(STANDALONE)/server.js: frontend/node_modules/.installed $(PAGE_SOURCES)
	@echo "Building the page's own server ..."
	@cd frontend && NEXT_TELEMETRY_DISABLED=1 NEXT_OUTPUT=standalone ../$(NODE) npx next build > .next-build.log 2>&1 || { cat .next-build.log; exit 1; }
	@cp -r frontend/public $(STANDALONE)/ && cp -r frontend/build/static $(STANDALONE)/build/

test-page: node-modules
	@cd frontend && ../$(NODE) npx vitest run

e2e: install-dev page ## Try the page in a real browser (Chromium), against a real gateway
	@cd frontend && ../$(NODE) npx playwright test

nightly: install-dev page standalone ## Run what is slow and rarely breaks: coverage, all launchers and users, kill series, chat interfaces of others, the page behind nginx, its animations, its frame times; needs LibreOffice
	@$(PYTEST) -m "not docker" --cov --cov-report= # of all tests: it doubles what they cost
	@$(BIN)/python -m tests.e2e.crash --world embedded --points 60
	@$(BIN)/python -m tests.e2e.crash --world scaled --points 60
	@$(BIN)/python -m tests.e2e.turmoil --kills 100
	@cd frontend && ../$(NODE) npx playwright test --config playwright.nightly.config.ts
	@$(MAKE) budget

screenshots: install-dev page ## Photograph each page and state into frontend/screenshots
	@cd frontend && ../$(NODE) npx playwright test --config playwright.screenshots.config.ts

budget: install-dev page ## Measure the page: times, frames and DOM nodes against their budgets
	@cd frontend && ../$(NODE) npx playwright test --config playwright.budget.config.ts

types-page: install-dev node-modules ## Write the API's types for the page anew
	@$(BIN)/python scripts/openapi.py | (cd frontend && ../$(NODE) node scripts/generate-types.mjs)

test: test-python test-page ## Run all tests but those in a browser

test-python: install-dev
	@$(PYTEST) -m "not nightly and not docker"

lint: lint-python lint-page ## Check style, types and floors, of Python and of the page

lint-python: install-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright

lint-page: install-dev node-modules
	@cd frontend && ../$(NODE) npx next typegen >/dev/null && ../$(NODE) npx tsc --noEmit
	@cd frontend && ../$(NODE) npx eslint --max-warnings 0 . && ../$(NODE) npx prettier --check --log-level warn .
	@$(BIN)/python scripts/openapi.py | (cd frontend && ../$(NODE) node scripts/generate-types.mjs --check)

fmt: install-dev node-modules ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .
	@cd frontend && ../$(NODE) npx prettier --write --log-level warn .

bench: install-dev ## Print the benchmark figures
	@$(BIN)/python -m bench

check: install ## Say what is missing on this machine
	@$(BIN)/deerflow doctor

setup: install ## Set DeerFlow up by a few questions
	@echo "deerflow init    the wizard: model, web search, sandbox, chat channel; it begins now"
	@echo "deerflow setup   prepares the sandbox's Python packages; 'make start' does so by itself (make setup-sandbox)"
	@$(BIN)/deerflow init

setup-sandbox: install ## Prepare the sandbox's Python packages
	@$(BIN)/deerflow setup

config: install ## Write a commented config.yaml
	@$(BIN)/deerflow config init

config-upgrade: install ## Bring config.yaml to the current version
	@$(BIN)/deerflow config upgrade

start: run ## As run

stop: install ## Stop the server that serves the data directory of this checkout
	@$(BIN)/deerflow stop

logs: ## Show the logs of the command line, and of the service or the container, if there is one
	@tail -n 100 "$${DEER_FLOW_HOME:-.deer-flow}/deerflow.log" 2>/dev/null || true
	@journalctl --user -u deerflow -n 100 --no-pager 2>/dev/null || true
	@cd deploy && $(COMPOSE) logs --tail 200 2>/dev/null || echo "A server that runs in a terminal logs there."

doctor: install ## Say what works on this machine and what does not
	@$(BIN)/deerflow doctor

lock: install-dev ## Lock the requirements anew
	@for name in run dev node oracles; do $(COMPILE) requirements/$$name.in --output-file requirements/$$name.txt || exit 1; done
	@$(COMPILE) requirements/tools.in --output-file packages/harness/deerflow/sandbox/tools.txt

clean: ## Remove what was installed and built
	rm -rf $(VENV) $(PAGE) frontend/node_modules frontend/.next frontend/out frontend/build .pytest_cache .ruff_cache .hypothesis .coverage
