# Attention, Position, Cache. `make help` lists what there is.
# Each target first makes .venv hold the extras it needs, and no more (tools/env.py).

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
PY := .venv/bin/python
PORT ?= 8000
ASSIGNMENT ?= 01-attention

.DEFAULT_GOAL := help
.PHONY: help serve book take-away zip pdf epub start lab check test test-long lint library course nbval answers grading browser \
        links exercises learner-tree grade hub bench results lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

# --- read
serve: .env-book  ## build the book and serve it on localhost (PORT=8000, WEIGHTS=1: with a trained model)
	@$(PY) -m tools.book --serve --port $(PORT)

book: .env-book  ## build the book into _build/html, strictly
	@$(PY) -m tools.book

take-away: .env-paper  ## all exercises as zip, the book as PDF and EPUB: on the site's first page
	@$(PY) -m tools.take_away
zip pdf epub: .env-paper
	@$(PY) -m tools.take_away $@
zip:  ## all exercises as one file, in _build/take-away
pdf:  ## the book as PDF, in _build/take-away (wants Chromium)
epub:  ## the book as EPUB, in _build/take-away (wants Chromium)

# --- work
start:  ## copy an exercise into your own folder work/ (EXERCISE=05-rope NEW=1: a newer release beside it)
	@$(PYTHON) tools/start.py "$(EXERCISE)" $(if $(NEW),--new)

lab: .env-lab  ## open JupyterLab on work/, with the chapters and the Validate button (EXERCISE=05-rope opens it)
	@$(PY) -m tools.lab $(if $(INSTRUCTOR),--instructor) $(if $(EXERCISE),--exercise "$(EXERCISE)") $(OPTIONS)

check: .env-lab  ## run the tests that you see, and say what is missing (EXERCISE=05-rope; without: all you started)
	@$(PY) -m tools.selfcheck $(if $(EXERCISE),"$(EXERCISE)")

# --- grade
exercises: .env-grade  ## regenerate exercises/ from solutions/
	@$(PY) -m tools.exercises $(if $(FORCE),--force)

learner-tree: .env-grade  ## what learners get, in _build/learner: no solutions, no hidden tests
	@$(PY) -m tools.learner_tree

grade: .env-grade  ## grade submitted/ (ASSIGNMENT=01-attention JOBS=2): feedback/ and a CSV
	@$(PY) -m grading $(ASSIGNMENT) $(if $(JOBS),--jobs $(JOBS)) $(if $(FORCE),--force)

hub: .env-hub  ## try a JupyterHub on this machine: an instructor, two learners (PORT=8000; docs/hub.md)
	@$(PY) -m tools.hub --port $(PORT)

# --- check
test: .env-all  ## check everything once (20 minutes or less)
	@$(PY) -m tools.check lint library book course nbval answers grading browser

test-long: .env-all  ## what is slow or repeats (45 minutes or less)
	@$(PY) -m tools.check --long library course answers grading browser

lint library course nbval answers grading browser: .env-all
	@$(PY) -m tools.check $@
lint:  ## style, spelling, house rules
library:  ## lib/ and its tests
course:  ## chapters, claims and their perturbations, exercises, table of contents
nbval:  ## execute every solution with its hidden tests
answers:  ## every wrong answer loses its points, every right one keeps them
grading:  ## grade fixtures from release to feedback
browser:  ## the built site in headless Chromium

links: .env-book  ## ask the book's external links whether they still answer (wants a network; no test does this)
	@$(PY) -m tools.book
	@$(PY) -m tools.links

# --- measure
bench: .env-all  ## measure speed and memory beside other implementations (6 minutes or less)
	@for name in memory operators decoding growth kv_cache; do $(PY) -m benchmarks.$$name && echo || exit 1; done

results: .env-all  ## train the grids that chapters 07 to 09 draw from, where code or settings changed (FORCE=1: all)
	@$(PY) -m benchmarks.record $(if $(FORCE),--force)
	@$(PY) -m benchmarks.pretrained

# --- keep house
lock: .env-all  ## write requirements.lock anew from pyproject.toml (looks for newer versions)
	@$(PY) -m tools.lock

clean:  ## remove what was built (not .venv, not people's work)
	rm -rf _build reports .pytest_cache .ruff_cache .hypothesis

# The environment: a call that finds everything installed returns at once.
.PHONY: .env-book .env-paper .env-lab .env-grade .env-hub .env-all
.env-book:
	@$(PYTHON) tools/env.py book $(if $(WEIGHTS),pretrained)
.env-paper:
	@$(PYTHON) tools/env.py book paper
.env-lab:
	@$(PYTHON) tools/env.py lab $(if $(WEIGHTS),pretrained)
.env-hub:
	@$(PYTHON) tools/env.py hub grade
.env-grade:
	@$(PYTHON) tools/env.py grade
.env-all:
	@$(PYTHON) tools/env.py book lab grade hub cluster pretrained paper dev
