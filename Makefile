# Two commands set everything up: `make try` runs the main job, `make test` passes the tests.
PYTHON ?= python3
VENV ?= .venv
# The torch that is tested here; any from 2.11 on will do: make TORCH=torch try
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: try test test-full test-gallery test-gpu check docs bench bench-gpu clean

try: $(READY)
	$(BIN)/assay bench softmax --quick --case "rows=64 n=1025"

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal

test-full: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m full

test-gallery: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m gallery

test-gpu: $(READY)
	$(BIN)/python -m pytest -m "gpu and not alone" -n auto --maxprocesses 8 --dist worksteal
	$(BIN)/python -m pytest -m "gpu and alone"

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m assay.rows > docs/schema/row-1.json
	$(BIN)/python -m benchmarks.pictures

bench: $(READY)
	$(BIN)/python benchmarks/first_operators.py

bench-gpu: $(READY)
	$(BIN)/python -m benchmarks.all

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[all,dev]"
	touch $@

clean:
	rm -rf $(VENV) .assay
