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

# free_port prints a port below those that the kernel gives to connections.
free_port() {
	local port=$((10000 + RANDOM % 20000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}

# start waits until the bots ask for something: a tour buys from them.
start() {
	bin/clobd serve --demo --data "$folder/data" --listen "127.0.0.1:$public" \
		--admin "127.0.0.1:$admin" --disk-ballast 0 >"$folder/node.log" 2>&1 &
	node_pid=$!
	bin/clobd ready --admin "127.0.0.1:$admin" --wait 60s || { tail "$folder/node.log"; return 1; }
	local end=$((SECONDS + 60))
	until curl -sf "$url/book?token_id=$token" | jq -e '.asks | length > 0' >/dev/null; do
		((SECONDS < end)) || { echo "nobody asks"; return 1; }
		sleep 0.1
	done
}

# walk NAME KEY COMMAND...: a tour must say all five steps.
walk() {
	local name=$1 key=$2
	shift 2
	timeout 180 "$@" "$url" "$token" "0x$(printf %064d "$key")" | tee "$folder/$name"
	[[ $(cut -d' ' -f1 "$folder/$name" | tr -d '\n') == 12345 ]]
}

client() {
	if ! command -v npm >/dev/null; then
		echo "SKIPPED: there is no npm"
		return
	fi
	local lock
	lock=$(sha256sum scripts/tour/package-lock.json)
	if [[ $(cat scripts/tour/node_modules/.lock 2>/dev/null) != "$lock" ]]; then
		(cd scripts/tour &&
			npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --loglevel=error)
		printf '%s\n' "$lock" >scripts/tour/node_modules/.lock
	fi
	walk client 101 node scripts/tour/client.mjs
}

# Nothing of the tours is left, and the node stops in order.
stop() {
	local status=0
	if curl -sf "$url/book?token_id=$token" | grep '"price":"0.02"'; then
		echo "a bid is left"
		return 1
	fi
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
step "tools" need jq curl openssl
step "demo node" start
step "with the npm client" client
step "with curl" walk curl 102 scripts/tour/curl.sh
step "with clobench and clobd" walk tools 103 scripts/tour/tools.sh
step "stop" stop
