#!/usr/bin/env bash
# The console in a real browser: a demo whose first market gets 50 orders a second, and a node with
# the real catalog, where there is one, and a catalog and profiles full of names that want to be
# markup. Pictures of the pages are left in bin/console. What is missing of the browser and its
# driver comes from Debian and npm.
#
#   console.sh                    everything
#   console.sh picture            the picture of the README anew
#   ONLY=paint,… console.sh       these parts, by their names at the end of console.mjs
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly shared=${SHARED:-../shared}
folder=$(mktemp -d)
pids=()

# leave runs at the end, however it comes. A node that was stopped in its tracks goes on first.
leave() {
	((${#pids[@]} == 0)) || kill -CONT "${pids[@]}" 2>/dev/null || true
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

# The console stays small.
sizes() {
	local bytes lines
	bytes=$(cat api/console/static/* | wc -c)
	lines=$(cat api/console/static/* | wc -l)
	echo "$bytes bytes of 153600, $lines lines of 2500"
	((bytes <= 153600 && lines <= 2500))
}

# The node has signatures of public clients for its own tests; where there are more, those count.
signatures() {
	if [[ -d $shared/data/vectors ]]; then
		node scripts/console/vectors.mjs "$shared/data/vectors"
	else
		node scripts/console/vectors.mjs cmd/clobsim/vectors/testdata
	fi
}

# start NAME ARGUMENT…: starts a node and waits until it is ready.
start() {
	local i name=$1
	shift
	bin/clobd serve --data "$folder/$name" --disk-ballast 0 --limits off --listen 127.0.0.1:0 \
		--admin 127.0.0.1:0 "$@" >"$folder/$name.said" 2>"$folder/$name.log" &
	pids+=($!)
	for ((i = 0; i < 600; i++)); do
		if grep -q '"msg":"ready"' "$folder/$name.log"; then return; fi
		sleep 0.1
	done
	cat "$folder/$name.log"
	return 1
}

# url NAME: where a node listens.
url() { sed -n 's/.*"msg":"ready","url":"\([^"]*\)".*/\1/p' "$folder/$1.log"; }

start_nodes() {
	start demo --demo --catalog api/catalog/demo.jsonl
	node scripts/console/hostile.mjs "$folder"
	if [[ -f $shared/data/catalog/gamma_events_full.jsonl.gz ]]; then
		cp "$shared/data/catalog/gamma_events_full.jsonl.gz" "$folder/catalog/"
	else
		echo "SKIPPED: no real catalog in $shared/data; the demo's stands for it"
		cp api/catalog/demo.jsonl "$folder/catalog/"
	fi
	start real --faucet 1000 --profiles "$folder/profiles.json" --catalog "$folder/catalog"
}

# What finds condition and tokens of the demo's second market, whose event has no other.
readonly tokens='\[\\"\([0-9]*\)\\", \\"\([0-9]*\)\\"\]'
readonly line='2s/.*"conditionId": "\([^"]*\)".*"clobTokenIds": "'$tokens'".*'

look() {
	local admin both
	admin=$(sed -n "s/^its operator's page is //p" "$folder/demo.said" | cut -d/ -f3)
	both=$(sed -n "$line/\2,\3/p" api/catalog/demo.jsonl)
	mkdir -p bin/console
	timeout 480 node scripts/console/console.mjs "$(command -v chromium)" bin/console "$(url demo)" \
		"${pids[0]}" "$(sed -n "$line/\1/p" api/catalog/demo.jsonl)" "$(url real)" \
		bin/clobench run --level L3 --workload canonical --connections 4 --rate 50 --duration 200s \
		--url "$(url demo)" --admin "$admin" --token-file "$folder/demo/admin.token" \
		--market "$both" && return
	tail -n 20 "$folder"/*.log
	return 1
}

copy() {
	cp bin/console/picture.png api/console/picture.png
	echo "look at api/console/picture.png before it is committed"
}

# Whoever makes the picture anew is not told that the one before is another.
case ${1:-all} in
all) ;;
picture) export ONLY=picture ANEW=yes ;;
*) echo "usage: scripts/console.sh [picture]" >&2; exit 2 ;;
esac
step "browser" need chromium node npm
step "driver" modules scripts/console
[[ -x bin/clobd && -x bin/clobench ]] || step "build" make --no-print-directory build
step "sizes" sizes
step "signatures" signatures
step "nodes" start_nodes
step "console" look
[[ -z ${ANEW:-} ]] || step "picture" copy
