#!/usr/bin/env bash
# Figures of everything, short by default: the canonical workload at every level, and at a fixed
# rate, lists beside single orders, and the rates at which a node breaks, joined on one page,
# bin/bench.html; then the matchers and the micro benches beside the code. Reports and percentile
# logs are in bin/bench/. Figures from a busy machine are worth nothing: each report has its
# conditions.
#
# DURATION (default 3s) is that of a run; a step of a ramp takes a third of it, a turn of a
# comparison a quarter. RATE (default 2000) is the fixed rate, orders a second. ROUNDS (default 1)
# are those of the matchers, BENCHTIME (default 50ms) is that of a micro bench.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

out=${OUT:-bin/bench}
duration=${DURATION:-3s}
[[ $duration =~ ^[0-9]+s$ ]] || { echo "DURATION=$duration: want seconds, as 30s" >&2; exit 2; }
ms=$((1000 * ${duration%s}))
mkdir -p "$out"
reports=()

failed=()

# report NAME COMMAND...: runs clobench and keeps its report. A run that fails is told at the end,
# so that the page shows its report, if it wrote one, beside the others.
report() {
	local name=$1 file=$out/$1.json
	shift
	rm -f "$file"
	bin/clobench "$@" --json "$file" || failed+=("$name")
	[[ ! -s $file ]] || reports+=("$file")
}

for level in L0 L1 L2 L3; do
	step "canonical $level" report "canonical-$level" run --workload canonical --level "$level" \
		--duration "$duration" --rounds 5 --hgrm "$out"
done
step "canonical at a rate" report rate run --workload canonical --level L3 --rate "${RATE:-2000}" \
	--duration "$duration" --hgrm "$out"
step "lists" report lists compare batch --rounds 4 --duration "$((ms / 4))ms"
step "break point" report ramp ramp orders --start 1000 --factor 1.5 --steps 10 \
	--duration "$((ms / 3))ms"
step "page" bin/clobench page "${reports[@]}" --title "clobd: figures of this machine" \
	--html "${HTML:-bin/bench.html}"
step "matchers" bin/clobench matching --rounds "${ROUNDS:-1}"
step "micro benches" go test -run '^$' -bench . -benchmem -benchtime "${BENCHTIME:-50ms}" ./...
((${#failed[@]} == 0)) || { echo "failed or INVALID: ${failed[*]}" >&2; exit 1; }
