# Everything makes the environment it needs. Only Python >= 3.11 and a package index are assumed;
# with a C++ compiler the core is compiled.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo core sanitize test test-plain coverage test-spark test-torch test-ray test-flower lint messages bench dist dist-test extras-test reproduce docs docs-check peers soak clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    learn, forget, and prove it on scikit-learn's digits (writes demo.png)"
	@echo "make test    lint, types and all tests; make test-spark those of Spark, which needs Java;"
	@echo "             make coverage which lines the tests reach;"
	@echo "             make test-torch those of tensors, which install torch; make test-ray with Ray (80 MB);"
	@echo "             make test-flower a round over Flower, in an environment of its own"
	@echo "make core    compile the core again; make sanitize tests it under ASan and UBSan (Linux);"
	@echo "             make test-plain tests what it computes without it"
	@echo "make bench   speed and memory of learning in one go, against scikit-learn; the others are make bench-NAME:"
	@echo "             accuracy, cross_validation, engines, everyday, expect, federation, frames, gpu, out_of_core, paths, penalties, probabilities,"
	@echo "             refitting, scores, solves, starting, store, updates; make bench-report runs all and writes docs/benchmarks.md"
	@echo "make dist-test   wheel and sdist, each tested in an empty environment; make extras-test"
	@echo "             the same for extras, alone, in pairs and all together (slow)"
	@echo "make peers   scikit-learn's own tests of SVC, Ridge and cross-validation, run with ours in their place"
	@echo "make soak    the long forms: 10 000 damaged files, 200 killed stores, 5000 power cuts, 6600 faults, degenerate paths,"
	@echo "             checks, 20 000 solutions and predictions against fractions (three quarters of an hour)"
	@echo "make reproduce   the experiments of the papers, as reports in results/ (QUICK=1: on few rows)"
	@echo "make docs    the site, with its gallery; make docs-check builds it without running the gallery"
	@echo "make lint    style, types and layers only; make messages brings the translations up to date"
	@echo "make clean   remove the environment and caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "traceless needs Python 3.11 or newer; run: make PYTHON=python3.x ...")'
	@echo "making the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# The core goes to src/traceless. Without a compiler plain Python takes its place; what a compiler
# refuses is an error.
CORE = src/traceless/_core$(shell $(BIN)/python -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
REQUIRES := import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])
INSTALL := $(PIP) install --no-build-isolation
LOG := $(VENV)/core.log
$(VENV)/core: pyproject.toml CMakeLists.txt $(wildcard src/core/*) | $(VENV)/bin/python
	@echo "compiling the core ..."
	@$(PIP) install cmake ninja $$($(BIN)/python -c '$(REQUIRES)')
	@rm -f $(CORE)
	@$(INSTALL) -vv --no-deps -e . > $(LOG) 2>&1 || { cat $(LOG); exit 1; }
	@if [ ! -e $(CORE) ]; then \
	  if $(CXX) -x c++ -E /dev/null > /dev/null 2>&1; then cat $(LOG); exit 1; fi; \
	  echo "no C++ compiler: plain Python takes its place, with the same results, slower"; fi
	@touch $@

core:
	@rm -rf $(VENV)/core build
	@$(MAKE) --no-print-directory $(VENV)/core

# one stamp per extra: .venv/with-plots, .venv/with-test, .venv/with-bench; traceless itself is there
$(VENV)/with-%: pyproject.toml | $(VENV)/core
	@echo "installing traceless[$*] ..."
	@$(PIP) install 'traceless[$*]'
	@touch $@

demo: $(VENV)/with-plots
	$(BIN)/python examples/demo.py

lint: $(VENV)/with-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# one BLAS thread for each worker: two on a core that is busy wait for each other, at twice the cost
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal
test: lint test-plain
	$(PYTEST)

# the catalogue of messages: extracted from the templates, merged into what is translated, compiled
LOCALE := src/traceless/pages/locale
messages: $(VENV)/with-test
	$(BIN)/pybabel -q extract -F pyproject.toml --no-location --sort-output -o build/messages.pot src/traceless
	$(BIN)/pybabel -q update -D traceless -d $(LOCALE) -i build/messages.pot --no-fuzzy-matching --ignore-pot-creation-date
	$(BIN)/pybabel -q compile -D traceless -d $(LOCALE)

# what the core computes, without it: the same results
test-plain: $(VENV)/with-test
	TRACELESS_PLAIN=1 $(PYTEST) -q tests/arithmetic tests/knowledge tests/solvers tests/test_history.py

# the core under AddressSanitizer and UndefinedBehaviorSanitizer (Linux)
SANITIZED := build/sanitized
sanitize: $(VENV)/with-test
	rm -rf $(SANITIZED)
	$(INSTALL) --no-deps --target $(SANITIZED) -C build-dir=build/sanitize -C cmake.build-type=RelWithDebInfo \
	  -C cmake.define.TRACELESS_SANITIZE=ON .
	export PYTHONPATH=$(SANITIZED) ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$(ldd $(SANITIZED)/traceless/_core.*so | awk '/san.so|stdc/ {print $$3}' | xargs)"; \
	  $(BIN)/python -c 'from traceless.arithmetic.core import COMPILED; assert COMPILED' && \
	  $(BIN)/python -m pytest tests/arithmetic

# the same, and which lines it reached
coverage: $(VENV)/with-test
	$(PYTEST) --cov --cov-report=term

# torch takes 5 GB with its CUDA libraries: set TORCH to the wheel of your choice
TORCH ?= torch
test-torch: $(VENV)/with-test
	$(BIN)/python -c "import torch" 2>/dev/null || $(PIP) install $(TORCH)
	$(PYTEST) tests/device tests/sources/test_streams.py

test-ray: $(VENV)/with-test
	$(BIN)/python -c "import ray.data" 2>/dev/null || $(PIP) install 'ray[data]>=2.9'
	$(BIN)/python -m pytest tests/sources/test_streams.py

# Flower asks for older versions of what others use, so it has an environment of its own
FLOWER ?= flwr[simulation]
test-flower: .venv-flower/with-flower
	.venv-flower/bin/python -m pytest tests/federation/test_flower.py

bench-federation: .venv-flower/with-flower
	.venv-flower/bin/python -m benchmarks.federation

.venv-flower/with-flower: pyproject.toml
	$(MAKE) --no-print-directory VENV=.venv-flower .venv-flower/with-store
	.venv-flower/bin/python -m pip -q install hypothesis pandas pytest pytest-timeout '$(FLOWER)'
	@touch $@

test-spark: $(VENV)/with-test $(VENV)/with-spark
	$(BIN)/python -m pytest tests/sources/test_spark.py

# make bench-updates runs python -m benchmarks.updates, and so on
bench: bench-foundation
bench-%: $(VENV)/with-bench
	$(BIN)/python -m benchmarks.$*

bench-engines bench-report: $(VENV)/with-spark

bench-gpu: $(VENV)/with-bench
	$(BIN)/python -c "import torch" 2>/dev/null || $(PIP) install $(TORCH)
	$(BIN)/python -m benchmarks.gpu

# the sdist, and from it the wheel without the core; the others are made by cibuildwheel
dist: $(VENV)/bin/python
	@$(PIP) install build
	rm -rf dist
	$(BIN)/python -m build --sdist
	$(PIP) wheel --no-deps -C wheel.cmake=false -w dist dist/*.tar.gz

dist-test: dist
	$(BIN)/python tests/installed.py dist/*.whl dist/*.tar.gz

extras-test: dist
	$(BIN)/python tests/installed.py --extras dist/*.whl

reproduce: $(VENV)/with-papers
	$(BIN)/python -m papers lee2019 $(if $(QUICK),--quick)
	$(BIN)/python -m papers zhu2018 $(if $(QUICK),--quick)
	$(BIN)/python -m papers karasuyama2009 $(if $(QUICK),--quick)

peers: $(VENV)/with-test
	$(BIN)/python tests/peers/run.py

soak: $(VENV)/with-test
	$(BIN)/python tests/files/fuzz_files.py --count 10000
	$(BIN)/python tests/store/kill.py --kills 200
	$(BIN)/python tests/store/crashes.py --states 5000
	$(BIN)/python tests/store/faults.py
	$(BIN)/python tests/store/faults.py --disks 4
	$(BIN)/python tests/hinge/stress.py --count 20000 --swaps 20000 --jobs 2
	$(BIN)/python tests/ours.py --minutes 5
	TRACELESS_SOAK=20 $(BIN)/python -m pytest -q -o timeout=0 tests/solvers/test_solve.py tests/arithmetic/test_products.py

docs: $(VENV)/with-docs
	$(BIN)/sphinx-build -W --keep-going -n docs docs/_build/html
	@echo "the site is docs/_build/html/index.html"

docs-check: $(VENV)/with-docs $(VENV)/with-test
	$(BIN)/sphinx-build -W --keep-going -n -q -D plot_gallery=0 docs docs/_build/check
	$(BIN)/python -m pytest -q tests/test_documents.py -k "examples or links or reference"

clean:
	rm -rf $(VENV) build src/traceless/_core.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .import_linter_cache docs/_build docs/gallery docs/generated
