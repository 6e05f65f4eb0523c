#!/usr/bin/env bash
# The same five steps three ways, against a demo node that is started here: with the public npm
# client, with curl, and with the programs of this project. scripts/tour has the three to read and
# to copy from.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

folder=$(mktemp -d)
node_pid=

leave() {
	[[ -z $node_pid ]] || kill -KILL "$node_pid" 2>/dev/null || true
	wait
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

# start does what make run does with a warm cache, and waits until the bots ask for something: a
# tour buys from them.
start() {
	rm -rf "$folder/data"
	make --no-print-directory -s build >/dev/null
	bin/clobd serve --demo --data "$folder/data" --listen "127.0.0.1:$public" \
		--admin "127.0.0.1:$admin" --disk-ballast 0 >"$folder/node.log" 2>&1 &
	node_pid=$!
	await_book "$url" "$token" || { tail "$folder/node.log"; return 1; }
}

# walk NAME KEY COMMAND...: a tour must say all five steps.
walk() {
	local name=$1 key=$2
	shift 2
	timeout 180 "$@" "$url" "$token" "0x$(printf %064d "$key")" | tee "$folder/$name"
	[[ $(cut -d' ' -f1 "$folder/$name" | tr -d '\n') == 12345 ]]
}

# Nothing of the tours is left.
tidy() {
	! curl -sf "$url/book?token_id=$token" | grep '"price":"0.02"' ||
		{ echo "a bid is left"; return 1; }
}

# The node stops in order.
stop() {
	local status=0
	kill -TERM "$node_pid"
	wait "$node_pid" || status=$?
	node_pid=
	((status == 0)) || { echo "SIGTERM was answered with exit status $status"; return 1; }
}

[[ -x bin/clobd && -x bin/clobench ]] || step "build" make --no-print-directory build
readonly token=35263113354378275961127750085197586402039788513316889322517161777186976249322
public=$(free_port)
admin=$(free_port)
readonly url=http://127.0.0.1:$public
step "tools" need jq curl openssl node npm
step "npm client" modules scripts/tour
step "demo node" in_time 5000 start stop
step "with the npm client" walk client 101 node scripts/tour/client.mjs
step "with curl" walk curl 102 scripts/tour/curl.sh
step "with clobench and clobd" walk tools 103 scripts/tour/tools.sh
step "nothing is left" tidy
step "stop" stop
