#!/usr/bin/env bash
# Micro benches beside the code, then the canonical workload at every level, DURATION each
# (default 5s). Figures from a busy machine are worth nothing: each report prints its conditions.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

step "micro benches" go test -run '^$' -bench . -benchmem -benchtime "${BENCHTIME:-1s}" ./...
step "matchers" bin/clobench matching --rounds "${ROUNDS:-5}"
for level in L0 L1 L2 L3; do
	step "canonical $level" bin/clobench run --workload canonical --level "$level" \
		--duration "${DURATION:-5s}"
done
