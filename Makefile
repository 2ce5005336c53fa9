# The interface of the project: see README.md. Everything is installed into .venv.
PYTHON ?= python3
PORT ?= 8000
HUMANVAL_VAR ?= var

export HUMANVAL_VAR := $(abspath $(HUMANVAL_VAR))
BIN := $(abspath .venv/bin)

.PHONY: run install install-dev test check format bench bench-analysis bench-alice bench-alice-gpu bench-web bench-io bench-classifiers pictures

# What a laptop serves is plain HTTP on its own address; production is HTTPS unless told otherwise.
LOCAL := HUMANVAL_HTTPS=0 HUMANVAL_SITE_URL=http://localhost:$(PORT) HUMANVAL_LOG_FORMAT=text

run: install
	@$(LOCAL) $(BIN)/python manage.py prepare --port $(PORT)
	@exec env $(LOCAL) PATH="$(BIN):$$PATH" $(BIN)/honcho start --port $(PORT)

install: .venv/installed
install-dev: .venv/installed-dev

.venv/installed: requirements.txt requirements-models.txt config/install.py
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python config/install.py
	@touch $@

.venv/installed-dev: .venv/installed requirements-dev.txt requirements-dev-alone.txt
	@.venv/bin/python -m pip install --quiet --no-compile --requirement requirements-dev.txt
	@.venv/bin/python -m pip install --quiet --no-compile --no-deps --requirement requirements-dev-alone.txt
	@touch $@

# Tests keep their state apart; HUMANVAL_VAR is for `make run`. All of them are shared among as many processes as there
# are processors; what ARGS names runs in one, unless PROCESSES says otherwise.
PROCESSES ?= $(if $(ARGS),0,logical)
SHARED := --dist loadfile --no-loadscope-reorder --maxprocesses 8

test: install-dev
ifeq ($(PROCESSES),0)
	@env -u HUMANVAL_VAR $(BIN)/python -m pytest $(ARGS)
else
	@env -u HUMANVAL_VAR OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(PROCESSES) $(SHARED) $(ARGS)
endif

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --deploy --fail-level WARNING

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: bench-analysis bench-alice bench-web bench-io bench-classifiers

# Agreement against other packages and its bootstrap, at full size.
bench-analysis: install-dev
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.analysis

# The processor's threads, and how many of the 16 prompts the plain reading of the paper decodes, too: a minute each and more.
THREADS ?= 1
PLAIN ?= 4

bench-alice: install-dev
	@OMP_NUM_THREADS=$(THREADS) $(BIN)/python -m benchmarks.alice --threads $(THREADS) --plain $(PLAIN)

bench-alice-gpu: install-dev
	@$(BIN)/python -m benchmarks.alice_gpu --model gpt-j-6b
	@$(BIN)/python -m benchmarks.alice_gpu --model llama-8b

# Fifty annotators at once, on two cores.
bench-web: install-dev
	@$(BIN)/python -m benchmarks.web $(ARGS)

# Files and pages at the size of the released dataset, in a few minutes.
bench-io: install-dev
	@$(BIN)/python -m benchmarks.io $(ARGS)

# Scoring, and the trial on human labels, which takes the best part of an hour; ARGS=throughput is a part of it.
bench-classifiers: install-dev
	@OMP_NUM_THREADS=$(THREADS) $(BIN)/python -m benchmarks.classifiers $(ARGS)

# The pictures of README.md and of the guides, made by the browser tests.
pictures:
	@$(MAKE) test ARGS=tests/browser
	cp var/test/screenshots/annotator-task-1280-first-view.png docs/pictures/task.png
	cp var/test/screenshots/annotator-consent-1280-first-view.png docs/pictures/consent.png
	cp var/test/screenshots/annotator-own-work-1280-first-view.png docs/pictures/own-work.png
	cp var/test/screenshots/annotator-join-1280-first-view.png docs/pictures/join.png
	cp var/test/screenshots/review-first-view.png docs/pictures/review.png
	cp var/test/screenshots/study-pay-first-view.png docs/pictures/study-pay.png
	cp var/test/screenshots/study-preview-first-view.png docs/pictures/study-preview.png
	cp var/test/screenshots/study-watched-first-view.png docs/pictures/study-watched.png
	cp var/test/screenshots/agreement-1280.png docs/pictures/agreement.png
	cp var/test/screenshots/alice-replay-1280.png docs/pictures/replay.png
	cp var/test/screenshots/runs-at-work-first-view.png docs/pictures/run.png
