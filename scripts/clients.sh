#!/usr/bin/env bash
# End to end: the public npm clients, as published, side by side, each against a node of this
# checkout that is started here on free loopback ports, on the real catalog file if it is at hand.
# Between a client and its node stands a witness that holds every answer against the node's own
# OpenAPI document.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly catalog_real=../shared/data/catalog/gamma_events_full.jsonl.gz
folder=$(mktemp -d)
pids=()

# leave runs at the end, however it comes: what still runs then belongs to a failed step.
leave() {
	((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true
	wait
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

# side_by_side COMMAND: runs it for every suite at once. What it says is shown when it is done.
side_by_side() {
	local i name failed=0
	pids=()
	for name in "${suites[@]}"; do
		"$1" "$name" >"$folder/$name.out" 2>&1 &
		pids+=($!)
	done
	for i in "${!suites[@]}"; do
		name=${suites[i]}
		wait "${pids[i]}" || { echo "!! $name failed"; failed=1; }
		sed "s/^/$name: /" "$folder/$name.out"
	done
	pids=()
	return "$failed"
}

install_packages() { modules "scripts/clients/$1"; }

# free_ports prints three ports that nobody listens on, and never the same for two suites. They are
# below those that the kernel gives to connections: such a one may be gone when the node wants it.
free_ports() {
	flock "$folder" node -e '
		const net = require("net"), fs = require("fs");
		const used = process.argv[1], servers = [];
		const taken = fs.existsSync(used) ? fs.readFileSync(used, "utf8").split(/\s+/) : [];
		const any = () => 10000 + Math.floor(20000 * Math.random());
		const next = () => net.createServer().on("error", next).listen(any(), "127.0.0.1", function () {
			servers.push(this);
			const ports = servers.map(s => String(s.address().port)).filter(p => !taken.includes(p));
			if (ports.length < 3) return next();
			fs.appendFileSync(used, ports.join(" ") + "\n");
			console.log(ports.join(" "));
			servers.forEach(s => s.close());
		});
		next();' "$folder/ports"
}

# end_node ends what a failed suite left.
end_node() {
	[[ -z $witness_pid ]] || kill -KILL "$witness_pid" 2>/dev/null || true
	[[ -n $node_pid ]] || return 0
	kill -KILL "$node_pid" 2>/dev/null || true
	echo "the end of the node's log:"
	tail -n 20 "$data.log"
}

# await_ready PID URL: waits until a process answers there with success.
await_ready() {
	local end=$((SECONDS + 180))
	while ((SECONDS < end)); do
		kill -0 "$1" 2>/dev/null || break
		node -e "fetch('$2')
			.then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))" && return
		sleep 0.1
	done
	echo "nothing answers at $2"
	return 1
}

# end_well PID NAME: SIGTERM is answered with exit status 0.
end_well() {
	local status=0
	kill -TERM "$1"
	wait "$1" || status=$?
	((status == 0)) || { echo "$2 answered SIGTERM with exit status $status"; return 1; }
}

# run_suite NAME: a node, a witness, the suite, and SIGTERM, which is a promise too: drained,
# flushed, exit 0. The witness fails if an answer was not as documented.
run_suite() {
	local public admin front suite=0
	data=$folder/$1.data
	node_pid=
	witness_pid=
	trap end_node EXIT
	read -r public admin front < <(free_ports)
	bin/clobd serve --data "$data" --listen "127.0.0.1:$public" --admin "127.0.0.1:$admin" \
		--catalog "$catalog" >"$data.log" 2>&1 &
	node_pid=$!
	await_ready "$node_pid" "http://127.0.0.1:$admin/readyz"
	"$folder/witness" --listen "127.0.0.1:$front" --node "http://127.0.0.1:$public" &
	witness_pid=$!
	await_ready "$witness_pid" "http://127.0.0.1:$front/time"
	timeout 600 node "scripts/clients/$1/e2e.mjs" "http://127.0.0.1:$front" \
		"http://127.0.0.1:$admin" "$data/admin.token" "$catalog" || suite=$?
	end_well "$witness_pid" "the witness" || ((suite != 0)) || suite=1
	witness_pid=
	((suite == 0)) || return "$suite"
	end_well "$node_pid" "the node"
	node_pid=
}

build_witness() { go build -o "$folder/witness" ./scripts/openapi/witness; }

step "node and npm" need node npm
[[ -x bin/clobd ]] || step "build" make --no-print-directory build
step "witness" build_witness
catalog=$catalog_real
if [[ ! -f $catalog ]]; then
	catalog=$folder/catalog.jsonl
	node scripts/clients/catalog.mjs >"$catalog"
	echo "SKIPPED: $catalog_real is not here; the clients trade on made-up markets"
fi
suites=()
for path in scripts/clients/*/e2e.mjs; do
	suites+=("$(basename "$(dirname "$path")")")
done
step "install" side_by_side install_packages
step "suites" side_by_side run_suite
