# Respgate: everything a newcomer needs. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

# One profile, and the whole workspace at once: RocksDB's C++ takes some twenty minutes to compile, and cargo would
# compile it again for another profile or another choice of features.
CARGO_FLAGS := --release --workspace --locked
BINARY = $${CARGO_TARGET_DIR:-target}/release/respgate

.PHONY: help run build test test-go test-gateways test-faults test-tikv lint deny clients bench bench-quick bench-tikv clean

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

run: build ## Build a release and serve on 127.0.0.1:6379, data in ./data.
	@echo "respgate: serving on 127.0.0.1:6379, data in ./data (stop with Ctrl-C)"
	exec $(BINARY)

build: ## Install what is missing and build a release.
	@.ci/setup build
	cargo build $(CARGO_FLAGS)

test: ## Install what is missing and run every test.
	@.ci/setup test
	cargo build $(CARGO_FLAGS)
	cargo test $(CARGO_FLAGS) --quiet
	tests/clients/run.sh "$(BINARY)"
	$(MAKE) --no-print-directory test-go

test-go: ## Test the programs that other tests use: a TiKV cluster, and a checker of linearizability.
	@if ! command -v go >/dev/null; then
		echo "respgate: Go is not installed: skipping tests/tikv-cluster and tests/linearizability"
		[[ $${CI:-} != true ]]
		exit
	fi
	for module in tests/tikv-cluster tests/linearizability; do
		cd "$(CURDIR)/$$module"
		[[ -z $$(gofmt -l . | tee /dev/stderr) ]]
		go vet ./...
		go test ./...
	done

test-gateways: ## Run the black-box tests on a TiKV cluster, each command going to one of three gateways at random.
	@.ci/setup test
	export RESPGATE_TEST_BACKEND=tikv RESPGATE_TEST_GATEWAYS=3 RESPGATE_ORACLE_SEQUENCES=$${RESPGATE_ORACLE_SEQUENCES:-20}
	cargo test $(CARGO_FLAGS) --test blackbox

test-faults: ## Look for lost or doubled commands of three gateways while everything fails (RESPGATE_FAULTS_SECONDS, 300).
	@.ci/setup test
	export RESPGATE_FAULTS_SECONDS=$${RESPGATE_FAULTS_SECONDS:-300}
	cargo test $(CARGO_FLAGS) --test blackbox -- --nocapture linearizability

test-tikv: ## Run the conformance suite on a real TiKV cluster: TEST_TIKV_PD=host:port make test-tikv
	@[[ -n $${TEST_TIKV_PD:-} ]] || { echo "respgate: say where the cluster is: TEST_TIKV_PD=host:port make test-tikv"; exit 1; }
	cargo test --release --locked -p respgate-backend-tikv conforms

lint: ## Check the format and the lints.
	@.ci/setup build
	cargo fmt --all --check
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings

deny: ## Check licences, sources and known flaws of dependencies: CHECKS="bans licenses sources" make deny without network
	@command -v cargo-deny >/dev/null || { echo "respgate: missing: cargo-deny; cargo install --locked cargo-deny"; exit 1; }
	cargo deny --locked check $${CHECKS:-}

bench: build ## Compare with Redis, and with the store alone (about half an hour).
	@.ci/setup test
	$${CARGO_TARGET_DIR:-target}/release/respgate-bench --respgate $(BINARY)

bench-quick: build ## The same with fewer turns and requests (a few minutes).
	@.ci/setup test
	$${CARGO_TARGET_DIR:-target}/release/respgate-bench --respgate $(BINARY) ratio --turns 1 --requests 100000

bench-tikv: build ## Compare a gateway on TiKV with the bare client: on the test cluster, or TEST_TIKV_PD=host:port make bench-tikv
	@.ci/setup test
	$${CARGO_TARGET_DIR:-target}/release/respgate-bench --respgate $(BINARY) tikv
