# The words a developer types. `make` alone prints them.
.DEFAULT_GOAL := help
.PHONY: help run cluster test quick check bench build race fuzz simulate reliability release lint clean

GO      ?= go
# The version stamp of the binaries. Without git, or outside a checkout, it reads "unknown".
VERSION ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -X main.version=$(VERSION)
# The stamp above replaces Go's own, which fails where git refuses a folder of another owner.
# No path of this machine is in a program, and all that is compiled here is what a release is made of.
# Pebble's other zstd is in C, takes a fifth of a cold build, and compresses nothing here.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -tags=pebblegozstd

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: build ## start a node with a demo catalog and a synthetic market
	bin/clobd serve --demo --data bin/demo

cluster: build ## three voters and a gateway on this machine, with the demo catalog; ^C ends it
	exec scripts/cluster.sh

test: ## the quick tests of every package; needs Go, gcc and make only
	scripts/test.sh short

quick: ## the tests of the packages that differ from the last commit on main
	scripts/quick.sh

check: ## the only gate: lint, tests at full size, race, build, end to end with the npm clients
	scripts/check.sh

bench: build ## bin/bench.html: every level, a rate, lists, the break point; then micro benches
	scripts/bench.sh

build: ## bin/clobd bin/clobench bin/clobsim
	@echo 'building; the first time some 700 packages, of which each is named as it is compiled'
	$(GO) build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

race: ## the concurrent packages under the race detector
	scripts/race.sh

fuzz: ## every fuzz target, FUZZTIME each (default 10s)
	scripts/fuzz.sh

simulate: build ## crashes and random streams from SEED (default: the clock's); signature vectors
	scripts/simulate.sh

reliability: build ## every fault test at full size: hours; writes bin/reliability.json
	scripts/reliability.sh

release: ## bin/release: stripped programs, a .deb, checksums, what is in them and under which licences
	VERSION=$(VERSION) scripts/release.sh

lint: ## gofmt, go vet, staticcheck, the house rules
	scripts/lint.sh

clean: ## remove what was built
	rm -rf bin scripts/*/node_modules scripts/clients/*/node_modules
