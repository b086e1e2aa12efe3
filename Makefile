# `make help` lists the commands.
PYTHON ?= python3
BIN := .venv/bin
# Makes .venv, and installs lock files into it. A .venv of another Python is kept, unless PYTHON was given.
VENV = @command -v "$(PYTHON)" >/dev/null || { echo "error: $(PYTHON) is not installed. Leave out PYTHON to use python3 (on Debian and Ubuntu: sudo apt-get install python3-venv)"; exit 1; }; \
	$(PYTHON) deploy/virtualenv.py $(if $(filter file,$(origin PYTHON)),--keep)
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
GENERATORS := tests/clients/generated/node_modules/.package-lock.json
ORDERS ?= 1000

.PHONY: help install setup run test test-slow test-postgres test-all test-day test-epay-platform test-newcomer torture check hooks coverage bench bench-peers seed lock messages postgres audit screenshots dist
.DEFAULT_GOAL := help
# Let Python store compiled files: otherwise each process of the tests compiles everything again.
unexport PYTHONDONTWRITEBYTECODE

help: ## List the commands.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

install: ## Install the service and the command .venv/bin/tillbook, for production.
	$(VENV) requirements/base.txt

# The code generators and the linter that the tests run on the OpenAPI document.
$(GENERATORS): tests/clients/generated/package-lock.json
	@if command -v npm >/dev/null; then echo "Installing the code generators of the tests"; \
		npm ci --prefix $(<D) --silent --no-audit --no-fund --ignore-scripts && touch $@; \
	else echo "npm is missing: tests of generated TypeScript will be skipped (Debian: apt-get install nodejs npm)"; fi

setup: install $(GENERATORS) ## Install the service, and the packages for tests and checks.
	$(VENV) requirements/dev.txt

run: ## Serve the seeded demo on 127.0.0.1:8000 (the first time, 1 to 2 minutes to install).
	$(VENV) --to-serve requirements/base.txt
	@echo "Starting the demo"
	@exec $(BIN)/tillbook demo

test: setup ## Run the fast tests, which need no process, browser or Postgres (4 to 8 minutes).
	$(PYTEST) -m "not slow" --durations=10 --durations-min=3

test-slow: setup ## Run the other tests on SQLite, with processes, browsers and the HTTP server (10 to 20 minutes).
	$(PYTEST) -m slow

torture: setup ## Kill the service 50 times under load (2 to 4 minutes). TORTURE=--postgres: two services on Postgres.
	$(BIN)/python -m tests.torture $(TORTURE)

test-postgres: setup ## Run all tests with a database on a temporary Postgres (Debian package postgresql; 20 to 30 minutes).
	TEST_DATABASE=postgres $(PYTEST)

test-all: test test-slow test-postgres ## Run all tests, on both databases.

test-day: setup ## Live a day of failing channels on Postgres with two hosts (10 minutes). SEED=... repeats one.
	DAY=whole TEST_DATABASE=postgres $(BIN)/python -m pytest -q -s tests/services/channels/test_a_day.py

test-epay-platform: setup ## Test the driver epay with the real platform; its code is in FOLDER=... (PHP, MariaDB).
	@$(BIN)/python -m tests.gateways.live.epay_platform "$(FOLDER)"
	EPAY_PLATFORM="$(FOLDER)" $(BIN)/python -m pytest --quiet tests/gateways/live

# In a namespace of its own, so that the kernel ends all its processes and mounts with it.
test-newcomer: ## Follow README.md on bare Debian systems (root, debootstrap; 5 minutes). NEWCOMER=--with-tests: also make test.
	@unshare --mount --pid --fork --kill-child $(PYTHON) -m tests.newcomer $(NEWCOMER)

check: setup ## Run ruff, mypy, deptry and the check of wording.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/deptry .
	$(BIN)/deptry . --exclude '\.venv|\.audit|.*node_modules' --ignore DEP002,DEP004
	$(BIN)/python -m tests.plain_words

hooks: setup ## Run these checks before each commit.
	$(BIN)/pre-commit install

coverage: setup ## Show by package which lines the fast tests run; each file's are in htmlcov/index.html.
	$(PYTEST) -m "not slow" --quiet --cov --cov-report=html --cov-report=json:htmlcov/coverage.json
	@$(BIN)/python -m tests.covered_lines htmlcov/coverage.json

bench: setup ## Measure the speed (needs wrk). BENCH=--quick: a short run. BENCH=--growth: also draw the plot.
	$(BIN)/python -m bench $(BENCH)

bench-peers: setup ## Compare create and list with other services, which are installed in instance/bench/peers.
	$(BIN)/python -m bench --peers $(BENCH)

postgres: install ## Add the Postgres driver to .venv.
	$(VENV) requirements/postgres.txt

dist: install ## Build dist/tillbook-VERSION-py3-none-any.whl, and .pyz: one file with all dependencies (1 minute).
	$(VENV) requirements/build.txt
	@rm -rf dist
	@$(BIN)/python -m hatchling build --target wheel --directory dist >/dev/null
	@echo "Adding the dependencies (30 s)"
	@$(BIN)/python deploy/wheel/one_file.py dist/tillbook-*.whl
	@ls -sh1 dist

seed: install ## Create instance/seed/orders.sqlite with ORDERS=1000 sample orders.
	@rm -rf instance/seed
	@ORDERS_DEMO=1 ORDERS_INSTANCE=instance/seed $(BIN)/tillbook seed --orders $(ORDERS)
	@echo "instance/seed/orders.sqlite is ready. vault.key, in the same folder, decrypts its secrets. Serve it with:"
	@echo "  ORDERS_INSTANCE=instance/seed $(BIN)/tillbook demo"

screenshots: setup ## Make docs/images from a new demo (chromium, chromedriver, fonts-noto-cjk).
	@$(BIN)/python -m tests.screenshots

messages: setup ## Update the translation catalog from the code.
	PYTHONPATH=. $(BIN)/pybabel --quiet extract -F pyproject.toml -k lazy_gettext -k _in -k _out -k Meaning --no-location -o .messages.pot .
	$(BIN)/pybabel --quiet update --no-fuzzy-matching --ignore-obsolete -i .messages.pot -d blueprints/translations -l zh
	@rm .messages.pot

.audit/.ready: requirements/audit.txt
	$(PYTHON) -m venv .audit
	.audit/bin/python -m pip install --disable-pip-version-check --progress-bar off --require-hashes -r requirements/audit.txt
	@touch $@

audit: .audit/.ready ## Check all locked dependencies for known vulnerabilities.
	@.audit/bin/pip-audit --strict --disable-pip --require-hashes --progress-spinner off $(AUDIT) \
		$(addprefix -r ,$(wildcard requirements/*.txt)) > .audit/said 2>&1; status=$$?; cat .audit/said; \
	grep -qE '^(No known|Found [0-9]+ known) vulnerabilit' .audit/said || { status=2; \
		echo "error: nothing is known about the packages: some lookups failed. Check that pypi.org is reachable"; }; \
	exit $$status

lock: ## Resolve the dependencies again (needs uv).
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes pyproject.toml --output-file requirements/base.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes pyproject.toml --group dev --output-file requirements/dev.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes pyproject.toml --extra postgres --output-file requirements/postgres.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --group audit --output-file requirements/audit.txt
	uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --group build -c requirements/dev.txt --output-file requirements/build.txt
