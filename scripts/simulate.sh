#!/usr/bin/env bash
# What seeds decide: random command streams through the engine (CHECKS of them, default 2000),
# crashes of the journal and kills of the real node; and signature vectors if they are at hand. A
# failure prints its seed.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

random_streams() {
	local files folder
	files=$(grep -rl --include='*_test.go' '"pgregory.net/rapid"' api bench engine ingress journal)
	for folder in $(dirname $files | sort -u); do
		go test "./$folder" -count=1 -timeout 30m -rapid.checks "${CHECKS:-2000}"
	done
}

vectors() {
	local files
	files=$(find ../shared/data/vectors.json ../shared/data/vectors -name '*.json' 2>/dev/null | sort)
	[[ -n $files ]] || { echo "SKIPPED: no vectors in ../shared/data"; return; }
	bin/clobsim vectors $files
}

step "signature vectors" vectors
step "random command streams" random_streams
step "kills of the node" go test ./cmd/clobd -count=1 -run 'Kill|Stop' -v
