KUBECTL ?= kubectl
BUILD_FLAGS ?=
# The image of the operator, such as registry.example/beskar7:v0.1.0
IMG ?=
# Which manifests to deploy: config/default, or config/namespaced for one namespace
CONFIG ?= config/default
# A static binary to put into the image; without it, the image is compiled in a container
BINARY ?=
# What `beskar7 version` tells; not for tests, which it would compile anew after each commit
build docker-build release: export BESKAR7_COMMIT ?= $(shell git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup build test soak lint fmt manifests docs install uninstall docker-build docker-build-assets docker-push deploy undeploy release run standalone demo bench bench-api bench-machines bench-metal3 bench-servers bench-iso

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Build or install the parts that tests run against (once, about a quarter of an hour)
	@hack/setup all

build: ## Build the release binary, target/release/beskar7
	cargo build --release -p beskar7 $(BUILD_FLAGS)

test: ## Run every check and every test
	@hack/test

soak: ## Run random histories and property tests with new seeds, and both releases of Cluster API (an hour)
	@hack/soak

lint: ## Check format and lints
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

fmt: ## Format the code
	cargo fmt --all

manifests: ## Generate the CRDs in config/crd
	cargo run --quiet -p beskar7-api --example manifests config/crd

docs: ## Rewrite the generated pages in docs/reference: fields of all kinds, and flags.md
	BESKAR7_BLESS=1 cargo test --quiet -p beskar7 --test it reference::

install: ## Install the CRDs into the current cluster
	$(KUBECTL) apply --server-side -k config/crd

uninstall: ## Remove the CRDs, and with them all resources, from the current cluster; refused while hosts are in use
	@KUBECTL="$(KUBECTL)" hack/refuse-if-in-use uninstall
	$(KUBECTL) delete --ignore-not-found -k config/crd

docker-build: ## Build the image IMG with docker, podman or buildah
	@hack/image build "$(IMG)" "$(BINARY)"

docker-build-assets: ## Build the image IMG of the boot files that are not ours, for config/boot-assets
	@hack/image build-assets "$(IMG)"

docker-push: ## Push the image IMG to its registry
	@hack/image push "$(IMG)"

deploy: ## Install CRDs, roles and the operator, with the image IMG, into the current cluster
	@manifests=$$(KUBECTL="$(KUBECTL)" hack/render "$(CONFIG)" "$(IMG)") && \
		printf '%s\n' "$$manifests" | $(KUBECTL) apply --server-side -f -

undeploy: ## Remove the operator and its roles, not the CRDs and the namespace; refused while hosts are in use
	@KUBECTL="$(KUBECTL)" hack/refuse-if-in-use undeploy
	$(KUBECTL) delete --ignore-not-found -k config/operator

release: ## Write dist/: static binaries, install.yaml with the image IMG, systemd unit, checksums
	@hack/release dist "$(IMG)"

run: ## Run the operator here, against the current cluster
	cargo run -p beskar7 -- run --leader-elect=false

standalone: ## Run alone with twenty simulated servers, until Ctrl-C
	cargo run -- standalone --simulate 20

demo: ## Walk through the life of a server, on simulated ones
	cargo run -- demo

bench: build ## Print the figures that Beskar7 is measured by (1,000 simulated hosts on a real API server)
	@hack/setup kube
	cargo run --release -p beskar7-bench

bench-api: build ## Compare our API server with kube-apiserver and etcd, in figures (three minutes)
	@hack/setup kube
	cargo run --release -p beskar7-bench -- --api

bench-machines: build ## Print what 300 machines cost that want a server at once (a minute)
	@hack/setup kube
	cargo run --release -p beskar7-bench -- --machines

bench-metal3: build ## Print what 1,000 of Metal3's BareMetalHosts cost (two minutes)
	@hack/setup kube
	cargo run --release -p beskar7-bench -- --kind bare-metal-host

bench-servers: build ## Print what metal-operator's kinds cost, in turns with ours (ten minutes)
	@hack/setup kube
	cargo run --release -p beskar7-bench -- --ironcore

bench-iso: ## Compare ISOs from our boot service with nginx, in figures (five minutes)
	@hack/setup vm nginx
	cargo run --release -p beskar7-bench -- --iso
