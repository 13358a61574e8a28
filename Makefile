# Everything a developer runs, by name. `make` alone lists it.

GO          ?= go
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ERRORLINT    = github.com/polyfloyd/go-errorlint@v1.8.0
SYNCER       = bin/syncer

# Every command below uses this version of Go, whatever the environment says.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)

.DEFAULT_GOAL := help
.PHONY: help build format test test-all test-node bench-node test-page test-clients test-gitops test-alerts test-upgrade test-versions kube node image release lint scan bench soak demo play conformance

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary, bin/syncer
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -ldflags='-s -w' -o $(SYNCER) ./cmd/syncer

test: ## Run the essential tests: every package, a real API server, a real PostgreSQL
	$(GO) run ./test/run

test-all: ## Run everything else: lint, the race detector, long histories, soak, samples, an upgrade, alerts, the page, Pods
	$(GO) run ./test/run -all

test-versions: ## Run the tests of the API server with several versions of Kubernetes, and of the kubelet with the newer ones
	$(GO) run ./test/run -versions

NODE_TEST = PATH="$$PATH:/usr/sbin:/sbin" SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" SYNCER_NODE="$$(GO="$(GO)" test/kube/build.sh node)" $(GO) test -race -count=1 -tags node -parallel 6 -timeout 30m

test-node: ## Run Syncer in real Pods, on a kubelet of its own (Linux, root; Debian: installs the packages)
	test/node/install.sh
	$(NODE_TEST) ./test/node $(value ARGS)

bench-node: ## Measure how soon applications start and restart in real Pods, and what an idle sidecar costs
	test/node/install.sh
	$(NODE_TEST) -run '^$$' -bench Start -benchtime 12x ./test/node
	$(NODE_TEST) -run '^$$' -bench RestartInPlace -benchtime 10x ./test/node
	$(NODE_TEST) -run '^$$' -bench Idle -benchtime 1x ./test/node

PROMETHEUS_HOME = $(HOME)/.cache/syncer-prometheus
PROMETHEUS      = $(PROMETHEUS_HOME)/usr/bin

# axe-core looks for what keeps people from using the page.
AXE = $(HOME)/.cache/syncer-axe/node_modules/axe-core/axe.min.js

test-upgrade: kube ## Upgrade from the previous release to this one and back (needs its commit, and so the whole history)
	SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" $(GO) test -count=1 -v -timeout 30m -race -tags upgrade -run TestUpgradeAndRollback ./test/cluster

test-alerts: kube ## Cause each alert, seen by a real Prometheus (Debian: the package is unpacked, not installed)
	@[ -x "$(PROMETHEUS)/prometheus" ] || { mkdir -p "$(PROMETHEUS_HOME)" && cd "$(PROMETHEUS_HOME)" && { apt-get download -qq prometheus || { apt-get -qq update; apt-get download -qq prometheus; }; } && dpkg -x prometheus_*.deb . && rm prometheus_*.deb; }
	SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" SYNCER_PROMETHEUS="$(PROMETHEUS)" $(GO) test -count=1 -v -tags prometheus ./test/alerts $(value ARGS)

test-clients: ## Run the official Go client's own tests against conjurd, and the kubelet's parser on files (needs the Go module proxy)
	cd test/clients && $(GO) vet ./... && $(GO) test -count=1 -v ./... $(value ARGS)

test-gitops: kube ## Deploy Secrets with kubectl, Helm 3 and 4, Flux and Argo CD beside Syncer (needs the Go module proxy)
	cd $(APART) && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && SYNCER_KUBE="$$(GO="$(GO)" ../kube/build.sh)" $(GO) test -count=1 ./... $(value ARGS)

test-page: ## Drive the status page in a real browser (Debian: installs chromium and npm); ARGS=-update writes its pictures
	test/page/install.sh
	@[ -f '$(AXE)' ] || npm install --loglevel error --no-audit --no-fund --prefix '$(HOME)/.cache/syncer-axe' axe-core@4.14.1
	cd test/page && $(GO) vet ./... && SYNCER_AXE='$(AXE)' $(GO) test -count=1 -v ./... $(value ARGS)

node: ## Build what makes Pods run in tests, once, and print its path
	@GO="$(GO)" test/kube/build.sh node

kube: ## Build the control plane of the tests, once, and print its path
	@GO="$(GO)" test/kube/build.sh

# The image holds the static binary, built for each platform, and Mozilla's authorities.
# Its time is that of the commit.
APP_VERSION := $(shell sed -n 's/^appVersion: //p' deploy/chart/syncer/Chart.yaml)
IMAGE       ?= secretsync/syncer:$(APP_VERSION)
IMAGE_TAR   ?= bin/syncer-image.tar

image: ## Write the container image for amd64 and arm64, bin/syncer-image.tar
	@set -e; for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -buildvcs=auto -trimpath -ldflags='-s -w' -o bin/linux-$$arch/syncer ./cmd/syncer; \
	done
	@$(GO) -C deploy/tools run ./image -out '$(abspath $(IMAGE_TAR))' -name '$(IMAGE)' -version '$(APP_VERSION)' -license '$(CURDIR)/LICENSE' \
		linux/amd64='$(CURDIR)/bin/linux-amd64/syncer' linux/arm64='$(CURDIR)/bin/linux-arm64/syncer'

# Without KEY, the release has no signatures: it serves to compare, not to publish.
release: ## Make all of a release, in dist (VERSION=…, that of the chart; DIST=…; KEY=…, the private key)
	$(GO) -C deploy/tools run ./release -repo '$(CURDIR)' -version "$$VERSION" -out "$${DIST:-dist}" -key "$$KEY"

format: ## Fail if gofmt would change a file
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; fi

# Of test/kube only the code of its own: the rest is Kubernetes as it was released, which
# serves nobody but the tests. APART is checked by the target that tests it, because the
# tools that it imports take longer to compile than everything else.
CHECKED = . keyset deploy/tools deploy/examples/keysets test/page test/clients test/kube/plane
APART   = test/gitops
TAGS    = -tags=long,node,prometheus,upgrade

# Without -asserts: a switch over the types of an error is how an error's tree is walked.
lint: format scan ## vet, staticcheck, errorlint, known vulnerabilities and the rules of plain English, all modules and build tags
	$(GO) test ./test/prose
	@set -e; for dir in $(CHECKED); do \
		echo "vet, staticcheck and errorlint of $$dir"; cd "$(CURDIR)/$$dir"; \
		$(GO) vet $(TAGS) ./...; $(GO) run $(STATICCHECK) $(TAGS) ./...; \
		GOFLAGS="$$GOFLAGS $(TAGS)" $(GO) run $(ERRORLINT) -asserts=false ./...; \
	done

# The vulnerabilities are files of a Go module, so that only the module proxy is asked. The
# newest version counts, but for VULNDB=golang.org/x/vulndb@VERSION.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0
INDEXDB     = golang.org/x/vulndb/cmd/indexdb@v0.0.0-20261105234957-e22db6528018
VULNDB      = golang.org/x/vulndb@latest

scan: build ## Fail on a known vulnerability that the binary or a module can call, and name it
	@set -e; db=$$(mktemp -d); trap 'rm -rf "$$db"' EXIT; \
	$(GO) -C "$$db" mod download $(VULNDB); \
	$(GO) run $(INDEXDB) -vulns "$$($(GO) -C "$$db" list -m -f '{{.Dir}}' $(VULNDB))/data/osv" -out "$$db"; \
	check() { $(GO) run $(GOVULNCHECK) -db "file://$$db" "$$@"; }; \
	echo "vulnerabilities of $(SYNCER)"; check -mode binary $(SYNCER); \
	for dir in $(CHECKED); do \
		echo "vulnerabilities of $$dir"; check -C "$$dir" -test $(TAGS) ./...; \
	done

bench: build ## Measure the sidecar, the server, a cluster, its tenants and growth, whole processes, against their figures
	$(GO) run ./bench -syncer $(SYNCER)
	$(GO) run ./bench/server -syncer $(SYNCER)
	SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" $(GO) test -tags long -run '^$$' -bench 'Cluster|Scale|Tenants|Growth' -benchtime 1x -timeout 60m ./test/cluster

soak: kube ## One hour of change and failure, in which nothing may grow (SYNCER_SOAK=…, SYNCER_SOAK_SEED=…)
	SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" SYNCER_SOAK="$${SYNCER_SOAK:-1h}" $(GO) test -count=1 -v -tags long -timeout 0 ./test/soak

play: kube ## Run Syncer on an API server until ^C, with a value that changes
	@SYNCER_KUBE="$$(GO="$(GO)" test/kube/build.sh)" $(GO) test -count=1 -v -tags play -run TestPlay -timeout 0 ./test/cluster

demo: ## See a value reach its file: a server, five groups, 20 seconds
	$(GO) run ./cmd/syncer demo

conformance: ## Check a Conjur server against what the genuine one was seen to do (SYNCER_CONJUR_URL=…)
	$(GO) test -count=1 -v ./pkg/conjurd/conformance
