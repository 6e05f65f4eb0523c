#!/usr/bin/env bash
# Whether NEW is slower than OLD: two trees (folders, or revisions of this repository), built once
# and measured in turns. ROUNDS is 9 unless given. Package scripts/turns says what is measured,
# under which conditions, and what the verdict means. The exit code is 1 if anything is slower
# beyond the spread.
#
# Or what an option of a node costs an order in CPU time: to be scraped once a second, which must be
# within 1.02, to be the only voter of a cluster, which must be within 1.10, or to keep a runtime
# trace (--trace-slow). With "forward": what an order costs each node of a cluster of four that a
# gateway takes, and how long it takes.
#
#	scripts/turns.sh OLD NEW [ROUNDS]
#	scripts/turns.sh with scrape|trace|cluster [ROUNDS]
#	scripts/turns.sh with forward
set -euo pipefail
[[ $# -eq 2 || $# -eq 3 ]] || {
	echo "usage: scripts/turns.sh OLD NEW [ROUNDS], or scripts/turns.sh with OPTION [ROUNDS]" >&2
	exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
worktrees=()
clean() {
	for tree in "${worktrees[@]}"; do git -C "$root" worktree remove --force "$tree"; done
	rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM

if [[ $1 == with ]]; then
	cd "$root"
	go build -o "$scratch/turns" ./scripts/turns
	"$scratch/turns" -work "$scratch" -rounds "${3:-9}" -with "$2" "$root"
	exit
fi

folders=()
for tree in "$1" "$2"; do
	if [[ -d $tree ]]; then
		folders+=("$(cd "$tree" && pwd)")
		continue
	fi
	folder=$scratch/tree${#folders[@]}
	git -C "$root" worktree add --quiet --detach "$folder" "$tree"
	worktrees+=("$folder")
	folders+=("$folder")
done
cd "$root"
go build -o "$scratch/turns" ./scripts/turns
"$scratch/turns" -work "$scratch" -rounds "${3:-9}" "${folders[@]}"
