# Everything makes the environment it needs. Only Python >= 3.11 and a package index are assumed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test coverage test-spark test-torch test-ray lint bench dist dist-test extras-test reproduce docs docs-check peers soak clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    learn, forget, and prove it on scikit-learn's digits (writes demo.png)"
	@echo "make test    lint, types and all tests; make test-spark those of Spark, which needs Java;"
	@echo "             make coverage which lines the tests reach;"
	@echo "             make test-torch those of tensors, which install torch; make test-ray with Ray (80 MB)"
	@echo "make bench   speed and memory of learning in one go, against scikit-learn; the others are make bench-NAME:"
	@echo "             accuracy, cross_validation, engines, everyday, gpu, out_of_core, paths, penalties, probabilities,"
	@echo "             refitting, scores, starting, store, updates; make bench-report runs all and writes docs/benchmarks.md"
	@echo "make dist-test   wheel and sdist, each tested in an empty environment; make extras-test"
	@echo "             the same for extras, alone, in pairs and all together (slow)"
	@echo "make peers   scikit-learn's own tests of SVC, Ridge and cross-validation, run with ours in their place"
	@echo "make soak    the long forms: 10 000 damaged files, 200 killed stores, 6600 faults, degenerate paths,"
	@echo "             checks, 20 000 solutions and predictions against fractions (three quarters of an hour)"
	@echo "make reproduce   the experiments of the papers, as reports in results/ (QUICK=1: on few rows)"
	@echo "make docs    the site, with its gallery; make docs-check builds it without running the gallery"
	@echo "make lint    style, types and layers only"
	@echo "make clean   remove the environment and caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "traceless needs Python 3.11 or newer; run: make PYTHON=python3.x ...")'
	@echo "making the environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

# one stamp per extra: .venv/with-plots, .venv/with-test, .venv/with-bench
$(VENV)/with-%: pyproject.toml | $(VENV)/bin/python
	@echo "installing traceless[$*] ..."
	@$(PIP) install -e '.[$*]'
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
test: lint
	$(PYTEST)

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

# the wheel is built from the sdist, so both are tried
dist: $(VENV)/bin/python
	@$(PIP) install build
	rm -rf dist
	$(BIN)/python -m build

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
	$(BIN)/python tests/store/faults.py
	$(BIN)/python tests/store/faults.py --disks 4
	$(BIN)/python tests/hinge/stress.py --minutes 5
	$(BIN)/python tests/ours.py --minutes 5
	TRACELESS_SOAK=20 $(BIN)/python -m pytest -q -o timeout=0 tests/solvers/test_rounded.py tests/arithmetic/test_products.py

docs: $(VENV)/with-docs
	$(BIN)/sphinx-build -W --keep-going -n docs docs/_build/html
	@echo "the site is docs/_build/html/index.html"

docs-check: $(VENV)/with-docs $(VENV)/with-test
	$(BIN)/sphinx-build -W --keep-going -n -q -D plot_gallery=0 docs docs/_build/check
	$(BIN)/python -m pytest -q tests/test_documents.py -k "examples or links or reference"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .import_linter_cache docs/_build docs/gallery docs/generated
