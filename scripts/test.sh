#!/usr/bin/env bash
# The tests of the whole repository. With "short" a test that repeats one thing many times does so a
# few times only, and what takes many seconds or a real catalog is left out: every test asks
# testing.Short() or setting.Full for that. With "full" every package with such a test runs all its
# tests at full size, and each bench runs once, so that it cannot rot. The other packages have one
# size, which "short" has. "rest" is "full" for who has just seen "short" pass: it leaves out each
# test that does the same in both, as far as scripts/onesize can tell. go vet is a part of "make
# lint".
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

# Tests of a node wait more than they compute: twice as many packages as processors run at a time,
# and in each package as many tests. Packages that take longest begin, so that none of them is left
# alone at the end.
tests() {
	local most=$((2 * $(nproc)))
	go test -vet=off -p "$most" -parallel "$most" -timeout 20m "$@"
}

readonly ours=(api bench cmd engine ingress journal scripts)

# sized FOLDER...: the packages with a test that asks for its size.
sized() {
	grep -rlE --include='*_test.go' 'testing\.Short\(\)|setting\.(Full|Size|Number|Seed)' "$@" |
		xargs -n 1 dirname | sort -u | sed 's,^,./,'
}

benches() {
	local files
	files=$(grep -rl --include='*_test.go' '^func Benchmark' api bench cmd engine ingress journal)
	mkdir -p bin
	# shellcheck disable=SC2046 # folders without blanks
	go test -vet=off -short -run '^$' -bench . -benchtime 1x -timeout 20m \
		$(dirname $files | sort -u | sed 's,^,./,') >bin/bench.log 2>&1 ||
		{ cat bin/bench.log; return 1; }
}

# full NAMES: all tests of the packages with one that asks, but for those whose names match.
full() {
	# shellcheck disable=SC2046 # folders without blanks
	step "tests, full size" tests -skip "$1" ./cmd/clobd ./cmd/clobench ./journal ./engine \
		$(sized "${ours[@]}")
	step "benches, once each" benches
}

case ${1:-full} in
short) step "tests" tests -short ./cmd/clobd ./cmd/clobench ./ingress ./journal ./engine ./... ;;
full) full '^$' ;;
rest)
	# shellcheck disable=SC2046
	names=$(go run ./scripts/onesize $(sized "${ours[@]}"))
	full "$names"
	;;
*) echo "usage: scripts/test.sh [short|full|rest]" >&2; exit 2 ;;
esac
