# Needs Python 3.11 or newer with venv and pip, and nothing else: each target makes the
# virtual environment that it uses. Another interpreter: make test PYTHON=python3.13

PYTHON ?= python3
PYTEST_ARGS ?=
# A selection is looked at in one process.
WHOLE := $(if $(PYTEST_ARGS),,--numprocesses=2 --dist=worksteal)
BENCH_ARGS ?=

# In the stamps' names: another interpreter makes the environments again.
VERSION := $(shell "$(PYTHON)" -c 'import sys; \
	print(sys.implementation.name, *sys.version_info[:3], sep=".")' 2>/dev/null)
TEST_READY := .venv-test/.ready-$(VERSION)
DEMO_READY := .venv-demo/.ready-$(VERSION)
BENCH_READY := .venv-bench/.ready-$(VERSION)
RUN := .venv-test/bin/python -m
REQUIREMENTS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.PHONY: help test test-all test-unit soak matrix smoke test-docker check format lint type layers docs proto \
	proto-check protobuf audit demo bench clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

test: $(TEST_READY) ## the tests; of what is repeated a share
	$(if $(PYTEST_ARGS),,JSKV_TEST_SHARE=4) $(RUN) pytest $(WHOLE) $(PYTEST_ARGS)

test-all: $(TEST_READY) ## all tests, with a nats-server of their own, and their coverage
	$(RUN) pytest --cov --cov-fail-under=95 $(WHOLE)

test-unit: $(TEST_READY) ## tests of pure code: no server, seconds
	$(RUN) pytest tests/unit $(PYTEST_ARGS)

soak: $(TEST_READY) ## all tests with 50 times as many generated cases, and all schedules
	HYPOTHESIS_PROFILE=soak $(RUN) pytest --timeout=3600 $(PYTEST_ARGS)

matrix: $(TEST_READY) ## tests on each release of nats-server, of langgraph-checkpoint and of protobuf
	.venv-test/bin/python scripts/matrix.py $(PYTEST_ARGS)
	$(if $(PYTEST_ARGS),,.venv-test/bin/python scripts/runtimes.py langgraph-checkpoint)
	$(if $(PYTEST_ARGS),,.venv-test/bin/python scripts/runtimes.py protobuf)

smoke: $(TEST_READY) ## a few tests on the oldest and the newest nats-server
	.venv-test/bin/python scripts/matrix.py --smoke

test-docker: $(TEST_READY) ## tests that need a Docker daemon
	$(RUN) pytest -m docker $(PYTEST_ARGS)

check: lint type layers docs proto-check audit smoke ## everything but the tests

format: $(TEST_READY) ## rewrite the code in the house style
	$(RUN) ruff check --fix-only --quiet .
	$(RUN) ruff format .

lint: $(TEST_READY) ## ruff: style and frequent mistakes
	$(RUN) ruff format --check .
	$(RUN) ruff check .

type: $(TEST_READY) ## mypy, strict
	$(RUN) mypy

layers: $(TEST_READY) ## import-linter: who may import whom
	.venv-test/bin/lint-imports --no-logo

docs: $(TEST_READY) ## the documents: links, code blocks, names; built into build/docs
	.venv-test/bin/python scripts/check_docs.py
	$(RUN) sphinx --fail-on-warning --keep-going --quiet -c docs -d build/doctrees . build/docs

proto: $(TEST_READY) ## generate the code of the wire contract
	.venv-test/bin/python scripts/gen_proto.py

proto-check: $(TEST_READY) ## the wire contract: style, breaking changes, generated code
	.venv-test/bin/python scripts/gen_proto.py --check

protobuf: $(TEST_READY) ## the wire on the oldest and the newest protobuf
	.venv-test/bin/python scripts/runtimes.py protobuf

audit: $(TEST_READY) ## known vulnerabilities of the pinned packages
	.venv-test/bin/python scripts/audit.py

demo: $(DEMO_READY) ## kill an agent in the middle of its work, and resume it
	.venv-demo/bin/jskv demo

bench: $(BENCH_READY) ## workloads on this saver and others, side by side
	.venv-bench/bin/python scripts/bench --bars $(BENCH_ARGS)

clean: ## remove the virtual environments and caches
	rm -rf build .venv-test .venv-demo .venv-bench .venv-servers .venv-protobuf .venv-checkpoint .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(TEST_READY): EXTRA := dev
$(DEMO_READY): EXTRA := demo
$(BENCH_READY): EXTRA := bench
$(TEST_READY) $(DEMO_READY) $(BENCH_READY): $(REQUIREMENTS)
	@"$(PYTHON)" -c '' || { echo '$(PYTHON) cannot be run: give a Python, 3.11 or' \
		'newer, as in: make PYTHON=/usr/bin/python3 ...' >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'Python 3.11 or newer is needed: make PYTHON=python3.13 ...' >&2; exit 1; }
	@echo 'Making $(@D) with [$(EXTRA)]; the first time this takes about a minute.'
	@"$(PYTHON)" -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[$(EXTRA)]'
	@touch $@
