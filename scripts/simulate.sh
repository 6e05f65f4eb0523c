#!/usr/bin/env bash
# What seeds decide. With SEED=N that one run of the simulator, with all that happens in it. Else
# SEEDS runs (default 200) of a node and of a cluster from the clock's seed on, random command
# streams through the engine (CHECKS of them, default 2000), kills of the real node, and signature
# vectors if they are at hand. A failure prints its seed.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

if [[ -n ${SEED:-} ]]; then
	exec bin/clobsim run --seed "$SEED" --trace
fi

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

step "simulator" bin/clobsim run --seed "$(date +%s)" --seeds "${SEEDS:-200}"
step "cluster simulator" bin/clobsim cluster --seed "$(date +%s)" --seeds "${SEEDS:-200}"
step "signature vectors" vectors
step "random command streams" random_streams
step "kills of the node" go test ./cmd/clobd -count=1 -run 'Kill|Stop' -v
