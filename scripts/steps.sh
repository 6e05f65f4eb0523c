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

# need TOOL...: installs what is missing from Debian, whose packages have the tools' names.
need() {
	local tool packages=()
	for tool; do
		command -v "$tool" >/dev/null || packages+=("$tool")
	done
	((${#packages[@]} > 0)) || return 0
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}" >/dev/null
}

# name_failure is for the EXIT trap: it names the step that a failure ended.
name_failure() {
	[[ -z $step_name ]] || printf '!! %s failed after %d s in all\n' "$step_name" "$SECONDS"
}
trap name_failure EXIT
