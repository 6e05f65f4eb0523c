#!/usr/bin/env bash
# Whether clobench diff finds a node that takes 10 % more CPU per order: TRIES (default 10) times it
# measures this tree's node beside a slowed one, in turns, and counts how often the verdict is
# "worse". It must be in nine tries of ten. The slowed node is built with an overlay: judging an
# order burns steps of arithmetic, and nothing in the tree changes.
#
# ROUNDS (default 32) and DURATION (default 500ms) are those of clobench turns. All of it takes a
# quarter of an hour.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

tries=${TRIES:-10}
rounds=${ROUNDS:-32}
duration=${DURATION:-500ms}
scratch=$(mktemp -d)
clean() { rm -rf "$scratch"; name_failure; }
trap clean EXIT
trap 'exit 130' INT TERM

build_clean() { go build -o "$scratch/" ./cmd/clobd ./cmd/clobench; }

# burning STEPS: the source of a function that burns so many steps of arithmetic.
burning() {
	cat <<-END
		package ingress

		import "sync/atomic"

		// burnt keeps the result.
		var burnt atomic.Uint64

		func burn() {
			x := uint64(88172645463325252)
			for range $1 {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			burnt.Store(x)
		}
	END
}

# build_slowed STEPS: scratch/slow/clobd burns so many steps for each order.
build_slowed() {
	mkdir -p "$scratch/slow"
	sed 's/^func (t \*placing) Judge() {$/&\n\tburn()/' ingress/order.go >"$scratch/order.go"
	grep -q '^	burn()$' "$scratch/order.go" ||
		{ echo "ingress/order.go has no Judge to slow down"; return 1; }
	burning "$1" >"$scratch/burn.go"
	printf '{"Replace":{"%s":"%s","%s":"%s"}}\n' "$PWD/ingress/order.go" "$scratch/order.go" \
		"$PWD/ingress/burn.go" "$scratch/burn.go" >"$scratch/overlay.json"
	go build -overlay "$scratch/overlay.json" -o "$scratch/slow/clobd" ./cmd/clobd
}

# slower prints by how much percent B is above A in scratch/diff.json, by the pairs of rounds: CPU
# per operation is the first figure.
slower() { awk -F'[:,]' '/"delta_percent":/ { printf "%.1f", $2; exit }' "$scratch/diff.json"; }

# turns SEED NODE NODE: scratch/a.json and scratch/b.json.
turns() {
	"$scratch/clobench" turns --node "$2" --node "$3" --seed "$1" --rounds "$rounds" \
		--duration "$duration" --json "$scratch/a.json" --json "$scratch/b.json" >"$scratch/said"
	"$scratch/clobench" diff "$scratch/a.json" "$scratch/b.json" --json "$scratch/diff.json" \
		>"$scratch/compared"
}

# The steps that make an order a tenth dearer, found by looks at the node itself: in a node under
# load a step takes longer than in a loop of its own, and an order that holds its place for longer
# makes others wait, which costs CPU time, too.
calibrate() {
	local steps=5000 look more
	for look in 1 2; do
		build_slowed "$steps"
		turns "$look" "$scratch/clobd" "$scratch/slow/clobd"
		more=$(slower)
		echo "with $steps steps an order takes $more % more"
		steps=$(awk -v s="$steps" -v m="$more" 'BEGIN { f = m > 0 ? 10 / m : 3
			f = f > 3 ? 3 : f < 0.3 ? 0.3 : f; printf "%d", s * f }')
	done
	echo "so the tries burn $steps steps"
	build_slowed "$steps"
}

try_all() {
	local found=0 i deltas=""
	for ((i = 1; i <= tries; i++)); do
		turns $((100 + i)) "$scratch/clobd" "$scratch/slow/clobd"
		tail -n 1 "$scratch/said"
		deltas+=" $(slower)"
		if grep -q '^  "verdict": "worse"' "$scratch/diff.json"; then
			found=$((found + 1))
		fi
		"$scratch/clobench" diff "$scratch/a.json" "$scratch/a.json" --fail-on different >/dev/null
	done
	echo "found in $found of $tries tries; a run and itself never differed"
	tr ' ' '\n' <<<"${deltas# }" | sort -n | awk '{ v[NR] = $1 }
		END { m = v[int((NR + 1) / 2)]
			printf "the tries had %s to %s %% more, median %s %%\n", v[1], v[NR], m }'
	((10 * found >= 9 * tries))
}

step "build" build_clean
step "calibrate" calibrate
step "tries" try_all
