# The front door: `make help` lists what it opens.
# openJiuwen needs Python 3.11 to 3.13; a name on the PATH may be a shim that does not run, so each is tried.
PYTHON := $(shell for name in python3.13 python3.12 python3.11 python3; do \
  $$name -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$name && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo demo-host test fuzz soak lint types bench hosts clean
help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

.venv/core: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "extforge needs Python 3.11, 3.12 or 3.13; none was found"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --editable .
	@touch $@

.venv/host: .venv/core
	$(INSTALL) --editable '.[host]'
	@touch $@

.venv/dev: .venv/host
	$(INSTALL) --editable '.[dev,host]'
	@touch $@

demo: .venv/core ## set up, and run the whole chain on the bundled plan (a minute, 250 MB)
	$(BIN)/extforge demo

demo-host: .venv/host ## the same, and in the real openJiuwen (1 GB)
	$(BIN)/extforge demo --host

test: .venv/dev ## set up, and run all tests, the real openJiuwen included
	$(BIN)/pytest --numprocesses 2 --dist loadfile

fuzz: .venv/dev ## verify 100,000 mutated files (a few minutes)
	$(BIN)/python tests/fuzz.py --files 100000

soak: .venv/dev ## kill generate at 300 moments (a minute)
	EXTFORGE_KILLS=300 $(BIN)/pytest tests/test_crash.py -k kill

lint: .venv/dev ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/dev ## check types
	$(BIN)/mypy

CORPUS := ../shared/corpus
bench: .venv/dev ## measure, side by side with others (CORPUS=folder of labelled files)
	$(BIN)/python benchmarks/start.py
	$(BIN)/python benchmarks/generating.py
	$(BIN)/python benchmarks/large.py
	$(BIN)/python benchmarks/peers.py $(CORPUS)

hosts: .venv/dev ## run generated trees on openJiuwen 0.1.14 to the newest
	$(BIN)/python benchmarks/hosts.py

clean: ## remove the environment and what was built
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
