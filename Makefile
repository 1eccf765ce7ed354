# Every target works on a fresh clone with Python 3.11 or newer and a network to PyPI, and installs nothing twice.
PYTHON ?= python3
DEMO_SECONDS ?= 10
WORKERS ?= auto
SOAK_MINUTES ?= 30
SOAK_OPTIONS ?=
# small matrices: a second BLAS thread only waits, and on a busy machine for long
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# tests and pages start hundreds of processes, of which each would compile all that it imports: a third of its start
unexport PYTHONDONTWRITEBYTECODE
PYTEST_OPTIONS ?=
# neighbours share what they compile: each process works through its own half, then helps the others
DISTRIBUTED := -n $(WORKERS) --dist worksteal
# tests of what numpy, scipy, numba and Python do for the library: of kernels, compiled code and a robot's data
ANYWHERE := tests/kernels tests/lie tests/mechanism tests/compiler/test_code.py tests/compiler/test_tracing.py tests/control/test_loop.py
BENCH_OPTIONS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
INSTALL := .ci/install $(BIN)

.PHONY: help demo test test-all soak bench lint lint-style lint-layers lint-types lint-dead-code lint-spelling lint-prose docs docs-links robots mjcfs cross numpy1 peers minimum test-pythons test-some cuda-tools tools clean

help:
	@echo "make demo      a Panda arm tracks under an adaptive controller that does not know its load (DEMO_SECONDS=$(DEMO_SECONDS))"
	@echo "make test      the quick tests on all cores, some minutes on two (WORKERS=0: in one process, for debuggers)"
	@echo "make test-all  all tests, three quarters of an hour on two cores (make robots first: real URDFs as well)"
	@echo "make soak      random URDF files, robots, closed loops and sweeps that are killed, for SOAK_MINUTES=$(SOAK_MINUTES)"
	@echo "make bench     start-up, speed against Pinocchio, dynibo, MuJoCo, scipy and exudyn (a quarter of an hour; BENCH_OPTIONS=--quick)"
	@echo "make lint      formatting, ruff, layers, pyright, dead code, spelling, words that no sentence may have"
	@echo "make docs      the documentation site, every example of it run: out/docs/index.html"
	@echo "make docs-links  do the site's links to elsewhere lead somewhere? needs a network, and is no part of continuous integration"
	@echo "make robots    install example-robot-data, which 'make test' then uses (131 MB)"
	@echo "make mjcfs     gymnasium, gymnasium-robotics and dm_control in a folder of their own, whose MJCF files 'make test' then reads (170 MB)"
	@echo "make cross     install a cross-compiler, with which 'make test' then builds exported C for other processors (100 MB)"
	@echo "make numpy1    numpy 1.26 in a folder of its own, with which 'make test' then runs calls as well (18 MB)"
	@echo "make peers     frax, adam and MJX with JAX 0.6.0 in a folder of their own, which 'make bench' then compares (400 MB)"
	@echo "make minimum   the lowest versions that pyproject.toml allows, in a folder of their own, and some tests with them (400 MB)"
	@echo "make test-pythons  some tests on each Python of 3.11 to 3.14 that is installed, in environments of their own"
	@echo "make cuda-tools install NVIDIA's assembler, with which 'make test' then looks at code for GPUs; needs none (40 MB, 100 unpacked)"
	@echo "make clean     remove what was made, the environment too"

demo: $(STAMPS)/view
	$(BIN)/geomctrl track panda --controller slotine-li --payload 2.0 --seconds $(DEMO_SECONDS) --out out/demo

test: $(STAMPS)/test
	$(BIN)/python -m pytest $(DISTRIBUTED) -m "not slow" $(PYTEST_OPTIONS)

test-all: $(STAMPS)/test
	$(BIN)/python -m pytest $(DISTRIBUTED) $(PYTEST_OPTIONS)

soak: $(STAMPS)/test
	$(BIN)/python tests/soak/soak.py --minutes $(SOAK_MINUTES) $(SOAK_OPTIONS)

bench: $(STAMPS)/bench
	$(BIN)/python experiments/benchmarks/benchmark_start.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_dynamics.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_compiler.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_derivatives.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_representations.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_integrators.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_exudyn.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_loops.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_peers.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_gymnasium.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_cuda.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/benchmark_gpu_code.py $(BENCH_OPTIONS)
	$(BIN)/python experiments/benchmarks/collect.py
	$(BIN)/python experiments/studies/controllers.py

# pyright first, because it takes as long as the others together: `make -j2 lint` runs them beside it
lint: lint-types lint-style lint-layers lint-dead-code lint-spelling lint-prose

lint-types: $(STAMPS)/dev
	$(BIN)/python .ci/tree.py out/tree-types $(abspath $(BIN))/pyright --pythonpath $(abspath $(BIN))/python

lint-style: $(STAMPS)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

lint-layers: $(STAMPS)/dev
	$(BIN)/python .ci/tree.py out/tree-layers $(abspath $(BIN))/lint-imports

lint-dead-code: $(STAMPS)/dev
	$(BIN)/vulture

lint-spelling: $(STAMPS)/dev
	$(BIN)/codespell

lint-prose: $(STAMPS)/dev
	$(BIN)/python .ci/prose.py

docs: $(STAMPS)/docs
	$(BIN)/python .ci/architecture.py
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs out/docs
	$(BIN)/python docs/_build_tools/links.py out/docs
	$(BIN)/python .ci/prose.py --readability
	@echo "open out/docs/index.html"

docs-links: $(STAMPS)/docs
	$(BIN)/python -m sphinx -b linkcheck -q -d out/docs/.doctrees docs out/links

robots: $(STAMPS)/robots

mjcfs: $(STAMPS)/mjcfs

cross: $(STAMPS)/cross

numpy1: $(STAMPS)/numpy1

peers: $(STAMPS)/peers

minimum: $(STAMPS)/test $(STAMPS)/minimum
	PYTHONPATH=$(VENV)/minimum $(BIN)/python -m pytest $(DISTRIBUTED) -m "not slow" $(ANYWHERE) $(PYTEST_OPTIONS)

test-pythons:
	@for python in 3.11 3.12 3.13 3.14; do \
	  if python$$python -c 0 2>/dev/null; then \
	    echo "Python $$python"; \
	    $(MAKE) --no-print-directory PYTHON=python$$python VENV=.venv-$$python test-some || exit 1; \
	  else \
	    echo "Python $$python is not on the PATH (pyenv: PYENV_VERSION=3.12.1:3.13.0 make test-pythons)"; \
	  fi; \
	done

test-some: $(STAMPS)/test
	$(BIN)/python -m pytest $(DISTRIBUTED) -m "not slow" $(ANYWHERE) $(PYTEST_OPTIONS)

cuda-tools: $(STAMPS)/cuda-tools

tools: $(STAMPS)/tools

clean:
	rm -rf $(VENV) .venv-* build dist out *.egg-info .pytest_cache .hypothesis .ruff_cache .import_linter_cache
	find geomctrl models controllers tests experiments -name __pycache__ -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "geomctrl needs Python 3.11 or newer: make PYTHON=python3.11 ..." >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/uv: $(STAMPS)/venv
	@$(INSTALL) uv || echo "without uv, pip installs, which takes longer"
	@touch $@

$(STAMPS)/core: $(STAMPS)/uv pyproject.toml
	@echo "installing geomctrl"
	@$(INSTALL) --editable .
	@touch $@

# the extras dev and docs contain test, which contains view
WITHIN_dev := test view
WITHIN_docs := test view
WITHIN_test := view

$(STAMPS)/test $(STAMPS)/robots $(STAMPS)/cross $(STAMPS)/cuda-tools $(STAMPS)/bench $(STAMPS)/docs $(STAMPS)/view $(STAMPS)/dev: $(STAMPS)/%: $(STAMPS)/uv pyproject.toml
	@echo "installing geomctrl[$*]"
	@$(INSTALL) --editable '.[$*]'
	@touch $@ $(addprefix $(STAMPS)/,core $(WITHIN_$*))

# what continuous integration needs in the environment, resolved and installed at once
$(STAMPS)/tools: $(STAMPS)/uv pyproject.toml
	@echo "installing geomctrl[dev,robots,cross,cuda-tools]"
	@$(INSTALL) --editable '.[dev,robots,cross,cuda-tools]'
	@touch $@ $(addprefix $(STAMPS)/,core dev robots cross cuda-tools $(WITHIN_dev))

$(STAMPS)/numpy1: $(STAMPS)/uv
	@echo "installing numpy 1.26 beside"
	@$(INSTALL) --no-deps --upgrade --target $(VENV)/numpy1 'numpy==1.26.4'
	@touch $@

# adam fails with JAX 0.10; numpy, mujoco and lxml are those of the environment
$(STAMPS)/peers: $(STAMPS)/bench
	@echo "installing frax, adam and MJX beside"
	@$(INSTALL) 'casadi>=3.6.4' pyyaml
	@$(INSTALL) --no-deps --upgrade --target $(VENV)/peers 'jax==0.6.0' 'jaxlib==0.6.0' 'frax==0.1.0' 'adam-robotics==0.5.0' 'mujoco-mjx==3.17.0' ml-dtypes opt-einsum networkx prettytable wcwidth urdfdom-py array-api-compat absl-py etils fsspec packaging trimesh typing-extensions zipp
	@touch $@

$(STAMPS)/minimum: $(STAMPS)/uv pyproject.toml .ci/minimum.py
	@echo "installing the lowest versions beside"
	@rm -rf $(VENV)/minimum
	@$(BIN)/python .ci/minimum.py > $(VENV)/minimum.txt
	@$(INSTALL) --upgrade --target $(VENV)/minimum --requirement $(VENV)/minimum.txt 2>$(VENV)/minimum.log || { cat $(VENV)/minimum.log >&2; exit 1; }
	@touch $@

# their files alone: nothing of them is imported, and none of what they need is installed
$(STAMPS)/mjcfs: $(STAMPS)/uv
	@echo "installing files of gymnasium, gymnasium-robotics and dm_control beside"
	@$(INSTALL) --no-deps --upgrade --target $(VENV)/mjcfs 'gymnasium>=1.2' 'gymnasium-robotics>=1.4' 'dm-control>=1.0.30'
	@touch $@
