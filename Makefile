# make setup  Podium, its lab and research into .venv: calls, serves, measures and trains teams
# make demo   set up, train a policy over small language models for a few minutes, evaluate, report, answer one question
# make orchestra   train small language models that know parts of a made-up world, as workers: hours on two cores (AT_ONCE=11 on a GPU)
# make test   set up and run all tests          make check   style, types, layers
# make smoke-train   the whole path of training a language model, on random models of two layers
# make nightly  all generators of reasoning-gym: sampled, graded, their splits; calls through litellm; real clients; real models; 2,000 odd requests to the server; an hour of fuzzing; the tests marked nightly
# make docs   the site of the documents, into site/
# make constraints  pin the dependencies for a release; make audit  look the pinned ones up in the database of known faults
# make bench  Podium's own time beside other tools, in some twenty minutes: docs/results/bench.md
# make bench-gpu  what this machine's GPU does for training
# make nightly-integrations  Podium in verifiers and in tinker-cookbook, with the real packages
# Everything lives in .venv, and for integrations and releases in .venv-integrations-*. Only make bench installs its peers into the temporary folder.

PYTHON ?= python3
TORCH  ?= 2.13.0
# Of each set, for each row of the table of real models.
QUESTIONS ?= 2
# Programs beside the packages, which no test may import: the types say whether they still fit.
SCRIPTS := benchmarks/*.py runs/*.py lab/runs/*.py research/runs/*.py
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Threads that spin while waiting, and memory given back at each use, make training several times slower.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false
# What is not kept compiled is compiled anew by each process, and the tests have hundreds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev install-gpu check test test-cli test-server test-routes test-training test-library test-evals test-rest test-lab test-research test-all docs smoke-train constraints audit nightly nightly-integrations bench bench-gpu demo orchestra clean

help:
	@sed -n '1,11s/^# //p' Makefile

# The CPU build alone: on Linux a bare `torch` would bring gigabytes of CUDA.
$(VENV)/torch.done:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Podium needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	@# The pip that Python 3.11 brings takes four times as long.
	@$(PIP) install --upgrade pip --retries 0 --timeout 5 2>$(VENV)/pip.log || true
	@echo "Installing torch $(TORCH), CPU build ..."
	@if [ "$$(uname -s)" = Linux ]; then \
	  $(PIP) install "torch==$(TORCH)+cpu" --extra-index-url https://download.pytorch.org/whl/cpu \
	    --retries 0 --timeout 5 2>$(VENV)/torch.log \
	  || { tail -n 3 $(VENV)/torch.log; \
	       echo "No CPU build of torch $(TORCH) was found. Give an index that has one: PIP_EXTRA_INDEX_URL=... make,"; \
	       echo "or, with a GPU: make install-gpu"; exit 1; }; \
	else $(PIP) install "torch==$(TORCH)"; fi
	@touch $@

$(VENV)/train.done: $(VENV)/torch.done pyproject.toml lab/pyproject.toml research/pyproject.toml testing/pyproject.toml
	@echo "Installing Podium ..."
	@$(PIP) install -e '.[serve,train]' -e 'lab[train]' -e research -e testing 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $@

$(VENV)/dev.done: $(VENV)/torch.done pyproject.toml lab/pyproject.toml research/pyproject.toml testing/pyproject.toml
	@echo "Installing Podium and what the tests need ..."
	@$(PIP) install -e '.[train,dev]' -e 'lab[train]' -e 'research[reasoning-gym,trinity]' -e testing 2>$(VENV)/pip.log || { cat $(VENV)/pip.log; exit 1; }
	@touch $(VENV)/train.done $@

# A real language model of 98 MB, which tests put behind a real server.
$(VENV)/models/smol.gguf: runs/published_models.py | $(VENV)/torch.done
	@$(BIN)/python runs/published_models.py fetch $(VENV)/models smol
	@touch $@

setup: $(VENV)/train.done
	@echo "Podium is in $(VENV): source $(BIN)/activate, then podium init"
setup-dev: $(VENV)/dev.done $(VENV)/models/smol.gguf

install-gpu:
	$(PYTHON) -m venv $(VENV)
	@# pip would keep a CPU build that is already there.
	@rm -f $(VENV)/*.done
	@$(PIP) freeze | grep -q '^torch==.*+cpu' && $(PIP) uninstall --yes torch || true
	$(PIP) install torch
	$(PIP) install -e '.[serve,train]' -e 'lab[train]' -e research -e testing
	@touch $(VENV)/torch.done $(VENV)/train.done

check: setup-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=benchmarks:runs $(BIN)/mypy --allow-untyped-calls --no-warn-return-any $(SCRIPTS)
	$(BIN)/lint-imports --no-logo

# Seven processes on two cores: a test waits for a third of its time, for servers, other processes and time limits. What
# loads torch is in one of them.
SERVER   := $(wildcard tests/server/test_*.py)
TRAINING := tests/conductor tests/train tests/security/test_checkpoint_code.py tests/test_configs.py
LIBRARY  := tests/docs tests/real_models tests/library tests/calls tests/team tests/inspect_provider
EVALS    := tests/evals tests/workers tests/security tests/recordings tests/rollout tests/scoring tests/planners
RUN      := $(BIN)/pytest --durations 12 --durations-min 4

test: setup-dev
	$(MAKE) -j 7 test-cli test-server test-routes test-training test-library test-evals test-rest

test-cli: setup-dev
	$(RUN) tests/cli

test-server: setup-dev
	$(RUN) $(SERVER) tests/faults testing/tests

test-routes: setup-dev
	$(RUN) $(addprefix --ignore ,$(SERVER)) tests/server

test-training: setup-dev
	$(RUN) $(TRAINING)

test-library: setup-dev
	$(RUN) $(LIBRARY)

test-evals: setup-dev
	$(RUN) $(addprefix --ignore ,$(TRAINING)) $(EVALS)

test-rest: setup-dev
	$(RUN) $(addprefix --ignore ,tests/cli tests/server tests/faults $(TRAINING) $(LIBRARY) $(EVALS)) tests

# The small workers, the warm start and small policies in NumPy.
test-lab: setup-dev
	$(BIN)/pytest -n 3 --dist worksteal lab/tests

# The planners of other papers and their searches.
test-research: setup-dev
	$(BIN)/pytest -n 3 --dist worksteal research/tests

test-all: test test-lab test-research

nightly: setup-dev
	PODIUM_NIGHTLY=1 $(BIN)/pytest -n 0 --timeout 1800 --durations 10 research/tests/reasoning_gym/test_reasoning_gym.py
	PODIUM_NIGHTLY=1 $(BIN)/pytest -n 0 --timeout 1800 tests/server/test_openapi.py
	PODIUM_NIGHTLY=1 $(BIN)/pytest -n 2 --timeout 1800 -m 'hypothesis or nightly' --ignore tests/security/test_fuzzing.py tests testing/tests
	PODIUM_NIGHTLY=1 $(BIN)/pytest -n 0 --timeout 7200 --durations 10 tests/security/test_fuzzing.py
	runs/litellm.sh
	runs/clients.sh
	runs/real-models.sh questions=$(QUESTIONS)
	$(MAKE) audit

# A link to a page or a heading that is not there ends it.
docs: setup-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Each figure beside a peer's from the same run. Peers get environments of their own in the folder for temporary files.
bench: setup-dev
	$(BIN)/python benchmarks/all.py

# Tokens a second, memory, share of the peak; says so and measures nothing where there is no GPU.
bench-gpu: setup
	$(BIN)/python benchmarks/gpu.py

# In environments of their own, because of what these packages pin.
OWN := .venv-integrations

$(OWN)-release/done:
	$(PYTHON) -m venv $(OWN)-release
	$(OWN)-release/bin/python -m pip --quiet install uv pip-audit
	@touch $@

# Torch and the CUDA packages under it are left out: which build fits is the machine's matter.
constraints: $(OWN)-release/done
	echo torch==$(TORCH) | $(OWN)-release/bin/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	  --constraint - --no-emit-index-url --no-annotate --custom-compile-command 'make constraints' --upgrade \
	  --extra serve --extra train --extra recordings --extra tasks --extra postgres --extra otel \
	  | grep -Ev '^(torch|triton|cuda-|nvidia-)' >constraints.part
	mv constraints.part constraints.txt

# Ends with status 0 where the service that knows of faults cannot be reached.
audit: $(OWN)-release/done
	$(PYTHON) runs/audit.py $(OWN)-release/bin/pip-audit
nightly-integrations:
	$(PYTHON) -m venv $(OWN)-verifiers
	$(OWN)-verifiers/bin/python -m pip --quiet install -e . -e testing -e 'integrations/verifiers[test]'
	cd integrations/verifiers && ../../$(OWN)-verifiers/bin/pytest
	$(MAKE) VENV=$(OWN)-tinker $(OWN)-tinker/torch.done
	$(OWN)-tinker/bin/python -m pip --quiet install -e . -r integrations/tinker/requirements.txt
	$(OWN)-tinker/bin/python -m pip --quiet install --no-deps tinker-cookbook==0.6.1 -e integrations/tinker
	cd integrations/tinker && ../../$(OWN)-tinker/bin/pytest

smoke-train: setup-dev
	runs/smoke-train.sh

demo: setup
	lab/runs/demo.sh

orchestra: setup
	lab/runs/orchestra.sh

clean:
	rm -rf $(VENV) $(OWN)-* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
