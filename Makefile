# One command each: see CONTRIBUTING.md. Needs Python 3.11 or newer, pip, make and git; nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PAGES := docs/reference/CODEX_SUBAGENTS_ORCHESTRATION.md
SOURCES := $(shell find src -name '*.py') $(PAGES) man/laneway.1 pyproject.toml README.md LICENSE
# The system's pip installs into the environment: Debian splits off what would put a pip inside it.
PIP    := $(PYTHON) -m pip --python $(BIN)/python
WORKERS ?= 4
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Where it is set, every worker of every run compiles all tests anew: 11 s of processor time each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test lint fmt bench chaos flakes fuzz test-peers test-ray measure-ray golden golden-mcp protocol man modules recording pictures lock clean

help:
	@echo "make demo        a guided demo with the real Codex, offline"
	@echo "make test        all that must hold: format, lint, types, rings, tests"
	@echo "make setup       .venv with the locked tools and the built wheel"
	@echo "make fmt         format and fix"
	@echo "make lint        format, lint, types, rings"
	@echo "make bench       one table of ratios against the raw Codex"
	@echo "make chaos       the full counts of the rough tests"
	@echo "make flakes      the tests ten times over, under load: which fail sometimes?"
	@echo "make fuzz        coverage-guided fuzzing of what reads foreign bytes"
	@echo "make test-peers  tests against other versions of Codex and other programs"
	@echo "make test-ray    jobs on a Ray cluster of two nodes, on this machine"
	@echo "make measure-ray what a Ray cluster costs here: start, calls, memory"
	@echo "make golden      record the golden traces anew from the real Codex"
	@echo "make golden-mcp  record the removed mcp-server anew (needs what test-peers fetches)"
	@echo "make protocol    generate the protocol tables anew from the real Codex"
	@echo "make man         write the man page anew from the command line"
	@echo "make modules     write the index of modules anew from their docstrings"
	@echo "make recording   record the pictures of the README anew, with the real Claude Code and Codex"
	@echo "make pictures    make the pictures of docs/page.md, telegram.md and discord.md anew, with Chromium"
	@echo "make lock        resolve the dependencies anew"

setup: $(VENV)/.installed

# The locked tools, once; then the wheel, whenever a source file changed.
$(VENV)/.tools: requirements/dev.txt
	$(PYTHON) -m venv --clear --without-pip $(VENV)
	$(PIP) install --quiet --require-hashes --no-deps -r requirements/dev.txt
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	@rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	$(PIP) install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@

demo: setup
	$(BIN)/laneway tour --rehearse

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(VENV)/.tools
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: lint
	$(BIN)/pytest -n $(WORKERS)

chaos: setup
	LANEWAY_CHAOS=1 $(BIN)/pytest -n $(WORKERS) -m chaos --timeout 1800
	$(MAKE) fuzz

# make flakes ROUNDS=2 TESTS=tests/core: fewer rounds, and only these.
ROUNDS ?= 10
flakes: setup
	$(BIN)/python scripts/flakes.py --rounds $(ROUNDS) --workers $$((2 * $(WORKERS))) $(TESTS)

# SECONDS_EACH=300 make fuzz: longer than the twenty seconds that each target has in make chaos.
SECONDS_EACH ?= 20
fuzz: setup
	$(PYTHON) scripts/fuzz.py --fetch
	$(BIN)/python scripts/fuzz.py --seconds $(SECONDS_EACH)

test-peers: setup
	$(PYTHON) scripts/fetch_peers.py .peers
	LANEWAY_PEERS=$(CURDIR)/.peers $(BIN)/pytest -m peers -n 2 --timeout 600

# Ray has an environment of its own: nothing else needs it.
RAY_VENV := .stamps/ray-venv
RAY_PIP  := $(PYTHON) -m pip --python $(RAY_VENV)/bin/python

$(RAY_VENV)/.tools: requirements/dev.txt requirements/ray.txt
	$(PYTHON) -m venv --clear --without-pip $(RAY_VENV)
	$(RAY_PIP) install --quiet --require-hashes --no-deps -r requirements/dev.txt
	$(RAY_PIP) install --quiet --require-hashes --no-deps -r requirements/ray.txt
	@touch $@

$(RAY_VENV)/.installed: $(RAY_VENV)/.tools $(VENV)/.installed
	$(RAY_PIP) install --quiet --no-deps --force-reinstall dist/*.whl
	@touch $@

test-ray: $(RAY_VENV)/.installed
	$(RAY_VENV)/bin/pytest -m ray -n 0

measure-ray: $(RAY_VENV)/.installed
	PYTHONPATH=$(CURDIR) $(RAY_VENV)/bin/python scripts/measure_ray.py

# make bench ONLY="jobs-queue acp-stream": these rows alone; python -m bench --help lists the names.
bench: setup
	$(BIN)/python -m bench $(addprefix --only ,$(ONLY))

golden: setup
	$(BIN)/python scripts/record_traces.py tests/golden

golden-mcp: setup
	$(BIN)/python scripts/record_mcp_traces.py tests/golden --peers .peers

recording: setup
	$(BIN)/python -m scripts.record_demo
	$(BIN)/python -m scripts.record_chat

pictures: setup
	$(BIN)/python -m scripts.picture_page
	$(BIN)/python -m scripts.picture_console
	$(BIN)/python -m scripts.picture_bots

protocol: setup
	$(BIN)/python scripts/generate_protocol.py

modules: setup
	$(BIN)/python scripts/generate_modules.py

man: setup
	$(BIN)/python scripts/generate_man.py

# Upgrades everything within pyproject's bounds; commit the result after `make test`.
lock: $(VENV)/.tools
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 \
	  --extra chat --extra codex --extra discord --extra http --extra images --extra telegram --extra terminal --extra web --extra ws --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --python-version 3.11 \
	  --extra ray -c requirements/dev.txt pyproject.toml -o requirements/ray.txt

clean:
	rm -rf $(VENV) $(RAY_VENV) dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
