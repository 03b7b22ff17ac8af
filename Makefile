# The everyday commands; `make` alone lists them. CMake and pip do the work (CMakePresets.json, pyproject.toml).

PYTHON ?= python3
JOBS ?= $(shell nproc)
PYTEST_JOBS ?= $(shell expr $(JOBS) + 1)
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 0
HEADRACE_WERROR ?= OFF
# Of `make portable-wheel`: interpreters, the oldest one first, and processors.
PORTABLE_PYTHONS ?= $(PYTHON)
PORTABLE_ARCHS ?= x86_64 aarch64
HEADRACE_CONFORMANCE_DATA ?= $(abspath ../shared/data)
# CXX: under one name for every build, so that ccache knows what the wheel's has compiled when the release build comes.
export PYTHON CXX HEADRACE_WERROR HEADRACE_CONFORMANCE_DATA

VENV := .venv/bin
STAMPS := .venv/.stamps
# What the native module is made of; Python files are read from where they lie.
NATIVE := CMakeLists.txt tools/native_files.py python/CMakeLists.txt python/bindings/exports.map $(wildcard cmake/*) \
  $(shell find include src python/bindings -name '*.h' -o -name '*.cc' 2>/dev/null)
PACKAGE := $(shell find python/headrace python/headrace_pytest -name '*.py' -o -name '*.pyi' -o -name py.typed 2>/dev/null)
CXX_FILES = $(shell find include src python tests benchmarks fuzz samples -name '*.h' -o -name '*.cc')
PY_DIRS := python tests tools benchmarks samples
# Runs a stage and keeps how long it took, for `make times`.
TIMED := $(PYTHON) tools/times.py stage

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The order of the targets below is the order of a fresh machine; the builds inside run in parallel.
.NOTPARALLEL:
.PHONY: help setup system torch frameworks streaming mindspore tensorflow large-loaders more-loaders cluster-engines object-store integrations build demo \
  test test-cpp test-asan test-tsan test-python test-realtime test-all test-libraries mutants record-cases check nightly checks bench verdicts bench-verdicts costs fuzz \
  docs lint sizes numbers times ceilings tidy format figures wheel portable-wheel clean build-release build-asan build-fuzz build-tsan build-bench bench-packages wheel-tools

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# --- set-up -----------------------------------------------------------------------------------------------------

setup: system $(STAMPS)/project  ## Debian packages, .venv, first build; does nothing the second time

system:
	@tools/setup.sh system

$(STAMPS)/venv: tools/setup.sh | system
	@tools/setup.sh venv
	@mkdir -p $(@D) && touch $@

$(STAMPS)/requirements: pyproject.toml tools/requirements.py $(STAMPS)/venv
	@tools/setup.sh requirements
	@touch $@

# Removed first: a build that fails halfway must not look finished.
$(STAMPS)/project: pyproject.toml $(NATIVE) $(STAMPS)/requirements
	@rm -f $@
	@$(TIMED) build-module tools/setup.sh project
	@touch $@

$(STAMPS)/lint: pyproject.toml tools/requirements.py $(STAMPS)/requirements
	@tools/setup.sh lint
	@touch $@

torch: $(STAMPS)/venv
	@tools/setup.sh torch

# Their tests are skipped where they are not installed.
frameworks: torch
	@tools/setup.sh frameworks

streaming: frameworks
	@tools/setup.sh streaming

# Keras, MLflow, W&B and a Jupyter kernel, for the tests of integrations.
integrations: $(STAMPS)/venv
	@tools/setup.sh integrations

tensorflow: $(STAMPS)/venv
	@tools/setup.sh tensorflow

mindspore: $(STAMPS)/venv
	@tools/setup.sh mindspore

large-loaders: $(STAMPS)/venv
	@tools/setup.sh large-loaders

more-loaders: $(STAMPS)/venv
	@tools/setup.sh more-loaders

cluster-engines: $(STAMPS)/venv
	@tools/setup.sh cluster-engines

# moto's server and s3fs.
object-store: $(STAMPS)/venv
	@tools/setup.sh object-store

# --- build and run ----------------------------------------------------------------------------------------------

build: setup build-release  ## the C++ library and the Python module

build-release build-asan build-fuzz build-tsan build-bench: build-%: system
	@mkdir -p build
	@cmake --preset $* -DHEADRACE_WERROR=$(HEADRACE_WERROR) >build/configure-$*.log 2>&1 || { cat build/configure-$*.log; exit 1; }
	@$(TIMED) build-$* cmake --build --preset $*

bench-packages:
	@tools/setup.sh bench

demo:  ## find and remove the bottleneck of a built-in pipeline; installs and compiles only what that takes
	@tools/setup.sh demo

# --- tests ------------------------------------------------------------------------------------------------------

# What a change needs: the library optimised, as users have it, and no compiler, browser or framework but PyTorch.
test: setup torch test-cpp test-python  ## C++ and Python tests

# All that has to hold before a change is taken (.ci/run). Sanitizers first: the last lines are ctest's and pytest's.
check: lint checks test-asan test-tsan setup torch test-cpp show-times test-python  ## lint, sanitizers, tests: what CI runs

# Once before an issue is called resolved; hours.
nightly: check times costs docs fuzz tidy wheel test-all record-cases mutants test-realtime  ## all that `make check` has no time for

# What only `make check` needs: clang, valgrind, a browser.
checks: $(STAMPS)/venv
	@tools/setup.sh check

test-cpp: build-release  ## C++ tests, optimised
	@$(TIMED) ctest-release ctest --preset release -j $(JOBS)

test-asan: checks build-asan  ## C++ tests and fuzz corpora under Address- and UndefinedBehaviorSanitizer
	@$(TIMED) ctest-asan ctest --preset asan -j $(JOBS)

test-tsan: build-tsan  ## C++ tests of what runs in threads, under ThreadSanitizer
	@$(TIMED) ctest-tsan ctest --preset tsan -j $(JOBS)

# Most tests wait more than they compute, so several run side by side. The wheel's tests run where `make wheel` did.
test-python: setup torch  ## Python tests
	@export HEADRACE_WHEEL="$$(cat build/wheel/stamp 2>/dev/null)"; mkdir -p build/times; \
	  $(TIMED) pytest $(VENV)/python -m pytest -n $(PYTEST_JOBS) --dist loadfile --junitxml=build/times/pytest.xml

# A library in a process of its own, so that a crash has its name.
test-all: setup torch frameworks streaming mindspore tensorflow large-loaders more-loaders integrations cluster-engines object-store test-python test-libraries  ## Python tests with every library that has some; gigabytes

test-libraries: setup torch  ## tests of the libraries that are installed
	@for module in tests/libraries/test_*.py; do $(VENV)/python -m pytest $$module || test $$? = 5 || failed=1; done; test -z "$$failed"

record-cases: setup torch  ## play the loops of tests/verdicts/loops again; fails where operators, queues or parameters changed
	HEADRACE_RECORD_CASES=1 $(VENV)/python -m pytest tests/python
	HEADRACE_RECORD_CASES=1 $(MAKE) test-libraries

mutants: test-cpp setup torch  ## ten faults put into the product, one by one: fails where the tests do not find one
	$(VENV)/python tests/mutants/run.py

test-realtime: setup torch  ## tests in real time; prints how many of them passed, and is no part of `make test`
	@$(VENV)/python -m pytest tests/realtime

fuzz: checks build-fuzz  ## each fuzz target for FUZZ_SECONDS (60); FUZZ_SEED other than 0 repeats a run
	@printf '%s\n' build/fuzz/fuzz/*_fuzz | xargs -P $(JOBS) -I {} tools/fuzz.sh {} $(FUZZ_SECONDS) $(FUZZ_SEED)

# --- benchmarks -------------------------------------------------------------------------------------------------

bench: setup bench-packages build-bench  ## all benchmarks; raw figures with machine, compiler and commit
	@benchmarks/run.sh

verdicts: setup system  ## stored and simulated profiles judged again; ABLATE=1: which thresholds none needs
	@mkdir -p build && cmake --preset release >build/configure-release.log 2>&1 || { cat build/configure-release.log; exit 1; }
	@cmake --build --preset release --target verdict_cases
	@$(VENV)/python benchmarks/verdicts/judge.py --cases build/native/release/tests/verdict_cases $(if $(ABLATE),--ablate)

bench-verdicts: setup  ## verdicts on live random pipelines, scored
	@$(VENV)/python benchmarks/verdicts/run.py

costs: setup torch checks  ## instructions of what recording and reading do, against tools/ceilings.toml (Valgrind)
	@$(VENV)/python tools/costs/run.py

# --- documentation ----------------------------------------------------------------------------------------------

docs: $(STAMPS)/project  ## build/site: the documentation with the reference of Python and C++; a broken link fails
	@tools/setup.sh docs
	rm -rf build/reference build/site && mkdir -p build/reference
	doxygen Doxyfile
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build
	@echo "docs: read it with: $(VENV)/python -m http.server --bind 127.0.0.1 --directory build/site"

# --- form -------------------------------------------------------------------------------------------------------

# mypy reads files that the build of the module writes.
lint: $(STAMPS)/project $(STAMPS)/lint  ## formatters and linters, no change
	@PY_DIRS="$(PY_DIRS)" $(TIMED) lint tools/lint.sh $(CXX_FILES)

sizes:  ## lines by room, headers that are not installed, imports inside functions, circles of includes
	@$(PYTHON) tools/sizes.py

numbers:  ## hand-set numbers of the code that judges, by room
	@$(PYTHON) tools/hand_set_numbers.py

ceilings:  ## lower the figures of tools/ceilings.toml to what is measured; none rises
	@$(PYTHON) tools/ceilings.py

times:  ## minutes of each stage that ran, and the tests over 3 s; fails half above tools/ceilings.toml
	@$(PYTHON) tools/times.py

# No check fails by the clock of the machine it runs on: `make nightly` does.
show-times:
	@$(PYTHON) tools/times.py || true

# The units of the asan build: a folder each (largest first), and the files with options of their own.
tidy: checks $(STAMPS)/lint build-asan  ## clang-tidy over the library, with the flags of the asan build
	@grep -o '"file": "[^"]*"' build/asan/compile_commands.json | cut -d '"' -f 4 | \
	  grep -E '/headrace(_profiler)?\.dir/Unity/|^$(CURDIR)/src/' | xargs ls -S | \
	  xargs -P $(JOBS) -n 1 $(VENV)/clang-tidy -p build/asan --quiet --extra-arg=-Wno-deprecated-declarations 2>/dev/null

format: system $(STAMPS)/lint  ## formatters, in place
	@$(VENV)/clang-format -i $(CXX_FILES)
	$(VENV)/ruff check --fix-only $(PY_DIRS)
	$(VENV)/ruff format $(PY_DIRS)

figures: setup  ## what is written from declarations: pages of figures and tables, the schema, the import hook's table of loaders
	$(VENV)/python tools/figures.py
	$(VENV)/python tools/table_columns.py
	$(VENV)/python tools/loader_modules.py
	$(VENV)/python tools/watch_kinds.py
	$(VENV)/python tools/schema.py

# --- release ----------------------------------------------------------------------------------------------------

wheel: setup wheel-tools build/wheel/stamp  ## dist/*.whl, with the libraries that it needs inside

wheel-tools: $(STAMPS)/venv
	@tools/setup.sh wheel-tools

# Holds the wheel's path: dist may have others, of `make portable-wheel`.
build/wheel/stamp: pyproject.toml README.md LICENSE THIRD-PARTY-LICENSES $(NATIVE) $(PACKAGE) $(STAMPS)/requirements
	rm -rf build/wheel
	$(VENV)/python -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w build/wheel .
	PATH="$(abspath $(VENV)):$$PATH" $(VENV)/auditwheel repair -w build/wheel/repaired build/wheel/headrace-*.whl
	mkdir -p dist && cp build/wheel/repaired/*.whl dist
	cd build/wheel/repaired && printf 'dist/%s\n' *.whl >../stamp

portable-wheel: system  ## dist/*.whl for glibc 2.28 and newer: PORTABLE_PYTHONS="python3.10 python3.12", PORTABLE_ARCHS
	@tools/setup.sh portable
	@tools/portable_sources.sh
	@for arch in $(PORTABLE_ARCHS); do tools/portable_wheel.sh $$arch $(PORTABLE_PYTHONS) || exit 1; done

clean:  ## what was built; .venv stays
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache
