# What one types to build, test and measure weft. `make help` lists it.
#
#   PRESET=dev       a preset of CMakePresets.json instead of release
#   SUITES="..."     the suites that `make test` runs, see tools/run_tests.py
#   SETUP=no         install nothing: use the system's python3 and libraries
#   OPINFO_ARGS=...  further arguments of tests/torch/opinfo.py
#   JOBS=n           compile n files at a time
#   CMAKE_ARGS=...   further arguments of the first `cmake --preset`

SHELL := /bin/bash
PRESET ?= release
SUITES ?= gtest pytest fuzz devices torch lint
FUZZ ?= fuzz_simplify
SETUP ?= yes
JOBS ?= $(shell nproc)

SANITIZERS := asan-ubsan tsan
# What `make run` leaves out of a new build folder, and `make build` puts in.
PARTS := WEFT_TESTS WEFT_FUZZ WEFT_BENCH WEFT_TOOLS WEFT_TORCH
RUN_PARTS := $(PARTS:%=-D%=OFF)

ifeq ($(SETUP),no)
PYTHON := $(shell command -v python3)
BENCH_PYTHON := $(PYTHON)
STAMP :=
BENCH_STAMP :=
RUN_STAMP :=
CMAKE_ARGS ?= -DWEFT_WERROR=OFF# an unknown compiler may warn of more
else
PYTHON := $(CURDIR)/.venv/bin/python
BENCH_PYTHON := $(CURDIR)/.venv-bench/bin/python
STAMP := .venv/.stamp
RUN_STAMP := .venv/.stamp-run
BENCH_STAMP := .venv-bench/.stamp
endif

.PHONY: run test test-torch-opinfo build bench docs lint format fuzz asan-ubsan tsan test-asan test-tsan setup clean distclean help FORCE
.PRECIOUS: build/%/build.ninja

# Only what it runs: the library and the Python package. A build folder that is there is used as it is.
run: $(RUN_STAMP) ## Set up, build the library and the Python package, and take the tour
	@test -e build/$(PRESET)/build.ninja || { \
	  tools/quiet.sh "make run: configuring" build/$(PRESET)/run.log \
	    cmake --preset $(PRESET) -DPython_EXECUTABLE=$(PYTHON) $(RUN_PARTS) $(CMAKE_ARGS) && \
	  touch build/$(PRESET)/.only-run; }
	@tools/quiet.sh "make run: building" build/$(PRESET)/run.log \
	  cmake --build build/$(PRESET) -j $(JOBS) --target weft _core
	@PYTHONPATH=build/$(PRESET)/python $(PYTHON) examples/python/tour.py

# Builds what the suites need: the preset itself, and a build for each sanitizer suite.
test: $(addprefix build-,$(filter $(SANITIZERS),$(SUITES)) $(if $(filter-out $(SANITIZERS),$(SUITES)),$(PRESET)))
test: ## Set up, build and run every test
	$(PYTHON) tools/run_tests.py --preset $(PRESET) --suites $(SUITES)

test-torch-opinfo: build ## Run PyTorch's samples of its operators on device weft, and write docs/torch-coverage.md
	PYTHONPATH=build/$(PRESET)/python WEFT_DEVICE=$${WEFT_DEVICE:-CPU} $(PYTHON) tests/torch/opinfo.py \
	  --table docs/torch-coverage.md --results build/$(PRESET)/torch-opinfo.jsonl $(OPINFO_ARGS)

build: build-$(PRESET) ## Set up and build; .venv/bin/python can `import weft` after it

bench: build $(BENCH_STAMP) ## Measure side by side with tinygrad, PyTorch, JAX and NumPy
	WEFT_BUILD=build/$(PRESET) PYTHONPATH=build/$(PRESET)/python $(BENCH_PYTHON) bench/run.py $(BENCH_ARGS)

lint: build ## Check with clang-format, clang-tidy and mypy
	$(PYTHON) tools/lint.py --build build/$(PRESET)

format: $(STAMP) ## Rewrite the sources with clang-format
	$(PYTHON) tools/lint.py --fix-format

docs: $(STAMP) ## Write the documentation as a site, build/site/index.html, with the package that was built
	PYTHONPATH=build/$(PRESET)/python $(PYTHON) tools/site.py

fuzz: build-fuzz ## Run the fuzz program FUZZ=name until it finds something
	build/fuzz/bin/$(FUZZ) --count=0 --seed=$$RANDOM$$RANDOM

test-asan asan-ubsan: ## Run the C++ tests and fuzz programs under ASan and UBSan
	$(MAKE) --no-print-directory test SUITES=asan-ubsan

test-tsan tsan: ## Run the C++ tests and fuzz programs under TSan
	$(MAKE) --no-print-directory test SUITES=tsan

setup: $(STAMP) ## Install what is missing and make .venv

clean: ## Remove what was built
	rm -rf build

distclean: clean ## Remove what was built and set up
	rm -rf .venv .venv-bench

help: ## Show this
	@awk -F ':.*## ' '/^[a-z][a-z -]*:.*## / {printf "  %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build-%: build/%/build.ninja
	@! test -e build/$*/.only-run || { \
	  cmake --preset $* -DPython_EXECUTABLE=$(PYTHON) $(PARTS:%=-D%=ON) $(CMAKE_ARGS) && rm build/$*/.only-run; }
	cmake --build build/$* -j $(JOBS)

build/%/build.ninja: CMakePresets.json $(STAMP)
	cmake --preset $* -DPython_EXECUTABLE=$(PYTHON) $(CMAKE_ARGS)
	@touch $@

# These run each time, and leave the stamp alone when there is nothing to do.
.venv/.stamp: FORCE
	@tools/setup.sh
.venv/.stamp-run: FORCE
	@tools/setup.sh run
.venv-bench/.stamp: FORCE
	@tools/setup.sh bench
