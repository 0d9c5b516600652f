# Everything a newcomer needs: `make run` and `make test`. Both install what they use.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
PORT ?= 9042
DATA_DIR ?= annulus-data
# A venv for each driver: the two Python drivers share a module name.
VENVS := .venv
DRIVERS := cassandra scylla

.PHONY: help
help: ## Show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: run
run: ## Build and start the product with the film sample
	cargo run --release --locked -p annulus -- serve --data-dir $(DATA_DIR) --sample movies

.PHONY: dist
dist: ## Build the programs to deploy, target/dist/annulus and annulus-bench: optimised as a whole, which takes longer than make run's
	cargo build --profile dist --locked -p annulus -p annulus-bench

# Packages for x86-64 Linux, from Debian 10 and its like on (packaging/): target/wheels and target/packages. The profile of the program in
# them: PACKAGE_PROFILE=release builds in half the time, and runs 5 to 12 % slower.
PACKAGE_PROFILE ?= dist
PROGRAM ?= target/packages/annulus
.PHONY: packages
packages: wheel deb sbom sums ## The wheel, the Debian package, their SBOM and SHA256SUMS: target/wheels and target/packages

# Linked for glibc 2.28 by zig, which comes from PyPI. Set PROGRAM: a program that is there already, whose glibc is checked.
.PHONY: package-program
ifeq ($(origin PROGRAM),file)
package-program: $(VENVS)/packaging/.installed
	$(PYTHON) packaging/program.py $(PACKAGE_PROFILE) $(VENVS)/packaging
else
package-program:
endif

$(VENVS)/packaging/.installed: packaging/requirements.txt
	$(PYTHON) -m venv $(VENVS)/packaging
	$(VENVS)/packaging/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: wheel
wheel: package-program ## The wheel with the program and the module annulus_db: target/wheels/annulus_db-*.whl
	$(PYTHON) packaging/wheel.py $(PROGRAM)

.PHONY: deb
deb: package-program ## The Debian package: target/packages/annulus_*.deb
	$(PYTHON) packaging/deb.py $(PROGRAM)

.PHONY: sbom
sbom: ## What the program contains, as CycloneDX JSON: target/packages/annulus.cdx.json
	mkdir -p target/packages
	$(PYTHON) packaging/sbom.py > target/packages/annulus.cdx.json

.PHONY: sums
sums:
	cd target && sha256sum wheels/annulus_db-*.whl packages/annulus_*.deb packages/annulus.cdx.json > SHA256SUMS

.PHONY: vendor-build
vendor-build: ## The program from vendored crates, without a network: target/vendor-build/PROFILE/annulus (PACKAGE_PROFILE=release)
	packaging/vendor-build $(PACKAGE_PROFILE)

.PHONY: test-packages
test-packages: $(VENVS)/cassandra/.installed ## The wheel in a fresh venv, the Debian package and the Dockerfile's steps in chroots (root; debootstrap and lintian from apt)
	$(if $(PACKAGES_BUILT),,$(MAKE) --no-print-directory wheel deb sbom sums)
	$(VENVS)/cassandra/bin/python -m pytest -q tests/packages

# Set: the packages are built already.
PACKAGES_BUILT ?=

# Set: leave out the tests that need a real Cassandra, and with it Java 17 and Maven.
WITHOUT_CASSANDRA ?=

# Set: leave out the client that is built with Go.
WITHOUT_GO ?=

# Set: leave out the client that is built with Java 17 and Maven.
WITHOUT_JAVA ?=

# In this order, so that what fails soonest fails first. Of the second Python driver it has a part (`make test-drivers` has all).
TEST_PARTS := check test-rust test-driver-cassandra smoke-driver-scylla smoke-monitoring smoke-apps test-cqlsh test-shell test-load test-compat test-differential test-histories \
	test-filters test-full-text test-http-tables smoke-console test-backup-smoke test-mcp test-frameworks test-annulus-db test-clients \
	$(if $(WITHOUT_CASSANDRA),,test-deployment)

# Runs parts one after the other, and stops at the first that fails: $(call run_parts,NAME,PARTS). Parts after test-rust and
# test-programs take the programs as those built them.
define run_parts
	+@times=; trap 'printf "\nminutes:seconds of each part of make $(1)\n%b" "$$times"' EXIT; \
	for part in $(2); do \
		SECONDS=0; ended=; \
		$(MAKE) --no-print-directory $$part || ended=", failed"; \
		times+=$$(printf "%5d:%02d  %s" $$((SECONDS / 60)) $$((SECONDS % 60)) $$part)"$$ended\n"; \
		test -z "$$ended"; \
		case $$part in test-rust | test-programs) export PROGRAMS_BUILT=1 ;; esac; \
	done
endef

.PHONY: test
test: $(if $(WITHOUT_CASSANDRA),,cassandra) ## Formatting, lints and every test; prints how long each part took
	$(call run_parts,$@,$(TEST_PARTS))

.PHONY: check
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

# Not a part of `check`, as it compiles the workspace once more.
.PHONY: docs-check
docs-check: ## The documentation of all crates, with warnings of rustdoc denied: links that lead nowhere
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --locked --document-private-items

.PHONY: test-rust
test-rust:
	cargo test --workspace --locked

# Builds one small program that looks at the sources; nothing of the product.
.PHONY: pre-commit
pre-commit: ## Before a commit, in 20 seconds: format the sources, and check them by ARCHITECTURE.md
	cargo fmt --all
	cargo test --workspace --locked --quiet --test architecture

BASE ?=
TIMES ?= 30
.PHONY: test-again
test-again: ## The tests that a change adds or touches, again and again on busy cores: make test-again BASE=origin/main TIMES=30
	$(PYTHON) tests/again/again.py --base "$(BASE)" --times $(TIMES)

# The programs that the Python suites start: the same selection as test-rust, so that nothing is built with other features a
# second time. Set PROGRAMS_BUILT: they are built already.
PROGRAMS_BUILT ?=
.PHONY: test-programs
test-programs:
	$(if $(PROGRAMS_BUILT),,cargo test --workspace --locked --no-run --quiet)

# Every driver's suite, also those that are too long for `make test`. The last three take a fixed address.
DRIVER_PARTS := test-programs $(DRIVERS:%=test-driver-%) test-cqlsh-all test-compat-all test-clients-all test-node test-examples test-typed test-acsylla test-python-driver test-cqlengine \
	$(if $(WITHOUT_JAVA),,test-java-driver)

.PHONY: test-drivers
test-drivers: ## Every driver's suite: Python, cqlsh, Rust, Go, Java, Node, C++, the examples, and the own tests of the Python and Java drivers (WITHOUT_GO=1, WITHOUT_JAVA=1)
	$(call run_parts,$@,$(DRIVER_PARTS))

.PHONY: $(DRIVERS:%=test-driver-%)
$(DRIVERS:%=test-driver-%): test-driver-%: $(VENVS)/%/.installed test-programs
	$(VENVS)/$*/bin/python -m pytest -q tests/drivers

# Tests of what a driver decides: types, prepared statements, pages, batches, errors, its metadata, logins, TLS, vectors.
SMOKE_TESTS := ann batches errors metadata paging prepared roles tls types user_types
.PHONY: smoke-driver-scylla
smoke-driver-scylla: $(VENVS)/scylla/.installed test-programs
	$(VENVS)/scylla/bin/python -m pytest -q $(SMOKE_TESTS:%=tests/drivers/test_%.py)

# What needs neither a server nor other programs: forms, names of metrics, a runbook and tests for each alert.
.PHONY: smoke-monitoring
smoke-monitoring: $(VENVS)/cassandra/.installed
	$(VENVS)/cassandra/bin/python -m pytest -q tests/monitoring/test_forms.py tests/monitoring/test_log_files.py

# Programs that are not installed come from Debian's packages, unpacked into target/monitoring; without these a test is skipped.
.PHONY: test-monitoring
test-monitoring: $(if $(WITHOUT_CASSANDRA),,cassandra) $(VENVS)/cassandra/.installed test-programs ## Dashboards, alerts and logs by real Prometheus, Alertmanager and rsyslog (5 minutes; WITHOUT_CASSANDRA=1 leaves gateways out)
	WITHOUT_CASSANDRA=$(WITHOUT_CASSANDRA) $(VENVS)/cassandra/bin/python -m pytest -q -rs tests/monitoring

.PHONY: test-cqlsh
test-cqlsh: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/cqlsh

.PHONY: test-cqlsh-all
test-cqlsh-all: $(VENVS)/cassandra/.installed test-programs ## The tests of cqlsh, with 100,000 rows that go out by COPY TO and come in by COPY FROM
	COPY_ROWS=$${COPY_ROWS:-100000} $(VENVS)/cassandra/bin/python -m pytest -q tests/cqlsh

.PHONY: test-shell
test-shell: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/shell

.PHONY: test-load
test-load: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/load

.PHONY: test-compat
test-compat: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/compat

.PHONY: test-compat-all
test-compat-all: $(VENVS)/cassandra/.installed test-programs ## The recorded answers of Cassandra, each by both versions of the protocol
	ALL_VERSIONS=1 $(VENVS)/cassandra/bin/python -m pytest -q tests/compat

.PHONY: test-differential
test-differential: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/differential

.PHONY: test-histories
test-histories: $(VENVS)/cassandra/.installed test-programs
	SEEDS=12 $(VENVS)/cassandra/bin/python -m pytest -q tests/histories

.PHONY: test-filters
test-filters: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/filters

.PHONY: test-filters-all
test-filters-all: $(VENVS)/cassandra/.installed test-programs ## Searches with filters by every form of index on columns of every type
	ALL_FORMS=1 $(VENVS)/cassandra/bin/python -m pytest -q tests/filters

.PHONY: test-full-text
test-full-text: $(VENVS)/cassandra/.installed test-programs
	$(VENVS)/cassandra/bin/python -m pytest -q tests/full_text

.PHONY: test-http-tables
test-http-tables: $(VENVS)/cassandra/.installed test-programs ## Rows, searches and CQL over HTTP, next to the same by a driver
	$(VENVS)/cassandra/bin/python -m pytest -q tests/http_tables

# The console in a real browser: Debian's chromium (apt-get install chromium), driven from Node by playwright-core.
CHROMIUM ?= $(shell command -v chromium)
CONSOLE_LACKS := $(if $(shell command -v npm),,Node with npm) $(if $(CHROMIUM),,chromium)
RUN_CONSOLE := cd tests/console && CHROMIUM=$(CHROMIUM) node --test --test-concurrency=2
CONSOLE_TESTS := $(filter-out smoke.test.mjs,$(notdir $(wildcard tests/console/*.test.mjs)))

.PHONY: test-console
test-console: tests/console/node_modules/.installed test-programs ## The console in a real browser: every view, both themes, both widths, by keyboard, axe's rules, hostile strings (Node, chromium)
	$(RUN_CONSOLE) $(CONSOLE_TESTS)

.PHONY: smoke-console
ifeq ($(strip $(CONSOLE_LACKS)),)
smoke-console: tests/console/node_modules/.installed test-programs
	$(RUN_CONSOLE) smoke.test.mjs
else
smoke-console:
	@echo "smoke-console: skipped, as this machine has no $(strip $(CONSOLE_LACKS))"
endif

tests/console/node_modules/.installed: tests/console/package-lock.json
	cd tests/console && npm ci --no-audit --no-fund --ignore-scripts --silent
	touch $@

# test-console makes them, too, and throws them away: each has its own times.
.PHONY: console-screenshots
console-screenshots: tests/console/node_modules/.installed test-programs ## The pictures of the console in README and docs: docs/images/console-*.png
	cd tests/console && CHROMIUM=$(CHROMIUM) SCREENSHOTS=$(CURDIR)/docs/images node --test screenshots.test.mjs

# The libraries of the console, as they are committed in crates/console/web/vendor.
.PHONY: console-vendor
console-vendor: ## Make crates/console/web/vendor again from npm's packages
	cd crates/console/vendor-build && npm ci --no-audit --no-fund --ignore-scripts --silent && npm run --silent build

# Into a directory only. `make test-backup` has the rest.
BACKUP_SMOKE := directory kills
.PHONY: test-backup-smoke
test-backup-smoke: $(VENVS)/cassandra/.installed test-programs
	KILLS=$${KILLS:-2} $(VENVS)/cassandra/bin/python -m pytest -q $(BACKUP_SMOKE:%=tests/backup/test_%.py)

# Stand-ins of the stores come from PyPI and npm; without Node the one of Azure is left out. A full disk needs a root who may mount.
.PHONY: test-backup
test-backup: $(VENVS)/backup/.installed $(if $(shell command -v node),tests/backup/azurite/node_modules/.installed) $(if $(WITHOUT_CASSANDRA),,cassandra) test-programs ## Backups to stand-ins of S3, Google and Azure with faults, restores, 20 kills (KILLS=n), drills, the upgrade ladder (WITHOUT_CASSANDRA=1)
	KILLS=$${KILLS:-20} $(VENVS)/backup/bin/python -m pytest -q tests/backup $(if $(WITHOUT_CASSANDRA),--ignore=tests/backup/test_cassandra.py)

$(VENVS)/backup/.installed: tests/backup/requirements.txt
	$(PYTHON) -m venv $(VENVS)/backup
	$(VENVS)/backup/bin/pip install --no-deps --no-compile --quiet --disable-pip-version-check -r $<
	touch $@

tests/backup/azurite/node_modules/.installed: tests/backup/azurite/package-lock.json
	cd tests/backup/azurite && npm ci --no-audit --no-fund --ignore-scripts --silent
	touch $@

.PHONY: backup-fixture
backup-fixture: $(VENVS)/cassandra/.installed test-programs ## The backup of this version that later ones must restore: once, before it is released
	MAKE_BACKUP_FIXTURE=1 $(VENVS)/cassandra/bin/python -m pytest -q tests/backup/test_upgrade.py -k making

.PHONY: test-full-text-all
test-full-text-all: $(VENVS)/cassandra/.installed test-programs ## Searches for words, vectors and both: many queries of each form, and 20 seeds of random writes (SEEDS=n FIRST_SEED=m for others)
	ALL_FORMS=1 QUERIES_EACH=$${QUERIES_EACH:-10} PHASES=6 SEEDS=$${SEEDS:-20} $(VENVS)/cassandra/bin/python -m pytest -q tests/full_text

# By the client of the protocol's own project, which has dependencies of its own.
.PHONY: test-mcp
test-mcp: $(VENVS)/mcp/.installed test-programs
	$(VENVS)/mcp/bin/python -m pytest -q tests/mcp

$(VENVS)/mcp/.installed: tests/mcp/requirements.txt
	$(PYTHON) -m venv $(VENVS)/mcp
	$(VENVS)/mcp/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# cassio, langchain-community and LlamaIndex as they come from PyPI, and the package of our own for LangChain. The two folders
# have a conftest.py each, so that they can't share a run.
ANNULUS_FOR_LANGCHAIN := python/langchain-annulus

.PHONY: test-frameworks
test-frameworks: $(VENVS)/frameworks/.installed test-programs
	$(VENVS)/frameworks/bin/python -m pytest -q tests/frameworks
	$(VENVS)/frameworks/bin/python -m pytest -q $(ANNULUS_FOR_LANGCHAIN)/tests

.PHONY: frameworks-test
frameworks-test: test-frameworks $(VENVS)/frameworks-scylla/.installed python-wheel ## All of test-frameworks, both drivers, the wheel, mypy
	cd $(ANNULUS_FOR_LANGCHAIN) && ../../$(VENVS)/frameworks/bin/python -m mypy
	$(VENVS)/frameworks-scylla/bin/python -m pytest -q tests/frameworks
	@# The package's tests import what is in the wheel.
	rm -rf target/python/installed
	$(VENVS)/frameworks/bin/pip install --quiet --disable-pip-version-check --no-deps --target target/python/installed $(WHEEL)
	PYTHONPATH=target/python/installed $(VENVS)/frameworks-scylla/bin/python -m pytest -q -o pythonpath= $(ANNULUS_FOR_LANGCHAIN)/tests

WHEEL = target/python/langchain_annulus-*.whl
.PHONY: python-wheel
python-wheel: $(VENVS)/wheel/.installed ## Build the wheel of langchain-annulus: target/python
	rm -f $(WHEEL)
	$(VENVS)/wheel/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir target/python $(ANNULUS_FOR_LANGCHAIN)

$(VENVS)/wheel/.installed:
	$(PYTHON) -m venv $(VENVS)/wheel
	touch $@

$(VENVS)/frameworks/.installed: $(ANNULUS_FOR_LANGCHAIN)/tests/requirements-cassandra.txt
$(VENVS)/frameworks-scylla/.installed: tests/drivers/requirements-scylla.txt
$(VENVS)/frameworks/.installed $(VENVS)/frameworks-scylla/.installed: $(ANNULUS_FOR_LANGCHAIN)/tests/requirements.txt tests/frameworks/requirements.txt
$(VENVS)/frameworks/.installed $(VENVS)/frameworks-scylla/.installed: $(VENVS)/%/.installed:
	$(PYTHON) -m venv $(VENVS)/$*
	$(VENVS)/$*/bin/pip install --no-deps --no-compile --quiet --disable-pip-version-check $(^:%=-r %)
	touch $@

# The Python package of the program itself: servers of one's own, the clients over HTTP, pandas and Arrow.
ANNULUS_DB := python/annulus-db

.PHONY: test-annulus-db
test-annulus-db: $(VENVS)/annulus-db/.installed test-programs ## The Python package annulus-db: its server, its clients, its fixtures, and mypy
	cd $(ANNULUS_DB) && ../../$(VENVS)/annulus-db/bin/python -m mypy
	$(VENVS)/annulus-db/bin/python -m pytest -q $(ANNULUS_DB)/tests

$(VENVS)/annulus-db/.installed: $(ANNULUS_DB)/tests/requirements.txt
	$(PYTHON) -m venv $(VENVS)/annulus-db
	$(VENVS)/annulus-db/bin/pip install --no-deps --no-compile --quiet --disable-pip-version-check -r $<
	touch $@

# The applications. One venv has what all of them and their tests need; each also has a lock of its own, which users install.
APPS := $(patsubst apps/%/tests/,%,$(wildcard apps/*/tests/))
APPS_VENV := $(CURDIR)/$(VENVS)/apps

$(VENVS)/apps/.installed: apps/requirements-test.txt
	$(PYTHON) -m venv $(VENVS)/apps
	$(VENVS)/apps/bin/pip install --no-deps --no-compile --quiet --disable-pip-version-check -r $<
	touch $@

# What is marked as `smoke`: one way through each application.
.PHONY: smoke-apps
smoke-apps: $(VENVS)/apps/.installed test-programs
	for app in $(APPS); do (cd apps/$$app && $(APPS_VENV)/bin/python -m pytest -q -m smoke); done

.PHONY: test-apps
test-apps: $(if $(WITHOUT_CASSANDRA),,cassandra) $(VENVS)/apps/.installed test-programs ## The applications (apps/) offline: all their tests, and mypy; APPS="embedder" for some
	for app in $(APPS); do (cd apps/$$app && $(APPS_VENV)/bin/python -m mypy && $(APPS_VENV)/bin/python -m pytest -q); done

EMBEDDER_PORT ?= 8080
STUB_MODEL_PORT ?= 8081
.PHONY: embedder
embedder: $(VENVS)/embedder/.installed ## Serve embeddings of texts in OpenAI's form, offline (apps/embedder; EMBEDDER_PORT=8080)
	@PYTHONPATH=apps/embedder $(VENVS)/embedder/bin/python -m annulus_embedder --port $(EMBEDDER_PORT)

.PHONY: stub-model
stub-model: $(VENVS)/embedder/.installed ## A stand-in for a language model, for demonstrations (apps/embedder; STUB_MODEL_PORT=8081)
	@PYTHONPATH=apps/embedder $(VENVS)/embedder/bin/python -m annulus_embedder.stub_model --port $(STUB_MODEL_PORT)

$(VENVS)/embedder/.installed: apps/embedder/requirements.txt
	@echo "Installing the server and the model that embeds texts into $(VENVS)/embedder: about a minute, once." >&2
	$(PYTHON) -m venv $(VENVS)/embedder
	$(VENVS)/embedder/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

SEMANTIC_CACHE_PORT ?= 8090
.PHONY: semantic-cache
semantic-cache: $(VENVS)/semantic-cache/.installed ## A cache before a language model, with a stub for the model (apps/semantic_cache; UPSTREAM=https://api.openai.com/v1 for a real one, ARGS="--threshold 0.9")
	@PYTHONPATH=apps/embedder:apps/semantic_cache $(VENVS)/semantic-cache/bin/python -m annulus_semantic_cache serve \
		$(if $(UPSTREAM),--upstream $(UPSTREAM),--demo) --port $(SEMANTIC_CACHE_PORT) $(ARGS)

.PHONY: bench-semantic-cache
bench-semantic-cache: $(VENVS)/semantic-cache/.installed ## Hits, misses and memory of the semantic cache at 10 to 100,000 prompts (half an hour)
	cargo build --release --locked -p annulus
	$(VENVS)/semantic-cache/bin/python apps/semantic_cache/measure.py

$(VENVS)/semantic-cache/.installed: apps/semantic_cache/requirements.txt
	@echo "Installing the semantic cache and its embedding model into $(VENVS)/semantic-cache: about a minute, once." >&2
	$(PYTHON) -m venv $(VENVS)/semantic-cache
	$(VENVS)/semantic-cache/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# Drivers of other languages, each a program of its own with versions of its own. Their packages come from where Go and Cargo
# fetch by default.
CLIENTS := $(if $(WITHOUT_GO),,gocql) cdrs
.PHONY: clients
clients: $(CLIENTS:%=client-%)

.PHONY: client-gocql
client-gocql:
	@command -v go >/dev/null || { echo "make: the client gocql is built with Go; or leave it out: WITHOUT_GO=1" >&2; exit 1; }
	mkdir -p target/clients
	cd tests/clients/gocql && go build -mod=readonly -buildvcs=false -o ../../../target/clients/gocql .

# An older line of that driver, which many programs use: its own modules and names, and the same tests.
.PHONY: client-gocql1
client-gocql1:
	mkdir -p target/clients
	cd tests/clients/gocql && go build -mod=readonly -modfile=gocql1.mod -tags gocql1 -buildvcs=false -o ../../../target/clients/gocql1 .

.PHONY: client-java
client-java:
	@command -v mvn >/dev/null || { echo "make: the client java is built with Maven and Java 17; or leave it out: WITHOUT_JAVA=1" >&2; exit 1; }
	mkdir -p target/clients
	cd tests/clients/java && mvn -q -B compile dependency:copy-dependencies
	cp tests/clients/java/launch target/clients/java

# Both drivers of Rust are one workspace, so that most of what they share is built once.
RUST_CLIENTS := cdrs scylla
.PHONY: $(RUST_CLIENTS:%=client-%)
$(RUST_CLIENTS:%=client-%): client-%:
	cd tests/clients/rust && cargo build --quiet --locked -p $*-client --target-dir ../../../target/clients/rust-build
	cp target/clients/rust-build/debug/$*-client target/clients/$*

# Drivers that are tested by sections: types, conditions, paging, errors, login, TLS and more, each a test. Of the older line of
# gocql test-clients has a few. The driver scylla is in test-rust (`rust_driver`), so that only test-clients-all builds its program.
SUITES := cdrs $(if $(WITHOUT_GO),,gocql gocql1)
.PHONY: test-clients
test-clients: clients $(SUITES:%=client-%) $(VENVS)/cassandra/.installed test-programs ## Drivers of Rust and Go with their own settings: cdrs-tokio, gocql 2 and some of 1.7; the example in Python (needs Go; WITHOUT_GO=1)
	CLIENTS="$(CLIENTS)" SUITES="$(SUITES)" SMOKE=gocql1 PIECES="$(if $(WITHOUT_GO),,go)" EXAMPLES=python $(VENVS)/cassandra/bin/python -m pytest -q tests/clients tests/examples

# The Java driver waits a second after each change of the schema, so that its tests take more than a minute.
ALL_SUITES := scylla $(SUITES) $(if $(WITHOUT_JAVA),,java)
.PHONY: test-clients-all
test-clients-all: $(ALL_SUITES:%=client-%) $(VENVS)/cassandra/.installed test-programs ## Drivers in full: scylla, cdrs-tokio, gocql 2 and 1.7, Java with its mapper (needs Go, Java 17 and Maven; WITHOUT_GO=1, WITHOUT_JAVA=1)
	CLIENTS="$(CLIENTS)" SUITES="$(ALL_SUITES)" PIECES="$(if $(WITHOUT_GO),,go) $(if $(WITHOUT_JAVA),,java)" $(VENVS)/cassandra/bin/python -m pytest -q tests/clients/test_sections.py tests/clients/test_docs_of_drivers.py

# Packages come from where npm and pip fetch by default, at the versions of their lists.
NODE_CLIENTS := node express
.PHONY: test-node
test-node: $(NODE_CLIENTS:%=tests/clients/%/node_modules/.installed) $(VENVS)/cassandra/.installed test-programs ## The driver of Node with its mapper, and express-cassandra (needs Node)
	PIECES=javascript $(VENVS)/cassandra/bin/python -m pytest -q tests/clients/test_node.py tests/clients/test_docs_of_drivers.py

tests/clients/%/node_modules/.installed: tests/clients/%/package-lock.json
	cd tests/clients/$* && npm ci --no-audit --no-fund --ignore-scripts --silent
	touch $@

# The programs of examples, built and run by the commands of their README. What Cargo builds is out of the sources.
EXAMPLES := python node rust $(if $(WITHOUT_GO),,go) $(if $(WITHOUT_JAVA),,java)
.PHONY: test-examples
test-examples: examples/node/node_modules/.installed $(VENVS)/cassandra/.installed test-programs ## The examples in five languages (needs Node, Go, Java 17 and Maven; WITHOUT_GO=1, WITHOUT_JAVA=1)
	EXAMPLES="$(EXAMPLES)" CARGO_TARGET_DIR=$(CURDIR)/target/examples $(VENVS)/cassandra/bin/python -m pytest -q tests/examples

# trybuild checks the example's dependencies once more: three minutes the first time.
TYPED := CARGO_TARGET_DIR=$(CURDIR)/target/typed
.PHONY: test-typed
test-typed: $(VENVS)/cassandra/.installed test-programs ## Tables as structs in Rust (examples/typed): what the compiler refuses, and what only a server does
	cd examples/typed && cargo fmt --check && $(TYPED) cargo test --quiet --locked --test compile
	$(TYPED) $(VENVS)/cassandra/bin/python -m pytest -q tests/typed

examples/node/node_modules/.installed: examples/node/package-lock.json
	cd examples/node && npm ci --no-audit --no-fund --ignore-scripts --silent
	touch $@

.PHONY: test-acsylla
test-acsylla: $(VENVS)/acsylla/.installed $(VENVS)/cassandra/.installed test-programs ## The C++ driver, by acsylla
	$(VENVS)/cassandra/bin/python -m pytest -q tests/clients/test_acsylla.py

$(VENVS)/acsylla/.installed: tests/clients/acsylla/requirements.txt
	$(PYTHON) -m venv $(VENVS)/acsylla
	$(VENVS)/acsylla/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# These take a fixed address of loopback, so that they can't run side by side.
.PHONY: test-cqlengine
test-cqlengine: $(VENVS)/python-driver/.installed test-programs ## The tests of cqlengine themselves, from the repository of the Python driver (tests/python_driver)
	$(VENVS)/python-driver/bin/python tests/python_driver/run.py cqlengine

.PHONY: test-python-driver
test-python-driver: $(VENVS)/python-driver/.installed test-programs ## The Python driver's own integration tests, from its repository (tests/python_driver)
	$(VENVS)/python-driver/bin/python tests/python_driver/run.py driver

.PHONY: test-java-driver
test-java-driver: $(VENVS)/cassandra/.installed test-programs ## The Java driver's own integration tests, from its repository (tests/java_driver; needs Java 17 and Maven)
	$(VENVS)/cassandra/bin/python tests/java_driver/run.py

.PHONY: test-cassandra-cql
test-cassandra-cql: test-programs ## Cassandra's own unit tests of CQL, over the wire, from its repository (tests/cassandra_cql)
	$(PYTHON) tests/cassandra_cql/run.py

$(VENVS)/python-driver/.installed: tests/python_driver/requirements.txt
	$(PYTHON) -m venv $(VENVS)/python-driver
	$(VENVS)/python-driver/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: test-dtest
test-dtest: $(VENVS)/dtest/.installed test-programs ## Cassandra's own distributed tests that make sense on one node, from their repository (tests/dtest)
	$(VENVS)/dtest/bin/python tests/dtest/run.py

$(VENVS)/dtest/.installed: tests/dtest/requirements.txt
	$(PYTHON) -m venv $(VENVS)/dtest
	$(VENVS)/dtest/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# The page of all settings, made of their tables in the program.
.PHONY: docs/settings.md
docs/settings.md:
	ANNULUS_UPDATE_SETTINGS_PAGE=1 cargo test --locked -p annulus --bin annulus settings_page::the_page_has_all_settings

# The page of all metrics, made of the registries of the servers.
.PHONY: docs/metrics.md
docs/metrics.md:
	ANNULUS_UPDATE_METRICS_PAGE=1 cargo test --locked -p annulus --bin annulus metrics_page::the_page_has_all_families

# The tool keeps one version, so that its verdict changes only with the tree.
CARGO_DENY_VERSION := 0.20.2
CARGO_DENY_ROOT := target/tools/cargo-deny-$(CARGO_DENY_VERSION)
CARGO_DENY := $(CARGO_DENY_ROOT)/bin/cargo-deny

.PHONY: licences
licences: $(CARGO_DENY) ## Licences, banned crates and sources of the tree, by the rules of deny.toml
	@# The check reads the manifests of all crates for this system, tests' included.
	cargo fetch --quiet --locked --target x86_64-unknown-linux-gnu
	$(CARGO_DENY) --locked --offline check licenses bans sources

$(CARGO_DENY):
	cargo install --locked --root $(CARGO_DENY_ROOT) cargo-deny@$(CARGO_DENY_VERSION)

.PHONY: histories
histories: $(VENVS)/cassandra/.installed ## Random writes and reads compared with a naive model, with kills (200 of them; SEEDS=n for another number)
	cargo build --locked -p annulus
	SEEDS=$${SEEDS:-200} $(VENVS)/cassandra/bin/python -m pytest -q tests/histories

.PHONY: filters-test
filters-test: $(VENVS)/cassandra/.installed ## Searches with filters during random writes (20 seeds; SEEDS=n FIRST_SEED=m for others)
	cargo build --locked -p annulus
	SEEDS=$${SEEDS:-20} $(VENVS)/cassandra/bin/python -m pytest -q tests/filters/test_random.py

# The same selection as test-rust; 100 seeds are part of that.
.PHONY: simulate
simulate: ## `serve` in one thread under a seed, with crashes, faults and clock steps: make simulate SEEDS=1000 FIRST_SEED=1
	SEEDS=$${SEEDS:-300} FIRST_SEED=$${FIRST_SEED:-1} cargo test --workspace --locked --test simulation table_log_and_index -- --nocapture

SECONDS_EACH ?= 60
.PHONY: fuzz
fuzz: ## Each fuzz target for a minute: make fuzz SECONDS_EACH=600 TARGETS="frames rows" (needs a nightly toolchain)
	fuzz/run $(SECONDS_EACH) $(TARGETS)

$(VENVS)/%/.installed: tests/drivers/requirements-%.txt
	$(PYTHON) -m venv $(VENVS)/$*
	$(VENVS)/$*/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# First of all, so that it doesn't turn out to be missing at the end.
CASSANDRA_LIB := target/cassandra-lib
.PHONY: cassandra
cassandra:
	@CASSANDRA_LIB=$(CASSANDRA_LIB) tests/cassandra/cassandra-cluster jars $(CASSANDRA_LIB) || \
		{ echo "make: or leave out the tests that need a real Cassandra: make test WITHOUT_CASSANDRA=1" >&2; exit 1; }

# `make cluster-test` in short: one node of Cassandra, one gateway, two stores and some of the texts.
.PHONY: test-deployment
test-deployment: cassandra clients $(VENVS)/cassandra/.installed test-programs
	CLIENTS="$(CLIENTS)" $(VENVS)/cassandra/bin/python -m pytest -q tests/deployment

.PHONY: record-compat
record-compat: $(VENVS)/cassandra/.installed ## Record again what a real Cassandra answers (needs Java 17 and Maven)
	$(VENVS)/cassandra/bin/python tests/compat/record.py $(AREAS)

.PHONY: differential
differential: cassandra $(VENVS)/cassandra/.installed ## 100,000 random statements compared with a real Cassandra (STATEMENTS=n FIRST_SEED=m for others; needs Java 17 and Maven)
	@# The selection of test-rust, so that nothing is built with other features.
	cargo test --workspace --locked --no-run --quiet
	$(VENVS)/cassandra/bin/python tests/differential/differential.py --statements $${STATEMENTS:-100000} --first-seed $${FIRST_SEED:-1}

.PHONY: record-differential
record-differential: cassandra $(VENVS)/cassandra/.installed ## Record again what a real Cassandra answers to random statements
	$(VENVS)/cassandra/bin/python tests/differential/record_stories.py

NODES ?= 3
# Of several nodes one may not yet know of a change of the schema, and answers otherwise than another; and the suites change
# it many hundred times, which on three nodes of one machine takes most of an hour.
ON_ONE_NODE := tests/cluster/test_same_answers.py tests/cluster/test_driver_suites.py
ROWS ?= $(if $(FULL),50000,10000)
.PHONY: cluster-test
cluster-test: cassandra clients $(DRIVERS:%=$(VENVS)/%/.installed) ## Three nodes of Cassandra, gateways and stores that die, 10,000 texts (FULL=1: 50,000; needs Java 17 and Maven)
	@# The binary, and the suite of the Rust driver, which tests/cluster runs.
	cargo test --workspace --locked --no-run --quiet
	CLIENTS="$(CLIENTS)" NODES=$(NODES) ROWS=$(ROWS) $(VENVS)/cassandra/bin/python -m pytest -q tests/deployment
	NODES=$(NODES) $(VENVS)/cassandra/bin/python -m pytest -q tests/cluster $(ON_ONE_NODE:%=--ignore=%)
	NODES=1 $(VENVS)/cassandra/bin/python -m pytest -q $(ON_ONE_NODE)

.PHONY: crash-test
crash-test: ## 200 kill -9 under load, 200 under conditional writes, 300 while indexes are saved, 100 while texts are merged (about 45 minutes; ROUNDS=n, KILLS=n, TEXT_KILLS=n for other numbers)
	ANNULUS_CRASH_ROUNDS=$${ROUNDS:-200} ANNULUS_SNAPSHOT_KILLS=$${KILLS:-300} ANNULUS_TEXT_KILLS=$${TEXT_KILLS:-100} cargo test --release --locked -p annulus --test end_to_end -- crash linear --nocapture

.PHONY: memory-test
memory-test: ## 1 GiB to 30 tables under a limit of 128 MiB, each search compared with all rows (MIB=n for another size)
	ANNULUS_MEMORY_MIB=$${MIB:-1024} cargo test --release --locked -p annulus --test end_to_end -- memory_runs_out --nocapture --test-threads=1

.PHONY: upgrade-fixture
upgrade-fixture: ## The data directory of this version that later ones must read: once, before it is released
	cargo test --locked -p annulus --test end_to_end upgrades::making -- --ignored

# The application of films by sentences (apps/films), with the model of apps/embedder.
FILMS := PYTHONPATH=$(CURDIR)/apps/films:$(CURDIR)/apps/embedder FILMS_PORT=$(PORT) $(CURDIR)/$(VENVS)/films/bin/python -m
.PHONY: films
films: $(VENVS)/films/.installed ## Find films by a sentence: make films QUERY="..."
	@$(FILMS) annulus_films find $(if $(QUERY),"$(QUERY)")

PAGE_PORT ?= 8501
.PHONY: films-page
films-page: $(VENVS)/films/.installed ## The same as a page in the browser: http://127.0.0.1:8501 (PAGE_PORT=n for another)
	@$(FILMS) annulus_films migrate
	@cd apps/films && $(FILMS) streamlit run annulus_films/app.py --server.port $(PAGE_PORT)

.PHONY: films-evaluate
films-evaluate: $(VENVS)/films/.installed ## nDCG@5 of 50 judged queries about films, by vectors and by words as well
	@$(FILMS) annulus_films evaluate

$(VENVS)/films/.installed: apps/films/requirements.txt
	@echo "Installing the driver, the page and the model that embeds sentences into $(VENVS)/films: about two minutes, once." >&2
	$(PYTHON) -m venv $(VENVS)/films
	$(VENVS)/films/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# Retrieval of articles from five stores (apps/rag_bench), with the model of apps/embedder. RAG_STORE names another than Annulus.
RAG := PYTHONPATH=$(CURDIR)/apps/rag_bench:$(CURDIR)/apps/embedder RAG_PORT=$(PORT) $(CURDIR)/$(VENVS)/rag-bench/bin/python -m
.PHONY: rag-load
rag-load: $(VENVS)/rag-bench/.installed ## Load 10,000 articles into a store for apps/rag_bench (RAG_STORE=qdrant for another than Annulus; ARTICLES=1000 for fewer)
	@$(RAG) annulus_rag_bench load $(if $(ARTICLES),--articles $(ARTICLES))

.PHONY: rag-evaluate
rag-evaluate: $(VENVS)/rag-bench/.installed ## nDCG@5 of 67 judged questions about the articles, by vectors and by words as well
	@$(RAG) annulus_rag_bench evaluate

.PHONY: rag
rag: $(VENVS)/rag-bench/.installed ## Answer a question from the articles, with citations: make rag ASK="..."
	@$(RAG) annulus_rag_bench load
	@$(RAG) annulus_rag_bench ask $(ARGS) "$(ASK)"

RAG_PAGE_PORT ?= 8502
.PHONY: rag-page
rag-page: $(VENVS)/rag-bench/.installed ## The same as a page in the browser: http://127.0.0.1:8502 (RAG_PAGE_PORT=n for another)
	@$(RAG) annulus_rag_bench load
	@$(RAG) annulus_rag_bench page --port $(RAG_PAGE_PORT)

RAG_SERVICE_PORT ?= 8091
.PHONY: rag-service
rag-service: $(VENVS)/rag-bench/.installed ## The same as a service, with metrics: http://127.0.0.1:8091 (RAG_SERVICE_PORT=n for another)
	@$(RAG) annulus_rag_bench load
	@$(RAG) annulus_rag_bench serve --port $(RAG_SERVICE_PORT)

# The stores to measure, such as STORES="annulus pgvector". Without Java 17 and Maven: WITHOUT_CASSANDRA=1.
STORES ?= annulus $(if $(WITHOUT_CASSANDRA),,cassandra) clickhouse pgvector qdrant
.PHONY: bench-rag
bench-rag: $(if $(filter cassandra,$(STORES)),cassandra) $(VENVS)/rag-bench/.installed ## Retrieval compared with Cassandra, ClickHouse, pgvector and Qdrant: target/rag_bench/report.md (half an hour; ARTICLES=1000 for a quick look, STORES="annulus qdrant" for some)
	cargo build --release --locked -p annulus
	$(RAG) annulus_rag_bench bench --stores $(STORES) $(if $(ARTICLES),--articles $(ARTICLES))

$(VENVS)/rag-bench/.installed: apps/rag_bench/requirements.txt
	@echo "Installing five stores, their clients and the model that embeds texts into $(VENVS)/rag-bench: some minutes, once." >&2
	$(PYTHON) -m venv $(VENVS)/rag-bench
	$(VENVS)/rag-bench/bin/pip install --no-deps --quiet --disable-pip-version-check -r $<
	touch $@

# The rivals are built apart from the product, never with it.
BENCH ?= quick
.PHONY: bench-ann
bench-ann: ## The index engine compared with usearch and diskann: make bench-ann BENCH=full for all of it
	cd benchmarks/ann && cargo build --release --locked --target-dir ../../target/bench-ann-build
	cd benchmarks/ann/diskann && cargo build --release --locked --target-dir ../../../target/bench-ann-build/diskann
	target/bench-ann-build/release/bench-ann compare $(BENCH)

# Set: arguments of `bench-ann recall`, such as RECALL="--set faces --ours-only".
RECALL ?=
RECALL_VENV := target/recall-venv
.PHONY: bench-recall
bench-recall: $(RECALL_VENV)/.installed ## Recall on data of many kinds, compared with hnswlib and usearch: target/bench-recall/report.md (half an hour)
	cd benchmarks/ann && cargo build --release --locked --target-dir ../../target/bench-ann-build
	target/bench-ann-build/release/bench-ann recall $(RECALL)

$(RECALL_VENV)/.installed: benchmarks/ann/peers/requirements-recall.txt
	$(PYTHON) -m venv $(RECALL_VENV)
	$(RECALL_VENV)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

.PHONY: bench-text
bench-text: ## Full-text searches compared with Lucene, FTS5 and zvec (MADE=100000 ROUNDS=3: ten minutes), hybrid searches with their parts, and what they find (needs Java 17 and Maven)
	benchmarks/text/run
	benchmarks/text/hybrid
	benchmarks/text/unused
	benchmarks/quality/run

.PHONY: bench
bench: ## A short form of every measurement, and one report: target/bench/short.html (15 minutes)
	cargo build --release --locked -p annulus -p annulus-bench
	benchmarks/short

.PHONY: bench-backup
bench-backup: $(VENVS)/cassandra/.installed ## What a backup costs point reads, and its rate next to cp of the same files (MIB=256 ROUNDS=3 SCALE=0.3 for a quick look)
	benchmarks/backup/run

.PHONY: bench-cql
bench-cql: $(VENVS)/cassandra/.installed ## Reads and writes compared with a real Cassandra (needs Java 17 and Maven); scans and pages of tables of three sizes
	benchmarks/cql/run
	$(VENVS)/cassandra/bin/python benchmarks/cql/table_size.py
