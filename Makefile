# Everything a developer runs, by name. `make` alone lists it.

GO          ?= go
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
SYNCER       = bin/syncer

.DEFAULT_GOAL := help
.PHONY: help build test lint bench demo conformance

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary, bin/syncer
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -ldflags='-s -w' -o $(SYNCER) ./cmd/syncer

test: lint ## Check the code, then run every test under the race detector
	$(GO) test -race -timeout 20m ./...

lint: ## gofmt, vet, staticcheck, and the direction of imports
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test ./test/architecture

bench: build ## Measure the sidecar and the server, whole processes, against their figures
	$(GO) run ./bench -syncer $(SYNCER)
	$(GO) run ./bench/server -syncer $(SYNCER)

demo: ## See a value reach its file: a server, five groups, 20 seconds
	$(GO) run ./cmd/syncer demo

conformance: ## Check a Conjur server against what the genuine one was seen to do (SYNCER_CONJUR_URL=…)
	$(GO) test -count=1 -v ./pkg/conjurd/conformance
