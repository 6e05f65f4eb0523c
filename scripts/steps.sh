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

# await_book FROM GOAL URL TOKEN: waits until something is offered in a book, and says how many
# milliseconds that took since FROM, a value of EPOCHREALTIME.
await_book() {
	local end=$((SECONDS + 60))
	until curl -sf "$3/book?token_id=$4" | grep -q '"asks":\[{'; do
		((SECONDS < end)) || { echo "nothing is offered"; return 1; }
		sleep 0.02
	done
	printf 'a book after %d ms, goal %d\n' $(((${EPOCHREALTIME/./} - ${1/./}) / 1000)) "$2"
}

# name_failure is for the EXIT trap: it names the step that a failure ended.
name_failure() {
	[[ -z $step_name ]] || printf '!! %s failed after %d s in all\n' "$step_name" "$SECONDS"
}
trap name_failure EXIT
