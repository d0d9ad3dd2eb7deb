# Every tool is pinned: in a module of its own below hack/tools, or, for the linter, in the module that
# compiles it. Nothing is installed outside of this directory and of Go's caches.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

TOOLS := hack/tools
CONTROLLER_GEN := go tool -modfile=$(TOOLS)/controller-tools/go.mod controller-gen
KUSTOMIZE := go tool -modfile=$(TOOLS)/kustomize/go.mod kustomize
KUBECTL ?= kubectl

# The linter's name carries what it was built from, so a changed pin builds a new one and nothing else does.
LINT_SOURCES := $(addprefix $(TOOLS)/golangci-lint/,go.mod go.sum main.go)
LINT_ID = $(shell { cat $(LINT_SOURCES); go env GOVERSION; } | cksum | cut -d' ' -f1)
GOLANGCI_LINT = bin/golangci-lint-$(LINT_ID)

# The control plane's binaries are looked up when a recipe needs them, and built the first time.
ASSETS = $$(go run ./cmd/devplane assets)

GO_TEST := go test -race -shuffle=on
# The longest that the tests of one package may take, on a slow machine.
TEST_TIMEOUT ?= 20m
# More flags for go test, for example TEST_FLAGS=-v.
TEST_FLAGS ?=
# How long each fuzz target runs.
FUZZTIME ?= 20s
# What deflake repeats: a regular expression of test names, in the packages PKG.
FOCUS ?= .
PKG ?= ./...

##@ General

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z][a-z-]*:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Development

.PHONY: generate
generate: ## Write the DeepCopy methods of the API types.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt paths=./api/...

.PHONY: manifests
manifests: ## Write the custom resource definitions and the manager's role.
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:artifacts:config=config/rbac

.PHONY: dist
dist: manifests ## Write dist/crds.yaml, the custom resource definitions in one file.
	@mkdir -p dist
	$(KUSTOMIZE) build config/crd >dist/crds.yaml

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go files.
	$(GOLANGCI_LINT) fmt

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters. The first run builds them, which takes some minutes.
	$(GOLANGCI_LINT) run

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run the linters and apply the fixes they suggest.
	$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: generate dist ## Check that generated files and every go.mod are up to date and committed.
	@for dir in . $(TOOLS)/*/; do \
	  echo "go mod tidy -diff in $$dir"; \
	  go -C "$$dir" mod tidy -diff; \
	done
	git diff --exit-code
	@new=$$(git ls-files --others --exclude-standard -- api config dist); \
	if [[ -n "$$new" ]]; then printf 'Generated, but not committed:\n%s\n' "$$new" >&2; exit 1; fi

##@ Tests

.PHONY: test
test: ## Run all tests, with a real API server. The first run downloads or builds it.
	@assets=$(ASSETS); KUBEBUILDER_ASSETS="$$assets" $(GO_TEST) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./...

.PHONY: test-unit
test-unit: ## Run the tests that need no API server.
	@env -u KUBEBUILDER_ASSETS $(GO_TEST) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./api/... ./internal/... ./controllers/...

.PHONY: test-integration
test-integration: ## Run the tests against a real API server only.
	@assets=$(ASSETS); KUBEBUILDER_ASSETS="$$assets" $(GO_TEST) -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./test/...

.PHONY: test-fuzz
test-fuzz: ## Run each fuzz target for FUZZTIME.
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api cmd controllers internal test 2>/dev/null \
	  | sed -E 's|^(.*)/[^/]*:func (.*)$$|\1 \2|' \
	  | while read -r dir name; do \
	      echo "$$name in $$dir"; \
	      go test -run='^$$' -fuzz="^$$name$$" -fuzztime=$(FUZZTIME) "./$$dir"; \
	    done

.PHONY: deflake
deflake: ## Repeat the tests FOCUS of the packages PKG until one fails.
	@assets=$(ASSETS); round=1; \
	while KUBEBUILDER_ASSETS="$$assets" $(GO_TEST) -count=1 -timeout $(TEST_TIMEOUT) -run '$(FOCUS)' $(TEST_FLAGS) $(PKG); do \
	  echo "round $$((round++)) passed"; \
	done; \
	echo "round $$round failed" >&2; exit 1

##@ Build and run

.PHONY: build
build: ## Build the manager as bin/manager.
	CGO_ENABLED=0 go build -trimpath -o bin/manager ./cmd/manager

.PHONY: run
run: ## Run the manager against a local control plane until interrupted.
	@go build -o bin/demo ./cmd/demo && exec bin/demo run

.PHONY: demo
demo: ## Show a work item becoming overdue and its notification arriving.
	@go build -o bin/demo ./cmd/demo && exec bin/demo

.PHONY: devplane
devplane: ## Run a local control plane with the custom resources until interrupted.
	@go run ./cmd/devplane up

##@ Deployment

.PHONY: install
install: ## Install the custom resource definitions in the cluster of the current kubectl context.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply -f -

.PHONY: uninstall
uninstall: ## Remove the custom resource definitions, and with them every object, from that cluster.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

# bin/golangci-lint is the name for people and editors.
bin/golangci-lint-%:
	@echo "Building the linter as $@. This happens once per version and takes some minutes." >&2
	@rm -f bin/golangci-lint bin/golangci-lint-*
	CGO_ENABLED=0 go -C $(TOOLS)/golangci-lint build -trimpath -buildvcs=false -o $(CURDIR)/$@ .
	@ln -s $(@F) bin/golangci-lint
