# memsys: `make demo` and `make test` do all set-up themselves. `make help` lists the rest.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM ?= false
# Commands start sooner where Python keeps what it compiled.
unexport PYTHONDONTWRITEBYTECODE
# More than two cores need: tests wait for processes and servers a third of their time.
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help env models data prompts demo test test-runs test-serve test-architectures test-servers test-outside test-clusters test-sources parity parity-whole parity-mutations fault-campaign paid-once lint types contracts check tables figures report recorded audit docs bench slurm test-slurm serve-env lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.stamp: requirements.lock requirements-torch.txt pyproject.toml
	@test -x $(PY) || command -v $(PYTHON) >/dev/null || { echo "error: there is no $(PYTHON); memsys needs Python 3.11 or 3.12: make $(or $(MAKECMDGOALS),env) PYTHON=/path/to/python"; exit 2; }
	@test -x $(PY) || $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' 2>/dev/null || { found=$$($(PYTHON) -V 2>/dev/null); echo "error: $(PYTHON) $${found:+is }$${found:-does not start}; memsys needs Python 3.11 or 3.12: make $(or $(MAKECMDGOALS),env) PYTHON=/path/to/python"; exit 2; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "installing the environment into $(VENV) (a few minutes the first time)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --requirement requirements-torch.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

env: $(VENV)/.stamp  ## make the Python environment in .venv

models: env  ## fetch the models and corpora that demo and test need into models/ (checksums verified)
	@HF_HUB_OFFLINE=0 $(PY) -m eval models

data: env  ## download the data sets that can be had without registration into data/
	@$(PY) -m eval data all

prompts: env  ## fetch the authors' own prompts, for prompts=authors, into models/prompts (checksums verified)
	@$(PY) scripts/fetch_prompts.py

demo: models  ## the sample conversation through RAG, A-Mem and CLAG on an embedded model of 0.5 billion parameters
	@HF_HUB_OFFLINE=0 $(PY) -m eval models qwen25_coder_05b
	$(PY) -m eval.run +experiment=quickstart

test: models  ## the tests of everything that runs within one process
	$(PY) -m pytest -n $(WORKERS) --dist worksteal -m "not outside" tests/unit tests/property tests/contract tests/golden

test-runs: models  ## runs and commands as users start them: killed and resumed, in a browser, from a wheel, as the pages of docs say
	$(PY) -m pytest -n $(WORKERS) --dist worksteal tests/end_to_end tests/faults

fault-campaign: models  ## hundreds of kills, bad replies, damaged files and full disks over every preset (an hour; SECONDS=300 for less, ONLY=kills for one kind)
	$(PY) -m tests.support.faults --workers $(WORKERS) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(ONLY),--only "$(ONLY)")

paid-once: models  ## kill a run 50 times within 10,000 calls, and count at the server what it pays twice (half an hour)
	$(PY) -m tests.support.paid_once

lint: env  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env  ## mypy, strict
	$(BIN)/mypy

contracts: env  ## who may import whom
	$(BIN)/lint-imports

check: lint types contracts  ## lint, types and import contracts

tables: env  ## regenerate results/tables and the tables of docs/results.md from results/summaries, results/runs and results/printed
	$(PY) scripts/make_tables.py

figures: env  ## draw results/figures: the papers' and our own, and the tables of docs/scale.md
	$(PY) -m eval.plots
	$(PY) -m eval.results.figures.scale

report: env  ## one page of everything measured, results/report.html; it quotes the data sets and stays local
	$(PY) -m eval.report

recorded: env  ## fetch the published answers of the catalogue (checksums verified); MEMSYS_RECORDED=folder for files at hand
	$(PY) -m eval.recorded fetch

audit: models  ## published answers under every definition, against people and against what was printed: results/audit
	$(PY) -m eval.audit

DOCS := .venv-docs
$(DOCS)/.stamp: requirements-docs.lock
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement requirements-docs.lock
	@touch $@

docs: env $(DOCS)/.stamp  ## the documents as a site with search, build/site/index.html; fails where a link leads nowhere
	$(PY) scripts/make_docs_pages.py
	$(DOCS)/bin/zensical build --clean --strict
	@cp -R build/pages/. build/site

bench: models  ## speed benchmarks: ratios of measured to critical path, printed
	@for file in tests/benchmarks/bench_*.py; do echo "== $$file"; $(PY) $$file || exit 1; done

serve-env: env models  ## the environment vLLM runs in (.venv-serve): GPU build where there is one, else the CPU build
	$(PY) scripts/make_serve_env.py

test-serve: serve-env  ## really serve SmolLM2 with vLLM and run an experiment against it
	$(PY) -m pytest -m serve tests/serve -p no:xdist
	$(PY) -m eval.run backbone=smollm2_135m_vllm memory=rag_quickstart dataset=locomo_sample dataset.limit_questions=8 use_cache=false run_dir=$$(mktemp -d)

test-architectures: serve-env  ## each paper's experiment from command to table on its backbone's architecture with random weights, in vLLM (ONLY=clag: one)
	@HF_HUB_OFFLINE=0 $(PY) -m eval models qwen25_coder_05b
	$(PY) -m pytest -m serve tests/architectures -p no:xdist --durations=0 $(if $(ONLY),-k "$(ONLY)")

SERVERS := .venv-servers
$(SERVERS)/.stamp: tests/servers/requirements.lock tests/servers/llama_cpp_python.lock
	@test -x $(SERVERS)/bin/python || $(PYTHON) -m venv $(SERVERS)
	@$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tests/servers/requirements.lock
	@echo "building llama-cpp-python (ten minutes to half an hour on two cores)"
	@CMAKE_ARGS="-DLLAVA_BUILD=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O1" $(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tests/servers/llama_cpp_python.lock || echo "llama-cpp-python could not be built; the test of its server is skipped"
	@touch $@

test-servers: serve-env $(SERVERS)/.stamp  ## memsys probe and a small run at llama.cpp, llama-cpp-python, vLLM, transformers serve and the LiteLLM proxy; writes build/servers.md
	$(PY) -m pytest -m servers tests/servers -p no:xdist
	@cat build/servers.md

test-sources: env  ## cut the authors' prompts from what MEMSYS_SOURCES holds, compare with their own rendering, and name what is missing
	$(PY) -m pytest -m sources tests/sources -p no:xdist -rs

AUTHORS_PACKS := clag amem sage mem0 xmemory nemori gam lightmem memoryos memgpt readagent memorybank reader

parity: env authors  ## the presets that follow a release against the authors' code, call by call; says how many could be compared (REQUIRE_PARITY=1: all must)
	$(PY) -m eval.parity.stages $(if $(filter-out 0,$(REQUIRE_PARITY)),--require)

parity-whole: env authors  ## the same over a whole conversation of LoCoMo for each system, also with spoiled replies (half an hour; ONLY="gam mem0": these stages)
	$(PY) -m eval.parity.stages --whole $(if $(ONLY),--only $(ONLY)) $(if $(filter-out 0,$(REQUIRE_PARITY)),--require)

parity-mutations: env authors  ## whether parity can fail: single changes of our code, each of which a stage must see (ONLY="gam mem0": of these systems)
	$(PY) -m eval.parity.mutations $(if $(ONLY),--only $(ONLY))

.PHONY: authors
authors: env
	-@$(PY) scripts/make_package_env.py authors_clag
	-@$(PY) scripts/fetch_prompts.py $(AUTHORS_PACKS)

slurm: ## install the Debian packages of a private Slurm (needs root, or sudo)
	@command -v munged slurmctld slurmd sbatch >/dev/null || PATH=$$PATH:/usr/sbin command -v slurmctld >/dev/null || \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge; }

OUTSIDE := .venv-packages/outside
PYTHON312 ?= python3.12
test-outside: models  ## memories and readers that are not ours, really run: MCP servers (needs npm and a python3.12), LangChain, LlamaIndex, Mem0; MTEB, Every Eval Ever
	@HF_HUB_OFFLINE=0 $(PY) -m eval models qwen25_coder_05b
	@$(PY) scripts/make_outside_env.py $(OUTSIDE) --python312 $(PYTHON312)
	$(OUTSIDE)/bin/python -m pytest -m outside tests/outside tests/contract/test_outside_memories.py -p no:xdist

test-slurm: models slurm  ## sweeps on a real Slurm of one node, started and stopped by the tests
	$(PY) -m pytest -m slurm tests/slurm -p no:xdist --durations=0

CLUSTERS := .venv-packages/clusters
$(CLUSTERS)/.stamp: tests/clusters/requirements.txt tests/clusters/requirements-sky.txt $(VENV)/.stamp
	@rm -rf $(CLUSTERS) $(CLUSTERS)-sky && $(PY) -m venv --without-pip $(CLUSTERS) && $(PYTHON) -m venv $(CLUSTERS)-sky
	@$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > $$(echo $(CLUSTERS)/lib/python*/site-packages)/environment.pth
	@$(CLUSTERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/clusters/requirements.txt
	@$(CLUSTERS)-sky/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/clusters/requirements-sky.txt
	@touch $@

test-clusters: models $(CLUSTERS)/.stamp  ## a sweep on a Ray of this machine; the examples for SkyPilot and Kubernetes by their own rules
	$(CLUSTERS)/bin/python -m pytest -m clusters tests/clusters -p no:xdist

HASHED := uv pip compile --quiet --no-deps --generate-hashes --no-header --no-annotate --universal --python-version 3.11
lock: env  ## write requirements.lock and requirements-torch.txt from what is installed, and the sha256 of every file here and in the packages' locks (needs uv)
	@command -v uv >/dev/null || { echo "error: there is no uv, which asks the index for checksums: pip install uv"; exit 2; }
	@$(PY) -m pip freeze --all --exclude-editable --exclude memsys --exclude pip | sed 's/+cpu$$//' > .lock
	@grep -v '^torch==' .lock > .lock.in
	@$(HASHED) .lock.in -o .lock.hashed
	@{ grep '^#' requirements-torch.txt; grep '^torch==' .lock; } > .lock.torch && mv .lock.torch requirements-torch.txt
	@{ grep '^#' requirements.lock; grep -v '^#' .lock.hashed; } > .lock && mv .lock requirements.lock && rm .lock.in .lock.hashed
	@uv pip compile --quiet --group docs --generate-hashes --no-header --no-annotate --python-version 3.11 --python-platform linux -o .lock.hashed
	@{ grep '^#' requirements-docs.lock; cat .lock.hashed; } > .lock && mv .lock requirements-docs.lock && rm .lock.hashed
	@for file in baselines/packages/*/requirements.lock; do \
	  $(HASHED) $$file -o .lock.hashed && { grep '^#' $$file; grep -v '^#' .lock.hashed; } > .lock && mv .lock $$file && rm .lock.hashed || exit; done

clean:  ## remove environments and caches; results and models stay
	rm -rf $(VENV) .venv-serve .venv-servers .venv-docs .mypy_cache .ruff_cache .pytest_cache build *.egg-info
