# podgate: every command people and CI run. `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
SOAK_MINUTES ?= 3
SEED ?= 1
MUTANTS := $(or $(COUNT),500)
COUNT ?= 100000
PROCESSES ?= 1
MINORS ?= 1.34
ENGINE ?= docker
PLATFORMS ?= linux/amd64,linux/arm64
LOCK ?= requirements-image.lock

# Bytecode of the tests halves the time until the first one runs.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup quick check lint types imports fast test e2e test-minors \
        test-operators fuzz fuzz-admission driver-oracle every-command mutants soak drills fix demo demo-cluster cluster cluster-down bench corpus docs kustomize golden lock image clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-15s %s\n", $$1, $$2}'

# A link to the environment of another work tree: installing this one would take it from that one.
$(STAMP): $(if $(shell test -L $(VENV) && echo linked),,requirements.lock pyproject.toml)
	@command -v $(PYTHON) >/dev/null || { echo "no $(PYTHON) here: install Python 3.11 or newer, or run make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "podgate needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V)"; exit 1; }
	@echo "setting up $(VENV) from requirements.lock (about 30 seconds the first time)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "python3 -m venv failed: on Debian run apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP) ## make the virtual environment with pinned packages

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

fast: $(STAMP)
	@# One process more than there are CPUs: some tests wait most of their time.
	$(BIN)/pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) --dist worksteal -m "not e2e and not long" $(PYTEST_ARGS)

quick: $(STAMP) ## lint, types, and the tests of what changed since main, within a minute
	@$(BIN)/python -m tools.quick

check: lint types imports fast ## lint, types, import contracts and the tests that need no cluster and no minutes

# Tests of a real API server mostly wait, so that the others run beside them.
test: $(STAMP) ## everything, a real API server included; the first time builds it meanwhile
	@$(BIN)/python -m tests.side_by_side $(MINORS:%=--minor %) $(PYTEST_ARGS)

e2e: $(STAMP) ## only the tests against a real API server
	$(BIN)/pytest -q -m e2e $(PYTEST_ARGS)

test-minors: $(STAMP) ## the core of these tests on the oldest Kubernetes minor (MINORS=, such as "1.34 1.35")
	@for minor in $(MINORS); do echo "on Kubernetes $$minor:"; PODGATE_KUBERNETES=$$minor $(BIN)/pytest -q -m core $(PYTEST_ARGS) || exit 1; done

test-operators: $(STAMP) ## every real operator behind podgate (the first time builds them: about 25 minutes more)
	PODGATE_OPERATORS=all $(BIN)/pytest -q tests/e2e/operators $(PYTEST_ARGS)

fuzz: $(STAMP) ## native jq against libjq, 100,000 generated pairs (5,000 are part of the tests)
	PODGATE_FUZZ_PAIRS=100000 $(BIN)/pytest -q tests/jq/test_query_fuzz.py

fuzz-admission: $(STAMP) ## objects that break a rule in every kind, place and spelling: none may get in (SEED=, COUNT=, PROCESSES=, INDEX=)
	@$(BIN)/python -m tests.fuzz --seed $(SEED) --count $(COUNT) --processes $(PROCESSES) $(INDEX:%=--index %)

driver-oracle: $(STAMP) ## device configurations beside NVIDIA's own webhook: 20,000 for each version and its gates (a minute, and a build the first time)
	PODGATE_DRIVER_CONFIGS=20000 $(BIN)/pytest -q tests/devices/test_driver_webhook.py tests/devices/test_driver_gates.py $(PYTEST_ARGS)

mutants: $(STAMP) ## do the tests catch changed operators in the decision code? (SEED=, COUNT=; RECORD=1 after many changes, AGAIN=1)
	@$(BIN)/python -m tools.mutants --seed $(SEED) --count $(MUTANTS) $(if $(RECORD),--record) $(if $(AGAIN),--again)

soak: $(STAMP) ## several people at work behind podgate for 3 minutes (SOAK_MINUTES=), with the operators that are built
	@$(BIN)/python -m tests.e2e.soak --minutes $(SOAK_MINUTES)

drill-server: $(STAMP) ## a hostile client on loopback beside good reviews: a table (about five minutes)
	@$(BIN)/python -m tests.drill_server

drills: $(STAMP) ## upgrades, outages and a removal under load on a real API server: a table (some minutes)
	@$(BIN)/python -m tests.e2e.install.drills

fix: $(STAMP) ## format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: $(STAMP) ## the webhook over HTTPS on this machine, four reviews, what changed and what was refused
	@$(BIN)/python -m tools.demo

demo-cluster: $(STAMP) ## the same story with kubectl apply against a real API server
	@$(BIN)/python -m tests.e2e.demo

cluster: $(STAMP) ## a real API server with podgate registered, left running
	@$(BIN)/python -m tests.e2e.demo --keep

cluster-down: $(STAMP) ## stop what `make cluster` left running
	@$(BIN)/python -m tests.e2e.demo --stop

bench: $(STAMP) ## the performance gates, limit and figure side by side
	@$(BIN)/python -m bench

corpus: $(STAMP) ## real manifests through podgate apply: a table by kind; then every document through every command
	@$(BIN)/python -m tests.corpus
	@$(BIN)/python -m tests.every --unbroken

every-command: $(STAMP) ## every command over 20,000 documents broken by a fixed seed (SEED=, COUNT=): a table
	@$(BIN)/python -m tests.every --seed $(if $(filter file,$(origin SEED)),14,$(SEED)) --count $(if $(filter file,$(origin COUNT)),20000,$(COUNT))

docs: $(STAMP) ## generated files again: deploy/ and the pages made from the tables
	@$(BIN)/python -m tests.generated --write

kustomize: $(STAMP) ## deploy/base and deploy/overlays again, from the chart (the first time builds helm)
	@$(BIN)/python -m tests.e2e.install.kustomize --write

golden: $(STAMP) ## rewrite the expectations of golden cases and show the difference
	-PODGATE_UPDATE_GOLDEN=1 $(BIN)/pytest -q tests/test_golden.py
	@git --no-pager diff --stat -- tests/golden

lock: $(STAMP) ## resolve requirements.lock again
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11 --extra otel --group dev pyproject.toml -o requirements.lock --upgrade

image: ## build and push a release: IMAGE=registry/podgate:0.1.0 BASE=python:3.11.14-slim-bookworm@sha256:…
	@test -n "$(IMAGE)" || { echo "write IMAGE=registry/podgate:version"; exit 1; }
	@echo "$(BASE)" | grep -Eq '^[^@ ]+@sha256:[0-9a-f]{64}$$' || { echo "BASE=$(BASE) may change under its name; write name:tag@sha256:digest, as docker buildx imagetools inspect tells it"; exit 1; }
	$(ENGINE) buildx build --platform $(PLATFORMS) --provenance=true --sbom=true --build-arg PYTHON=$(BASE) --build-arg LOCK=$(LOCK) -t $(IMAGE) --push .

clean: ## remove what the commands made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis certs-dev
