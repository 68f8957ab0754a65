# make demo, make test: each does all the set-up a fresh machine needs (Python 3.11+).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
# pip and uv both take package names; uv is used when it is there because it is faster
INSTALL := $(if $(UV),VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install -q --compile-bytecode,$(BIN)/python -m pip install -q --disable-pip-version-check)
STAMPS := $(VENV)/stamps
JOBS ?= 2

.PHONY: demo test browser check lint types docs bench experiments mutants fuzz certificates clean bounds torture oldest licenses lock locked wheel

demo: $(STAMPS)/placet
	$(BIN)/placet demo --out demo

# the browser tests need chromium, and axe-core for accessibility; what cannot be had they skip, and say so
AXE := build/axe.min.js
browser: $(STAMPS)/test $(AXE)
	PLACET_ARTIFACTS=build/screenshots $(BIN)/python -m pytest tests/studio/test_studio_browser.py tests/studio/test_studio_keyboard.py tests/studio/test_studio_decisive.py tests/report/test_report_browser.py

$(AXE):
	mkdir -p build
	cd build && npm pack --silent axe-core@4.14.0 && tar xzf axe-core-4.14.0.tgz package/axe.min.js && mv package/axe.min.js . && rm -r package axe-core-4.14.0.tgz

# many tests start commands, which shall find their modules compiled
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMPS)/test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/losses/test_losses.py -m "not jit"

check: lint types test

lint: $(STAMPS)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/lint
	$(BIN)/mypy

docs: $(STAMPS)/docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

bench: $(STAMPS)/bench
	set -e; for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python -m $$(echo $${file%.py} | tr / .) $(BENCH); done

experiments: $(STAMPS)/test
	set -e; for file in $$(grep -l __main__ experiments/*/*.py); do echo "== $$file"; $(BIN)/python -m $$(echo $${file%.py} | tr / .) --quick; done
	$(BIN)/python -m experiments.mutants --quick

# every break that the quick experiments must notice, a quarter of an hour; make experiments has a part of them
mutants: $(STAMPS)/test
	$(BIN)/python -m experiments.mutants

certificates: $(STAMPS)/test
	PLACET_CHANGES=10000 $(BIN)/python -m pytest -q tests/aggregate/proof/test_certificate.py -k change

fuzz: $(STAMPS)/test
	$(INSTALL) atheris
	$(BIN)/python fuzz/fuzz_readers.py -max_total_time=600
	$(BIN)/python fuzz/fuzz_models.py --mutations 100000
	$(BIN)/python fuzz/fuzz_door.py --problems 30000

# every index of every kernel is looked at; its own cache, for kernels compiled so are slow; the studio runs none of its own
bounds: $(STAMPS)/test
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/bounds $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests --ignore-glob='*/test_studio*'

# half an hour of CPU (TORTURE=--quick for a look); goes on where it was stopped; writes docs/reliability.md
torture: $(STAMPS)/bench
	$(BIN)/python fuzz/torture.py $(TORTURE)

# the oldest versions that pyproject.toml allows, in an environment of their own
oldest: $(BIN)/python
	rm -rf $(VENV)-oldest
	$(PYTHON) -m venv $(VENV)-oldest
	$(BIN)/python tools/oldest.py > $(VENV)-oldest/versions.txt
	$(VENV)-oldest/bin/python -m pip install -q --disable-pip-version-check -r $(VENV)-oldest/versions.txt pytest hypothesis mpmath pandas pyarrow
	$(VENV)-oldest/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)-oldest/kernels $(VENV)-oldest/bin/python -m pytest -q -p no:cacheprovider -W default tests/data/test_containers.py tests/aggregate/test_heads.py tests/data/test_sparse.py tests/rank/test_sklearn.py

# the wheel in an environment of its own, where no checkout is: its demo, a page, and the metadata
wheel: $(BIN)/python
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps -w build/wheel .
	$(PYTHON) -m venv build/wheel/env
	$(if $(UV),VIRTUAL_ENV=$(CURDIR)/build/wheel/env $(UV) pip install -q,build/wheel/env/bin/python -m pip install -q --no-compile --disable-pip-version-check) build/wheel/*.whl
	bash tools/try_wheel.sh build/wheel/env docs/files/votes.csv
	rm -r build/wheel/env

licenses: $(STAMPS)/placet
	$(BIN)/python tools/licenses.py

lock: $(BIN)/python
	$(INSTALL) uv
	$(BIN)/python tools/lock.py

# a development set-up of exactly the files that requirements.lock names, each checked by its digest
locked: $(BIN)/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	mkdir -p $(STAMPS)

$(STAMPS)/placet: pyproject.toml | $(BIN)/python
	$(INSTALL) -e '.[serve]'
	touch $@

# torch is optional everywhere; pip (not uv) so that a machine's own CPU wheel is found
$(STAMPS)/test: $(STAMPS)/placet
	$(INSTALL) -e '.[trees,plot,tracking,serve,test]'
	$(BIN)/python -m pip install -q --disable-pip-version-check 'torch==2.13.0' || echo 'torch could not be installed: its tests will be skipped'
	touch $@

$(STAMPS)/lint: $(STAMPS)/placet
	$(INSTALL) -e '.[lint]'
	touch $@

$(STAMPS)/docs: $(STAMPS)/placet
	$(INSTALL) -e '.[docs]'
	touch $@

$(STAMPS)/bench: $(STAMPS)/test
	$(INSTALL) -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build demo .pytest_cache .mypy_cache .ruff_cache
