#!/usr/bin/env bash
# The operator's page in a real browser: a node of this checkout with the demo's bots and a load
# beside them, in its log a warning that names what wants to be markup, and a catalog that is taken
# away for a while. What the page shows is compared with the node's metrics. Pictures of the page
# are left in bin/. What is missing of the browser and its driver comes from Debian and npm.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

folder=$(mktemp -d)
pids=()

# leave runs at the end, however it comes.
leave() {
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

# The catalog has one record more than the demo's, which is refused and whose id is in the log then.
start_node() {
	local i
	cp api/catalog/demo.jsonl "$folder/catalog.jsonl"
	printf '%s\n' '{"id": "<img src=x onerror=window.hurt=1>", "title": 7, "markets": 7}' \
		>>"$folder/catalog.jsonl"
	bin/clobd serve --demo --data "$folder/data" --catalog "$folder/catalog.jsonl" --disk-ballast 0 \
		--limits off --admin-host desk.example --listen 127.0.0.1:0 --admin 127.0.0.1:0 \
		>"$folder/said" 2>"$folder/log" &
	pids+=($!)
	for ((i = 0; i < 300; i++)); do
		if grep -q "operator's page" "$folder/said"; then return; fi
		sleep 0.1
	done
	cat "$folder/log"
	return 1
}

# after WORDS: the rest of the line of the node's welcome that begins with them.
after() { sed -n "s/^$1 //p" "$folder/said"; }

start_load() {
	local admin market
	admin=$(after "its operator's page is" | cut -d/ -f3)
	market=$(sed -n '2s/.*"clobTokenIds": "\[\\"\([0-9]*\)\\", \\"\([0-9]*\)\\"\]".*/\1,\2/p' \
		api/catalog/demo.jsonl)
	bin/clobench run --level L3 --workload streams --subscribers 4 --connections 4 \
		--rate 1000 --duration 150s \
		--url "$(after 'clobd is trading at')" --admin "$admin" \
		--token-file "$folder/data/admin.token" --market "$market" >"$folder/load" 2>&1 &
	pids+=($!)
}

look() {
	timeout 240 node scripts/page/page.mjs "$(command -v chromium)" \
		"$(after "its operator's page is")" "$folder/data/admin.token" "$folder/catalog.jsonl" bin &&
		return
	tail -n 20 "$folder/log" "$folder/load"
	return 1
}

step "browser" need chromium node npm
step "driver" modules scripts/page
[[ -x bin/clobd && -x bin/clobench ]] || step "build" make --no-print-directory build
step "node" start_node
step "load" start_load
step "page" look
