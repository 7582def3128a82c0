# Every target builds what it needs from nothing but Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test slow lint bench clean

demo: $(VENV)/plot
	$(BIN)/python examples/plot_demo.py

test: $(VENV)/test
	$(BIN)/python -m pytest -q -n auto

slow: $(VENV)/test
	$(BIN)/python -m pytest -q -m slow

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench
	$(BIN)/python benchmarks/step_cost.py
	$(BIN)/python benchmarks/few_rows.py
	$(BIN)/python benchmarks/fit_against_lbfgs.py
	$(BIN)/python benchmarks/peers.py --data lr10k --seconds 10 --repeats 1
	$(BIN)/python benchmarks/cost_scaling.py
	$(BIN)/python benchmarks/skewed.py
	$(BIN)/python benchmarks/digits.py
	$(BIN)/python benchmarks/mlp_structures.py
	$(BIN)/python benchmarks/mlp_cost.py
	$(BIN)/python benchmarks/ahn_mlp.py
	$(BIN)/python benchmarks/ahn_kdd.py
	$(BIN)/python benchmarks/ahn_drbm.py
	$(BIN)/python benchmarks/hhp_standin.py
	$(BIN)/python benchmarks/ahn_logistic.py
	$(BIN)/python benchmarks/samplers.py
	$(BIN)/python benchmarks/linear_exact.py
	$(BIN)/python benchmarks/mandt_table1.py
	$(BIN)/python benchmarks/mandt_fig1_2.py
	$(BIN)/python benchmarks/mandt_iasg.py
	$(BIN)/python benchmarks/handout_regression.py
	$(BIN)/python benchmarks/mandt_fig6.py

# one environment; a stamp for each extra that is in it
$(VENV)/%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
