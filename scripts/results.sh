#!/usr/bin/env bash
# Makes bench/results/ anew: one report of each kind, as JSON and as a page. It is for a quiet
# machine; what it writes is committed only if the page of each report says VALID.
# DURATION (default 10s) is that of a run; ONLY (default all) names one kind.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

out=bench/results
duration=${DURATION:-10s}
[[ $duration =~ ^[0-9]+s$ ]] || { echo "DURATION=$duration: want seconds, as 30s" >&2; exit 2; }
ms=$((1000 * ${duration%s}))

# kind NAME COMMAND...: one kind of report.
kind() {
	[[ ${ONLY:-$1} == "$1" ]] || return 0
	local name=$1
	shift
	step "$name" bin/clobench "$@" --json "$out/$name.json" --html "$out/$name.html"
}

# agree fails where another tool says something else. The report is one all the same, and the ledger
# says why.
agree() { bin/clobench agree --json "$out/agree.json" || echo "the tools do not agree"; }

mkdir -p "$out"
step "build" make --no-print-directory build
kind run run --workload canonical --level L3 --duration "$duration" --rounds 8
kind ramp ramp orders --start 1000 --factor 1.5 --steps 10 --duration "$((ms / 5))ms"
kind lists ramp lists --start 6000 --factor 1.5 --steps 9 --duration "$((ms / 5))ms"
kind compare compare orders --rounds 10 --duration "$((ms / 10))ms"
kind flood flood --rounds 6 --duration "$((ms / 5))ms"
kind soak soak --rate 1000 --duration "$((30 * ms))ms"
kind streams streams --rounds 3 --duration "$((ms / 2))ms"
if [[ ${ONLY:-agree} == agree ]]; then # it has no page
	step "agree" agree
fi
