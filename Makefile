PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
RUNS := .venv/runs
OTHER_VENV := .venv/other
OTHER ?= numpy==2.2.* scipy==1.15.* numba==0.62.*
# what docs/figures.md shows
PAPERS := $(wildcard jobs/*.toml) $(addprefix jobs/,aiade cat gspar ht literature time)
# the demo has 4 workers and a master; more ranks than cores would wait for each other
RANKS := $(shell $(PYTHON) -c 'import os; print(max(2, min(5, os.cpu_count())))')

unexport PYTHONDONTWRITEBYTECODE  # with it, every start of a command compiles every module

.PHONY: demo figures figures-deep records test test-slow test-cluster lint bench docs clean constraints coverage test-versions mistakes claims-mutants random-mistakes

demo: $(RUNS)              ## the main job on built-in data under mpiexec, and its figure
	$(BIN)/mpiexec -n $(RANKS) $(BIN)/mpi-compress run jobs/demo.toml
	$(BIN)/mpi-compress plot jobs/demo.toml

figures: $(INSTALLED)      ## the papers' jobs, two at once, what is done left out, and report.html; FULL=1: full sizes, with sets that are fetched
	$(BIN)/mpi-compress report --run $(PAPERS) -o report.html --table docs/figures.md $(if $(FULL),--full --get)

figures-deep: $(INSTALLED) ## the same of networks, which take longer, with pages of their own: as jobs/deep says, or FULL=1
	$(BIN)/mpi-compress report --run jobs/deep -o report-deep.html --title "Networks: figures and claims" \
	  --table docs/figures-deep.md $(if $(FULL),--full --get)

records: $(INSTALLED)      ## the jobs of docs/records.md, and the page
	$(BIN)/mpi-compress report --run --full jobs/records -o records.html
	$(BIN)/python docs/records.py results > docs/records.md

test: $(INSTALLED)         ## the whole test suite but the slow checks
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

test-slow: $(INSTALLED)    ## checks that take minutes, and property tests with examples drawn anew
	$(BIN)/python -m pytest -m "slow or hypothesis" --hypothesis-profile drawn

test-cluster: $(INSTALLED) ## on a real SLURM, on emulated hosts, through kills and full disks: as root, with slurm-wlm, munge and iproute2
	$(BIN)/python -m pytest -m slow tests/cluster

coverage: $(INSTALLED)     ## lines and branches of the package that the suite enters, in processes that it starts, too; compiled kernels are left out
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

test-versions:             ## the suite with other versions, in an environment of its own: OTHER="numpy==2.3.* numba==0.63.*"
	test -x $(OTHER_VENV)/bin/python || $(PYTHON) -m venv $(OTHER_VENV)
	$(OTHER_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[mpich,deep,test]" $(OTHER)
	env -u MPI_COMPRESS_FIXTURES $(OTHER_VENV)/bin/python -m pytest -m "not slow" -n 2 --dist loadfile --no-loadscope-reorder

mistakes: $(INSTALLED)   ## small mistakes put into a copy one at a time: which the tests notice; half an hour
	$(BIN)/python tests/mistakes.py

claims-mutants: $(INSTALLED)  ## wrong methods, each against the sentences of papers that must not hold of it; minutes
	$(BIN)/python tests/claims_mutants.py $(OPTIONS)

random-mistakes: $(INSTALLED)  ## 200 mistakes at random places, each against the tests that enter its line; OPTIONS="--seed 1 --only engine"
	$(BIN)/python tests/random_mistakes.py $(OPTIONS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(INSTALLED)        ## ratios, measured side by side in one run
	$(BIN)/python -m benchmarks

docs: $(INSTALLED)         ## the pages of docs/, with Sphinx: docs/_build/index.html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

$(RUNS): setup.cfg pyproject.toml  # enough to run jobs
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[mpich]"
	touch $@

$(INSTALLED): setup.cfg pyproject.toml  # all of that, too
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[mpich,deep,test,lint,docs]"
	touch $(RUNS) $@

constraints: $(INSTALLED)  ## the versions that .ci/run installs: those that are installed here
	$(BIN)/python -m pip freeze --exclude-editable > constraints.txt

clean:
	rm -rf .venv build dist *.egg-info
