# make demo: the default study, end to end.  make test: the whole suite.  Nothing but Python >= 3.11 is needed.

# Kept bytecode is what lets a stage of a tenth of a second take a tenth of a second.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
CONTROLLER := .venv/controller.txt
TOOLS := .venv/test.txt
CLUSTER := .venv/cluster.txt
SGLANG_CLIENTS := .venv-bench/bench-client.txt
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq

.PHONY: help demo test lint generated clean engine cluster soak replay
.PHONY: bench-detectors bench-client bench-decision bench-scale

help:
	@echo "make demo    find the best configuration of a small model on this machine (config/config.yaml)"
	@echo "make test    check style and types, then run every test"
	@echo "make cluster add what a run on a cluster needs (docs/clusters.md)"
	@echo "make lint    check style and types alone"
	@echo "make soak    kill runs at random points (SOAK_SEED=1); a rerun must end with the same files, nothing left"
	@echo "make bench-detectors   what the detectors of garbage find and miss in a labelled corpus"
	@echo "make bench-client   our load client against SGLang's two: what each can carry, what each gets wrong"
	@echo "make bench-decision    simulated campaigns through the real rules, beside what peers do"
	@echo "make bench-scale       what the workflow itself costs at 10 to 5,000 cells, and a stage over its server"
	@echo "make replay  what the rules say of the founding campaign, recorded as single launches"
	@echo "make generated   write the schemas and references that are made from the code"
	@echo "make clean   remove the environments and caches here; results and downloaded models stay"

demo: $(CONTROLLER)
	@echo "pivotbench: running the default study: snakemake --cores 1 all"
	@$(BIN)/snakemake --cores 1 all

test: lint engine cluster
	@echo "pivotbench: running the tests, first those that bear company, then those that keep time"
	@status=0; \
	$(BIN)/python -m pytest -m "not alone" -n logical --maxprocesses 4 --dist loadgroup --durations 15 || status=$$?; \
	$(BIN)/python -m pytest -m alone --durations 10 || status=$$?; \
	exit $$status

lint: $(TOOLS)
	@echo "pivotbench: checking style and types"
	@$(BIN)/ruff check .
	@$(BIN)/mypy

generated: $(CONTROLLER)
	@for module in study.schema study.reference decision.document changes.model measurements diagnosis.troubleshooting; do \
		PYTHONPATH=scripts $(BIN)/python -m pivotbench.$$module || exit; done

soak: $(TOOLS)
	@PYTHONPATH=scripts:tests $(BIN)/python -m faults.soak

bench-detectors: $(CONTROLLER)
	@PYTHONPATH=scripts $(BIN)/python -m benchmarks.detectors

bench-client: $(TOOLS) $(SGLANG_CLIENTS)
	@PYTHONPATH=scripts:tests $(BIN)/python -m benchmarks.client

bench-decision: $(CONTROLLER)
	@OMP_NUM_THREADS=1 PYTHONPATH=scripts:tests $(BIN)/python -m benchmarks.decision

bench-scale: $(CONTROLLER)
	@PYTHONPATH=scripts:tests $(BIN)/python -m benchmarks.scale

replay: $(CONTROLLER)
	@PYTHONPATH=scripts:tests $(BIN)/python -m benchmarks.decision.replay

# What the tests of the real engine need; both steps do nothing where it is there already.
engine: $(TOOLS)
	@$(BIN)/python scripts/fetch_engine.py --study config/config.yaml
	@$(BIN)/python scripts/fetch_model.py --study config/config.yaml

# Snakemake's executors for clusters.
cluster: $(CLUSTER)

# An environment is whole once the copy of its requirements lies in it, which is written last.
$(CONTROLLER): envs/controller.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: Python 3.11 or later is needed; set PYTHON=python3.x (Debian: apt install python3)" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "error: Python lacks its venv module (Debian: apt install python3-venv)" >&2; exit 2; }
	@echo "pivotbench: making .venv from envs/controller.txt (about 100 MB of packages, a minute or two)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@$(PIP) install --require-hashes -r envs/controller.txt
	@cp envs/controller.txt $@

$(TOOLS): envs/test.txt $(CONTROLLER)
	@echo "pivotbench: adding the test tools of envs/test.txt to .venv"
	@$(PIP) install --require-hashes -r envs/test.txt
	@cp envs/test.txt $@

$(CLUSTER): envs/cluster.txt $(CONTROLLER)
	@echo "pivotbench: adding the executors of envs/cluster.txt to .venv"
	@$(PIP) install --require-hashes -r envs/cluster.txt
	@cp envs/cluster.txt $@

$(SGLANG_CLIENTS): envs/bench-client.txt $(CONTROLLER)
	@echo "pivotbench: making .venv-bench from envs/bench-client.txt (SGLang's load clients, without its engine)"
	@rm -rf .venv-bench
	@$(BIN)/python -m venv .venv-bench
	@.venv-bench/bin/python -m pip --disable-pip-version-check --no-input -qq install --no-deps --require-hashes -r envs/bench-client.txt
	@cp envs/bench-client.txt $@

clean:
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
