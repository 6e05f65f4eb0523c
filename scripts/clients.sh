#!/usr/bin/env bash
# End to end: the public npm clients, as published, against a node of this checkout that is
# started here on free loopback ports and on markets of the real catalog file if it is at hand.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly catalog_real=../shared/data/catalog/gamma_events_full.jsonl.gz
folder=$(mktemp -d)
node_pid=

# leave runs at the end, however it comes: a node that still runs then belongs to a failed step.
leave() {
	if [[ -n $node_pid ]]; then
		kill -KILL "$node_pid" 2>/dev/null || true
		echo "the end of the node's log:"
		tail -n 20 "$folder/log"
	fi
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

install_node() {
	if command -v node >/dev/null && command -v npm >/dev/null; then return; fi
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nodejs npm >/dev/null
}

# A folder whose lock file was installed before is left as it is.
install_packages() {
	local lock
	lock=$(sha256sum package-lock.json)
	[[ -f node_modules/.lock && $(<node_modules/.lock) == "$lock" ]] && return
	npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --loglevel=error
	printf '%s\n' "$lock" >node_modules/.lock
}

free_ports() {
	node -e '
		const net = require("net"), servers = [net.createServer(), net.createServer()];
		let open = 0;
		for (const s of servers) s.listen(0, "127.0.0.1", () => {
			if (++open < servers.length) return;
			console.log(servers.map(s => s.address().port).join(" "));
			servers.forEach(s => s.close());
		});'
}

start_node() {
	local catalog=$1 public=$2 admin=$3
	bin/clobd serve --data "$folder/data" --listen "127.0.0.1:$public" \
		--admin "127.0.0.1:$admin" --catalog "$catalog" >"$folder/log" 2>&1 &
	node_pid=$!
	for ((i = 0; i < 300; i++)); do
		kill -0 "$node_pid" 2>/dev/null || break
		node -e "fetch('http://127.0.0.1:$admin/readyz')
			.then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))" && return
		sleep 0.1
	done
	echo "the node did not become ready"
	return 1
}

# SIGTERM is a promise too: drained, flushed, exit 0.
end_node() {
	local status=0
	kill -TERM "$node_pid"
	wait "$node_pid" || status=$?
	((status == 0)) || { echo "the node answered SIGTERM with exit status $status"; return 1; }
	node_pid=
}

run_client() {
	local name=$1 catalog=$2 public admin
	read -r public admin < <(free_ports)
	(cd "scripts/clients/$name" && install_packages)
	start_node "$catalog" "$public" "$admin"
	timeout 60 node "scripts/clients/$name/e2e.mjs" "http://127.0.0.1:$public" \
		"http://127.0.0.1:$admin" "$folder/data/admin.token" "$catalog"
	end_node
	rm -rf "$folder/data"
}

step "node and npm" install_node
[[ -x bin/clobd ]] || step "build" make --no-print-directory build
catalog=$catalog_real
if [[ ! -f $catalog ]]; then
	catalog=$(find cmd bench api -name 'demo*.json*' | sort | head -n 1)
	echo "SKIPPED: $catalog_real is not here; the clients trade on the demo catalog $catalog"
fi
for path in scripts/clients/*/e2e.mjs; do
	name=$(basename "$(dirname "$path")")
	step "$name" run_client "$name" "$catalog"
done
