# Every target builds what it needs from nothing but Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test coverage kernels slow fuzz lint docs dist bench clean

demo: $(VENV)/plot
	$(BIN)/python examples/plot_demo.py

# one thread each for the products of as many tests as there are cores
test: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto

# the same under each kernel of OpenBLAS that the processor can run, with one and two threads,
# backwards, in one process and with Ctrl-C ignored; WHICH=other makes one run under another kernel
WHICH ?=
kernels: $(VENV)/test
	$(BIN)/python tests/tools/kernels.py $(WHICH)

slow: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto -m slow

# the first number is how many random cases, the second the first seed
CASES ?= 3000 0
fuzz: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python tests/tools/fuzz.py $(CASES)

# and what is written: pages, tables, links, examples of docstrings, layers, the release
lint: $(VENV)/lint $(VENV)/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto -m 'not slow' --doctest-modules \
	    --ignore=skbayes_sg/data/dask.py skbayes_sg tests/repository

# the site in docs/_build/html; warnings are errors, and links are followed
docs: $(VENV)/docs
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going --nitpicky -q -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# wheel and sdist in dist
dist: $(VENV)/dist
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

# every script as a module, each for at most BUDGET seconds (0: no limit); the loop goes on after a
# failure and fails in the end. A script that is stopped is no failure, and keeps the tables it had not
# yet made anew, which name their commit. WHICH names some, and ARGS has their arguments:
# make bench WHICH=benchmarks.papers.ahn_kdd ARGS=--full BUDGET=0
BUDGET ?= 600
ARGS ?=
bench: WHICH := $(or $(WHICH),$(subst /,.,$(basename $(shell grep -rl --include=*.py '^if __name__' benchmarks))))
bench: $(VENV)/bench
	@failed=; for script in $(WHICH); do \
	    echo; echo "python -m $$script $(ARGS)"; \
	    timeout $(BUDGET) $(BIN)/python -m $$script $(ARGS); code=$$?; \
	    case $$code in 0) ;; 124) echo "stopped after $(BUDGET) s";; *) failed="$$failed $$script";; esac; \
	done; \
	test -z "$$failed" || { echo; echo "failed:$$failed"; exit 1; }

# tests with the lines and branches that they reach
coverage: $(VENV)/test
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -q -n auto
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

# one environment; a stamp for each extra, or group of dependencies, that is in it
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
$(VENV)/test $(VENV)/plot: $(VENV)/%: pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[$*]'
	@touch $@

$(VENV)/lint $(VENV)/docs $(VENV)/dist $(VENV)/bench: $(VENV)/%: pyproject.toml | $(BIN)/python
	$(PIP) --upgrade 'pip>=25.1' # the first that knows groups
	$(PIP) --editable . --group $*
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache
