#!/usr/bin/env bash
# A cluster on this machine, in the foreground: voters a, b, c and gateway g, on the demo catalog
# with faucet, in bin/cluster. SIGTERM and ^C stop all of it. A node that is killed ends neither the
# others nor this. With the name of a node it starts that one again, beside a cluster that runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

nodes=(a b c g)
home=bin/cluster

number() { # of a node, the last digit of its ports
	local i
	for i in "${!nodes[@]}"; do
		[[ ${nodes[$i]} != "$1" ]] || { echo "$i"; return; }
	done
	echo "no node is called $1: they are ${nodes[*]}" >&2
	exit 2
}

member() { echo "127.0.0.1:828$(number "$1")"; }

begin() {
	local all=(--data "$home/a" --cluster "a@$(member a)") n
	for n in b c; do all+=(--peers "$n@$(member $n)=$home/$n"); done
	bin/clobd cluster init "${all[@]}" --gateways "g@$(member g)=$home/g" >/dev/null
}

running() { # NAME: whether its process is there
	local pid
	pid=$(cat "$home/$1.pid" 2>/dev/null) &&
		[[ $({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null) == *"$home/$1 "* ]]
}

start() {
	local i
	i=$(number "$1")
	if running "$1"; then
		echo "$1 runs already: its process is $(cat "$home/$1.pid")" >&2
		return 1
	fi
	# In a group of its own: ^C is for the cluster, which stops its nodes in order.
	setsid bin/clobd serve --data "$home/$1" --cluster "$1@$(member "$1")" --demo \
		--listen "127.0.0.1:818$i" --admin "127.0.0.1:819$i" >>"$home/$1.log" 2>&1 </dev/null &
	echo $! >"$home/$1.pid"
}

stop() {
	trap '' TERM INT
	local n
	for n in "${nodes[@]}"; do
		if running "$n"; then kill "$(cat "$home/$n.pid")"; fi
	done
	for n in "${nodes[@]}"; do
		while running "$n"; do sleep 0.1; done
		rm -f "$home/$n.pid"
	done
	echo "stopped"
	exit 0
}

if [[ $# -gt 0 ]]; then
	start "$1"
	exit
fi

mkdir -p -m 700 "$home"
[[ -e $home/a/cluster/member.json ]] || begin
trap stop TERM INT
for n in "${nodes[@]}"; do start "$n"; done
for n in "${nodes[@]}"; do
	until curl -fs "http://127.0.0.1:819$(number "$n")/readyz" >/dev/null; do
		sleep 0.1 & wait $! || true
		running "$n" || { echo "$n does not start:" >&2; tail -n 3 "$home/$n.log" >&2; stop; }
	done
done
echo "a cluster of voters a, b, c and gateway g; each takes orders and answers everything:"
for n in "${nodes[@]}"; do
	i=$(number "$n")
	admin=http://127.0.0.1:819$i
	echo "  $n  http://127.0.0.1:818$i  its page $admin  its view $admin/cluster"
done
cat <<-END

	  who leads     bin/clobd cluster status --admin 127.0.0.1:8193
	  kill one      kill -9 \$(cat $home/a.pid)
	  start it      scripts/cluster.sh a
	  end it all    ^C, or kill $$
END
while :; do
	sleep 1 & wait $! || true
done
