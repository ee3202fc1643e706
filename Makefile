# One word per job. Every target sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test check lint types coverage wheel bench prior bayes-evaluation bayes-ablation clean

help:
	@echo "demo   set up, calibrate a simulated classifier, print the comparison"
	@echo "test   set up, run the tests"
	@echo "check  lint, types, tests with coverage, the built wheel on its own"
	@echo "bench  speed as ratios to np.exp, in one run"
	@echo "prior, bayes-evaluation, bayes-ablation: learn the population prior from the files in TASKS,"
	@echo "       judge it (an hour), and judge it without each of its parts"
	@echo "clean  remove everything that the targets made"

# The stamp is newer than the project file once the environment matches it.
$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

demo: $(VENV)/ready
	$(BIN)/python examples/quickstart.py

test: $(VENV)/ready
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/mypy

coverage: $(VENV)/ready
	$(BIN)/python -m pytest -q -n auto --cov --cov-report=term --cov-fail-under=95

# What users install: the wheel, without any extra.
wheel: $(VENV)/ready
	rm -rf dist build/wheel-env
	$(BIN)/python -m build --quiet --wheel
	$(PYTHON) -m venv build/wheel-env
	build/wheel-env/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl pytest
	cd build && wheel-env/bin/python -I -m pytest -q -p no:cacheprovider ../tests/test_bare_install.py

check: lint types coverage wheel

bench: $(VENV)/ready
	$(BIN)/python benchmarks/speed.py

# Folder of task files, see benchmarks/learn_prior.py.
TASKS ?= ../shared/data/tasks

prior: $(VENV)/ready
	$(BIN)/python benchmarks/learn_prior.py $(TASKS) --out src/temperance/population.json --overwrite

bayes-evaluation: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[rivals]"
	$(BIN)/python benchmarks/bayes_evaluation.py $(TASKS) --out docs/bayesian
	$(BIN)/python benchmarks/bayes_report.py docs/bayesian

bayes-ablation: $(VENV)/ready
	$(BIN)/python benchmarks/bayes_ablation.py $(TASKS) --out docs/bayesian/ablation.md

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
