# One word per job. Every target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo demo-task docs test test-slow test-processors test-browser fuzz kill mutants reliability check lint types coverage coverage-of-intervals wheel extras oldest reproducible sbom audit bench bench-peers monitoring events prior bayes-evaluation study clean

help:
	@echo "demo   set up, compare methods on the built-in network, write a report"
	@echo "test   set up, run the tests"
	@echo "test-slow  run the slow tests: statistics, stress, memory, clusters"
	@echo "test-processors  run the tests as other processors would compute (half an hour)"
	@echo "test-browser  test the report in Chromium, which is installed if possible"
	@echo "fuzz   run 20,000 generated cases and 50,000 damaged files, from a random seed that it prints"
	@echo "kill   kill every command that writes, 120 times and more, and make its storage fail (ten minutes)"
	@echo "mutants  change the code in 400 small ways, one at a time: do the tests notice? (an hour)"
	@echo "reliability  run fuzz, kill and mutants, write docs/reliability.md"
	@echo "docs   build the documentation in build/docs, check its links"
	@echo "check  run lint, types, the built wheel in an empty environment, the report in Chromium, docs, tests"
	@echo "coverage  run the tests and measure coverage (half as long again)"
	@echo "coverage-of-intervals  measure how often intervals contain the truth (an hour and a half), fill docs/benchmarks/coverage.md"
	@echo "wheel  build the wheel and the source archive, test each in an empty environment, run the archive's tests"
	@echo "extras  test the wheel with each extra alone (long: each has its own environment)"
	@echo "oldest  run the core tests with the oldest versions that pyproject.toml allows"
	@echo "reproducible  build the wheel twice and compare the bytes"
	@echo "sbom   list what the wheel installs as CycloneDX JSON, write build/sbom.json"
	@echo "audit  find known vulnerabilities of what the wheel installs (asks a service on the network)"
	@echo "bench  measure speed as ratios to np.exp, in one run"
	@echo "bench-peers  measure other libraries beside ours (an hour, 6 GB), fill docs/benchmarks/speed.md"
	@echo "monitoring  simulate false alarms and power of temperance check, write docs/monitoring.md"
	@echo "events  simulate how calibration is judged and what is then done (an hour), fill docs/benchmarks/calibration-tests.md"
	@echo "prior  learn the population prior from the files in TASKS"
	@echo "bayes-evaluation  evaluate the prior (an hour; existing scores of other methods are kept)"
	@echo "study  run the paper's study on the files in TASKS (an hour and a half), write build/study-docs"
	@echo "demo-task  train the built-in network again (half an hour)"
	@echo "clean  remove everything that the targets made"

# The stamp is newer than the project file once the environment matches it.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/temperance demo --report temperance-demo.html --force

# The built-in network, trained anew: needs npm for the images.
demo-task: $(VENV)/ready
	$(BIN)/python benchmarks/train_demo.py --out src/temperance/data/demo.npz --overwrite

# pytest uses all cores, so each of its workers should use one. Tests start many Python processes: without
# stored bytecode, each of them compiles the libraries again.
BYTECODE := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/bytecode
WORKERS := $(BYTECODE) TEMPERANCE_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

SUITE := -m pytest -q -n auto --dist worksteal --durations=10

test: $(VENV)/ready
	$(WORKERS) $(BIN)/python $(SUITE)

test-slow: $(VENV)/ready
	$(WORKERS) $(BIN)/python $(SUITE) -m slow

# Kernels of OpenBLAS for other processors, then NumPy without its vector instructions: the last bits differ.
# A processor without AVX-512 cannot run those of SkylakeX, and OpenBLAS then takes its own.
test-processors: $(VENV)/ready
	for processor in Haswell SkylakeX Prescott; do \
	  echo "== $$processor" && OPENBLAS_CORETYPE=$$processor $(WORKERS) $(BIN)/python $(SUITE) || exit 1; \
	done
	echo "== NumPy, baseline" && NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c \
	  'from numpy._core._multiarray_umath import __cpu_dispatch__ as features; print(*features)')" $(WORKERS) $(BIN)/python $(SUITE)

# Chromium comes from Debian where we may install it; elsewhere the tests are skipped and say why.
test-browser: $(VENV)/ready
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || true
	$(BYTECODE) $(BIN)/python -m pytest -q -m browser tests/browser

# What it finds becomes a test in tests/trust. SEED=... runs the same cases again.
fuzz: $(VENV)/ready
	$(WORKERS) $(BIN)/python tests/trust/fuzzing.py $(if $(SEED),--seed $(SEED)) $(if $(JSON),--json $(JSON))

# Some faults need the rights of root, to mount a small disk; elsewhere their figure is 0.
kill: $(VENV)/ready
	$(WORKERS) $(BIN)/python tests/trust/kill_runner.py $(if $(SEED),--seed $(SEED)) $(if $(JSON),--json $(JSON))

# Results are kept in build/mutants: stop it, and go on later. JSON=... writes the figures to a file.
mutants: $(VENV)/ready
	$(WORKERS) $(BIN)/python tests/trust/mutants/runner.py $(if $(JSON),--json $(JSON))

# The figures of a target are kept, so that one of them can be run again alone.
reliability:
	$(MAKE) fuzz JSON=docs/reliability/fuzz.json
	$(MAKE) kill JSON=docs/reliability/kill.json
	$(MAKE) mutants JSON=docs/reliability/mutants.json
	$(BIN)/python benchmarks/reliability.py

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/prose.py

types: $(VENV)/ready
	$(BIN)/mypy

coverage: $(VENV)/ready
	$(WORKERS) $(BIN)/python -m pytest -q -n auto --dist worksteal --cov --cov-report=term --cov-fail-under=95

# Simulations that are done are kept: stop it, and go on later.
coverage-of-intervals: $(VENV)/ready
	TEMPERANCE_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/coverage_of_intervals.py

# Sphinx and its theme are not needed for anything else, so they are installed when the site is built.
$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

docs: $(VENV)/docs-ready
	$(WORKERS) $(BIN)/python docs/build.py

PIP_INSTALL := -m pip install --quiet --no-compile --disable-pip-version-check
BARE_TEST := -I -m pytest -q -p no:cacheprovider ../tests/project/test_bare_install.py
# The dates in the archives are those of the last commit, so that the same commit gives the same bytes.
EPOCH = $$(git log -1 --format=%ct 2>/dev/null || echo 1767225600)

# What users install: the wheel, and the source archive, without any extra; then all tests in the archive.
wheel: $(VENV)/ready
	rm -rf dist build/wheel-env build/sdist-env
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m build --quiet
	for kind in wheel sdist; do \
	  $(PYTHON) -m venv build/$$kind-env && \
	  build/$$kind-env/bin/python $(PIP_INSTALL) dist/*$$(test $$kind = wheel && echo .whl || echo .tar.gz) pytest && \
	  (cd build && $$kind-env/bin/python $(BARE_TEST)) || exit 1; \
	done
	rm -rf build/sdist && mkdir build/sdist && tar -xzf dist/*.tar.gz -C build/sdist --strip-components=1
	cd build/sdist && TASKS=$(abspath $(TASKS)) PYTHONPATH=$(CURDIR)/build/sdist/src $(WORKERS) $(abspath $(BIN))/python $(SUITE)

# Each extra in an environment of its own, of which one is there at a time.
EXTRAS := fast torch onnx dask plot io excel study
extras: wheel
	for extra in $(EXTRAS); do \
	  echo "== $$extra" && rm -rf build/extra-env && $(PYTHON) -m venv build/extra-env && \
	  build/extra-env/bin/python $(PIP_INSTALL) -c constraints.txt "$$(ls dist/*.whl)[$$extra]" pytest && \
	  (cd build && extra-env/bin/python $(BARE_TEST)) || exit 1; \
	done
	rm -rf build/extra-env

# Wheels alone: an old version that has none would be compiled.
oldest:
	rm -rf build/oldest-env
	$(PYTHON) -m venv build/oldest-env
	build/oldest-env/bin/python $(PIP_INSTALL) --only-binary :all: $$($(PYTHON) .github/oldest.py) pytest
	build/oldest-env/bin/python $(PIP_INSTALL) --no-deps .
	cd build && oldest-env/bin/python $(BARE_TEST)

reproducible: $(VENV)/ready
	rm -rf build/first build/second
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m build --quiet --wheel --outdir build/first
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m build --quiet --wheel --outdir build/second
	cmp build/first/*.whl build/second/*.whl
	@sha256sum build/first/*.whl

# The tools have environments of their own, so that they are not in the list.
build/%-tool:
	$(PYTHON) -m venv $@
	$@/bin/python $(PIP_INSTALL) $* || { rm -rf $@; exit 1; }

build/bom-env: pyproject.toml
	rm -rf $@ build/bom-wheel
	$(BIN)/python -m build --quiet --wheel --outdir build/bom-wheel
	$(PYTHON) -m venv --without-pip $@
	$(BIN)/python $(subst -m pip,-m pip --python $@/bin/python,$(PIP_INSTALL)) build/bom-wheel/*.whl

sbom: $(VENV)/ready build/bom-env build/cyclonedx-bom-tool
	build/cyclonedx-bom-tool/bin/cyclonedx-py environment --output-reproducible --of JSON -o build/sbom.json build/bom-env
	@echo "build/sbom.json"

audit: $(VENV)/ready build/bom-env build/pip-audit-tool
	build/pip-audit-tool/bin/pip-audit --path $$(echo build/bom-env/lib/python*/site-packages) --progress-spinner off || \
	  { echo "audit: vulnerabilities were found, or the service that knows them cannot be reached: see above" >&2; exit 1; }

# What takes one core each runs side by side; the tests, in the source archive, take all of them.
check: $(VENV)/ready
	$(MAKE) --no-print-directory --output-sync=target -j2 lint types test-browser docs
	$(MAKE) --no-print-directory wheel

bench: $(VENV)/ready
	$(BIN)/python benchmarks/speed.py

# Other libraries need versions that conflict, so that each has an environment of its own. Where one cannot be
# installed, the page says so. Without stored bytecode, a first fit would compile what it
# imports. Results that are there are kept: stop it, and go on later.
PEERS := $(notdir $(basename $(wildcard benchmarks/peers/requirements/*.txt)))

build/peers/%/ready: benchmarks/peers/requirements/%.txt constraints.txt
	$(PYTHON) -m venv build/peers/$*
	-build/peers/$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r $<
	touch $@

bench-peers: $(VENV)/ready $(PEERS:%=build/peers/%/ready)
	$(BYTECODE) $(BIN)/python benchmarks/peers/run_peers.py build/peers
	$(BIN)/python benchmarks/peers_report.py build/peers --out docs/benchmarks

monitoring: $(VENV)/ready
	$(BIN)/python benchmarks/monitoring.py --write
	$(BIN)/python benchmarks/monitoring_events.py --write

# One part: make events PART=power.
events: $(VENV)/ready
	TEMPERANCE_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python benchmarks/events.py $(or $(PART),all) --write

# Folder of task files, see benchmarks/learn_prior.py.
TASKS ?= ../shared/data/tasks

prior: $(VENV)/ready
	$(BIN)/python benchmarks/learn_prior.py $(TASKS) --out src/temperance/population.json --overwrite

bayes-evaluation: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt probmetrics==1.3.0
	$(BIN)/python benchmarks/bayes_evaluation.py $(TASKS) --out docs/bayesian --jobs 2 --groups rivals,package
	$(BIN)/python benchmarks/bayes_evaluation.py $(TASKS) --out docs/bayesian --jobs 2 --groups ours --again
	$(BIN)/python benchmarks/bayes_report.py

# The paper's own task, on which the paper's training is run too.
PAPERS_TASK ?= $(TASKS)/cifar10__resnet50-psrcal.npz
PAPERS_METHODS := ts,ets-brier,bts,hts,lts,hnlts,pts,pts-plain,pts-ece

study: $(VENV)/ready
	mkdir -p build
	$(BIN)/temperance study run $(TASKS) --out build/study
	$(BIN)/temperance study run $(PAPERS_TASK) --out build/study-paper --methods $(PAPERS_METHODS)
	$(BIN)/temperance study run $(PAPERS_TASK) --out build/study-paper --draws 20 \
	  --methods hts-sgd,lts-sgd,hnlts-sgd,pts-sgd,pts-ece-sgd
	$(BIN)/python benchmarks/study_docs.py build/study build/study-paper --out build/study-docs
	cp build/study-docs/results*.csv.gz docs/study

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage temperance-demo*.html
