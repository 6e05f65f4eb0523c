#!/usr/bin/env bash
# Whether clobench diff finds a node that takes 10 % more CPU per order: TRIES (default 10) times it
# measures this tree's node beside a slowed one, in turns, and counts how often the verdict is
# "worse". It must be in nine tries of ten. The slowed node is built with an overlay: judging an
# order burns a tenth of the CPU time that an order took before, and nothing in the tree changes.
#
# ROUNDS (default 16) and DURATION (default 500ms) are those of clobench turns.
# All of it takes about seven minutes.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

tries=${TRIES:-10}
rounds=${ROUNDS:-16}
duration=${DURATION:-500ms}
scratch=$(mktemp -d)
clean() { rm -rf "$scratch"; name_failure; }
trap clean EXIT
trap 'exit 130' INT TERM

build_clean() { go build -o "$scratch/" ./cmd/clobd ./cmd/clobench; }

# burning NS: the source of a function that takes NS nanoseconds of its thread's CPU time. A number
# of steps that takes so long in a loop of its own took 1.5 to 3 times as long in a node under load.
burning() {
	cat <<-END
		package ingress

		import (
			"runtime"
			"syscall"
			"unsafe"
		)

		// spent is the CPU time of this thread, in ns.
		func spent() int64 {
			var t syscall.Timespec
			syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 3, uintptr(unsafe.Pointer(&t)), 0)
			return t.Nano()
		}

		func burn() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for end := spent() + $1; spent() < end; {
			}
		}
	END
}

# build_slowed NS: scratch/slow/clobd judges each order so much slower.
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

# figure SIDE: the median CPU time per operation of a side in scratch/diff.json, in µs: the first
# figure.
figure() {
	awk -F'[:,]' -v side="\"$1\"" '$1 ~ side { here = 1 }
		here && /"median"/ { print $2; exit }' "$scratch/diff.json"
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

# A tenth of what an order takes here and now. The tries say what the node really took more: what an
# order takes changes with the minute of the machine.
calibrate() {
	turns 1 "$scratch/clobd" "$scratch/clobd"
	local tenth
	tenth=$(awk -v a="$(figure a)" -v b="$(figure b)" 'BEGIN { printf "%d", (a + b) / 2 * 100 }')
	tail -n 1 "$scratch/said"
	echo "a tenth of an order is $tenth ns of CPU"
	build_slowed "$tenth"
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
