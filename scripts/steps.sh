# Sourced by the other scripts: the repository's root as the working folder, and one line per step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
step_name=

# step NAME COMMAND...: run it and say how long it took. The command is not called in a condition:
# that would switch off "set -e" inside the functions it is made of.
step() {
	step_name=$1
	local from=$SECONDS
	shift
	printf '== %s\n' "$step_name"
	"$@"
	printf -- '-- %s: %d s\n' "$step_name" $((SECONDS - from))
	step_name=
}

# beside COMMAND...: runs commands without arguments beside each other. What one of them says is
# shown whole, when it and those before it have ended.
beside() {
	local command pids=() i=0 failed=0
	mkdir -p bin/beside
	for command; do
		"$command" >"bin/beside/$command" 2>&1 &
		pids+=($!)
	done
	for command; do
		wait "${pids[i]}" || { failed=1; printf '!! %s failed:\n' "$command"; }
		cat "bin/beside/$command"
		i=$((i + 1))
	done
	return "$failed"
}

# need TOOL...: installs what is missing from Debian. Its packages have the tools' names, but for
# node's.
need() {
	local tool packages=()
	for tool; do
		command -v "$tool" >/dev/null || packages+=("${tool/#node/nodejs}")
	done
	((${#packages[@]} > 0)) || return 0
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}" >/dev/null
}

# modules FOLDER: installs what its package-lock.json names, unless this very file was installed.
modules() (
	cd "$1"
	lock=$(sha256sum package-lock.json)
	[[ -f node_modules/.lock && $(<node_modules/.lock) == "$lock" ]] && return
	npm ci --prefer-offline --no-audit --no-fund --ignore-scripts --loglevel=error
	printf '%s\n' "$lock" >node_modules/.lock
)

# free_port prints a port below those that the kernel gives to connections.
free_port() {
	local port=$((10000 + RANDOM % 20000))
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}

# await_book URL TOKEN: waits until something is offered in a book.
await_book() {
	local end=$((SECONDS + 60))
	until curl -sf "$1/book?token_id=$2" | grep -q '"asks":\[{'; do
		((SECONDS < end)) || { echo "nothing is offered"; return 1; }
		sleep 0.02
	done
}

# in_time GOAL START STOP: START must take at most GOAL milliseconds. A busy machine has up to five
# turns, with STOP between two of them. What the last one has started stays.
in_time() {
	local from took turn
	for turn in 1 2 3 4 5; do
		((turn == 1)) || "$3"
		from=$EPOCHREALTIME
		"$2"
		took=$(((${EPOCHREALTIME/./} - ${from/./}) / 1000))
		printf 'a book after %d ms, at most %d\n' "$took" "$1"
		((took > $1)) || return 0
	done
	return 1
}

# name_failure is for the EXIT trap: it names the step that a failure ended.
name_failure() {
	[[ -z $step_name ]] || printf '!! %s failed after %d s in all\n' "$step_name" "$SECONDS"
}
trap name_failure EXIT
