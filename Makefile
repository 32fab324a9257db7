# Attention, Position, Cache. `make help` lists what there is.
# Each target first makes .venv hold the extras it needs, and no more (tools/env.py).

PYTHON ?= $(shell for name in python3.11 python3 python; do command -v $$name && break; done)
NONE = Python 3.11 or newer is needed, and there is no python3.11, python3 or python here: \
  install it, or say `make PYTHON=/path/to/python3.11 ...`
# tools/run.py starts every command, and ends it in good order on Ctrl-C: in .venv, or with what
# Python there is.
RUN := .venv/bin/python tools/run.py
PLAIN = $(or $(PYTHON),$(error $(NONE))) tools/run.py
PORT ?= 8000
ASSIGNMENT ?= 01-attention

.DEFAULT_GOAL := help
.PHONY: help serve book take-away zip pdf epub start lab check chat questions test test-long lint library course nbval answers grading browser \
        links exercises learner-tree collect grade report return forget discussion gradescope hub bench mutants naming results lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | \
	  while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

# --- read
serve: .ask-port .env-book  ## build the book and serve it on localhost (PORT=8000, WEIGHTS=1: with a trained model)
	@$(RUN) tools.book --serve --port $(PORT)

book: .env-book  ## build the book into _build/html, strictly
	@$(RUN) tools.book

take-away: .ask-chromium .env-paper  ## all exercises as zip, the book as PDF and EPUB: on the site's first page
	@$(RUN) tools.take_away
pdf epub: .ask-chromium .env-paper
	@$(RUN) tools.take_away $@
zip: .env-paper
	@$(RUN) tools.take_away zip
zip:  ## all exercises as one file, in _build/take-away
pdf:  ## the book as PDF, in _build/take-away (wants Chromium)
epub:  ## the book as EPUB, in _build/take-away (wants Chromium)

# --- work
start:  ## copy an exercise into your own folder work/ (EXERCISE=05-rope NEW=1: a newer release beside it)
	@$(PLAIN) tools.start "$(EXERCISE)" $(if $(NEW),--new)

lab: .ask-lab .env-lab  ## open JupyterLab on work/, with the chapters and the Validate button (EXERCISE=05-rope opens it)
	@$(RUN) tools.lab $(if $(INSTRUCTOR),--instructor) $(if $(EXERCISE),--exercise "$(EXERCISE)") $(OPTIONS)

check: .ask-check .env-lab  ## run the tests that you see, and say what is missing (EXERCISE=05-rope; without: all you started)
	@$(RUN) tools.selfcheck $(if $(EXERCISE),"$(EXERCISE)")

chat: .env-chat  ## ask a published language model that runs on lib (QUESTION="..." answers once and ends)
	@$(RUN) tools.chat

# --- grade
exercises: .env-grade  ## regenerate exercises/ from solutions/
	@$(RUN) tools.exercises $(if $(FORCE),--force)

learner-tree: .env-grade  ## what learners get, in _build/learner: no solutions, no hidden tests
	@$(RUN) tools.learner_tree

collect: .ask-collect .env-grade  ## put a download of Canvas, Moodle or Gradescope into submitted/ (FROM=a.zip ROSTER=b.csv; DO=1 does it)
	@$(RUN) grading.collect "$(FROM)" "$(ASSIGNMENT)" $(if $(ROSTER),--roster "$(ROSTER)") $(if $(ZONE),--zone "$(ZONE)") $(if $(DO),--do)

return: .ask-return .env-grade  ## write grades and feedback for TO=canvas, moodle or csv (TEMPLATE=its-export.csv COLUMN="...")
	@$(RUN) grading.hand_back "$(TO)" "$(ASSIGNMENT)" $(if $(TEMPLATE),--template "$(TEMPLATE)") $(if $(COLUMN),--column "$(COLUMN)") $(if $(SCALE),--scale)

grade: .ask-grade .env-grade  ## grade submitted/ (ASSIGNMENT=01-attention JOBS=2): feedback/ and a CSV
	@$(RUN) grading "$(ASSIGNMENT)" $(if $(JOBS),--jobs $(JOBS)) $(if $(FORCE),--force)

report: .ask-grade .env-grade  ## what the class got wrong, as a page in reports/ (ASSIGNMENT=01-attention JOBS=2)
	@$(RUN) grading.class_report "$(ASSIGNMENT)" $(if $(JOBS),--jobs $(JOBS))

forget: .ask-forget .env-grade  ## delete what is kept of a learner (LEARNER=name; DRY=1 only shows it)
	@$(RUN) grading.forget $(if $(DRY),--dry-run) -- "$(LEARNER)"

questions: .env-book  ## the chapters' questions for Moodle and as an exam to print, in _build/questions (CHAPTERS="05-rope": only these)
	@$(RUN) tools.book
	@$(RUN) tools.questions $(CHAPTERS)

discussion: .env-grade  ## questions that make the class's mistakes visible, in _build/discussion (EXERCISES="05-rope": only these)
	@$(RUN) tools.discussion $(EXERCISES)

gradescope: .env-grade  ## an autograder for Gradescope, in _build/gradescope (ASSIGNMENT=01-attention); it holds hidden tests
	@$(RUN) tools.gradescope "$(ASSIGNMENT)"

hub: .ask-hub .env-hub  ## try a JupyterHub on this machine: an instructor, two learners (PORT=8000; docs/hub.md)
	@$(RUN) tools.hub --port $(PORT)

# --- check
test: .env-all  ## check everything once (20 minutes or less)
	@$(RUN) tools.check lint library book course nbval answers grading browser

test-long: .env-all  ## what is slow or repeats (45 minutes or less)
	@$(RUN) tools.check --long library course answers grading browser

lint library course nbval answers grading browser: .env-all
	@$(RUN) tools.check $@
lint:  ## style, spelling, house rules
library:  ## lib/ and its tests
course:  ## chapters, claims and their perturbations, exercises, table of contents
nbval:  ## execute every solution with its hidden tests
answers:  ## every wrong answer loses its points, every right one keeps them
grading:  ## grade fixtures from release to feedback
browser:  ## the built site in headless Chromium

links: .env-book  ## ask the book's external links whether they still answer (wants a network; no test does this)
	@$(RUN) tools.book
	@$(RUN) tools.links

# --- measure
bench: .env-all  ## measure speed and memory beside other implementations (6 minutes or less)
	@for name in memory operators decoding growth kv_cache; do $(RUN) benchmarks.$$name && echo || exit 1; done

mutants: .env-all  ## try every mutant of the solutions; the kill rates go into book/instructors/tests.md (about 15 minutes)
	@PYTHONPATH=tests/answers $(RUN) mutants $(ASSIGNMENTS)

naming: .env-all  ## how often mistakes get a name, and the right one; into the page about the report (about 15 minutes)
	@PYTHONPATH=tests/answers $(RUN) naming $(ASSIGNMENTS)

results: .env-all  ## train the grids that chapters 07 to 09 and 15 draw from, where code or settings changed (FORCE=1: all)
	@$(RUN) benchmarks.record $(if $(FORCE),--force)
	@$(RUN) benchmarks.pretrained
	@$(RUN) benchmarks.length
	@$(RUN) benchmarks.heads

# --- keep house
lock: .env-all  ## write requirements.lock anew from pyproject.toml (looks for newer versions)
	@$(RUN) tools.lock

clean:  ## remove what was built (not .venv, not people's work)
	rm -rf _build reports .pytest_cache .ruff_cache .hypothesis

# What is wrong with the arguments is said before anything is installed.
.PHONY: .ask-port .ask-lab .ask-check .ask-collect .ask-return .ask-grade .ask-forget .ask-hub .ask-chromium
.NOTPARALLEL:
.ask-port:
	@$(PLAIN) tools.ask port "$(PORT)"
.ask-hub:
	@$(PLAIN) tools.ask hub "$(PORT)"
.ask-lab:
	@$(PLAIN) tools.ask lab "$(EXERCISE)"
.ask-check:
	@$(PLAIN) tools.ask check "$(EXERCISE)"
.ask-chromium:
	@$(PLAIN) tools.ask chromium
.ask-collect:
	@$(PLAIN) tools.ask collect "$(FROM)" "$(ROSTER)"
.ask-return:
	@$(PLAIN) tools.ask hand_back "$(TO)" "$(TEMPLATE)"
.ask-grade:
	@$(PLAIN) tools.ask grade "$(ASSIGNMENT)" "$(JOBS)"
.ask-forget:
	@$(PLAIN) tools.ask forget "$(LEARNER)"

# The environment: a call that finds everything installed returns at once.
.PHONY: .env-book .env-paper .env-lab .env-chat .env-grade .env-hub .env-all
.env-book:
	@$(PLAIN) tools.env book $(if $(WEIGHTS),pretrained)
.env-paper:
	@$(PLAIN) tools.env book paper
.env-lab:
	@$(PLAIN) tools.env lab $(if $(WEIGHTS),pretrained)
.env-chat:
	@$(PLAIN) tools.env pretrained
.env-hub:
	@$(PLAIN) tools.env hub grade
.env-grade:
	@$(PLAIN) tools.env grade
.env-all:
	@$(PLAIN) tools.env book lab grade hub cluster pretrained paper dev
