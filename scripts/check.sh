#!/usr/bin/env bash
# The gate: everything that must hold before a change lands, the quick refusals first. Two quick
# cores and empty caches need less than 12 minutes for it, two slow ones 20.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

# Recovery has two bodies: libsecp256k1 through cgo, and pure Go without.
without_cgo() {
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go test ./ingress/auth/...
}

# A signature's terms are added up in Go or in lanes: the lanes with each bound of each number
# checked, in plain C and by the instructions, and everything on a processor that has none.
lanes() {
	go test -vet=off -tags lanescheck,lanesplain ./ingress/auth/lanes ./ingress/auth/curve
	if grep -q avx512ifma /proc/cpuinfo; then
		go test -vet=off -tags lanescheck ./ingress/auth/lanes ./ingress/auth/curve
	else
		echo "SKIPPED: the lanes by instructions: this processor has no AVX-512 IFMA"
	fi
	GODEBUG=cpu.avx512ifma=off go test -vet=off -short ./ingress/auth/...
}

# The engine adds everything up anew after each Command.
audit() { go test -vet=off -tags audit,pebblegozstd -short ./engine ./cmd/clobsim/simulator; }

node_seeds() { bin/clobsim run --seed "$(date +%s)" --seeds 50 --for 30s; }
cluster_seeds() { bin/clobsim cluster --seed "$(date +%s)" --seeds 200; }

# A program with one version of the rules more: it computes under the old version what was recorded
# long ago, replays over the change, and plays members whose programs are replaced meanwhile. The
# node's tests of upgrades build it themselves.
upgrades() {
	local tags=nextrules,pebblegozstd
	go test -vet=off -tags "$tags" -run 'Raise|Version|TestLaterFrame|TestHistories' ./engine \
		./engine/sequencer ./cmd/clobd/role
	go test -vet=off -tags "$tags" -run 'TestCluster$|TestEarlyRaise' ./cmd/clobsim/simulator
}

# What waits, as for an alert, runs beside what computes.
race() { scripts/race.sh; }
waiting() {
	scripts/ops.sh
	scripts/page.sh
}

# Flaws that are known of Go and of the modules, where the code reaches them. One line says so where
# the database of flaws cannot be reached.
known_flaws() {
	local said
	said=$(go tool govulncheck ./... 2>&1) && return
	if [[ $said == *"fetching vulnerabilities"* ]]; then
		echo "SKIPPED: the database of known flaws cannot be reached"
		return
	fi
	printf '%s\n' "$said"
	return 1
}

step "build" make --no-print-directory build
step "modules unchanged" go mod verify
step "lint" scripts/lint.sh
step "known flaws" known_flaws
step "without cgo" without_cgo
step "lanes" lanes
make --no-print-directory test
scripts/test.sh rest # after "make test"
step "simulators, audit, upgrades" beside node_seeds cluster_seeds audit upgrades
step "race; dashboards, alerts, operator's page" beside race waiting
step "console" scripts/console.sh
step "npm clients" scripts/clients.sh
step "tour for bots" scripts/tour.sh
step "package" scripts/package.sh
printf 'make check: %d s\n' "$SECONDS"
