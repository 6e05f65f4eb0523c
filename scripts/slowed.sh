#!/usr/bin/env bash
# Whether clobench diff finds a node that takes 10 % more CPU per order: TRIES (default 10) times it
# measures this tree's node beside a slowed one, in turns, and counts how often the verdict is
# "worse". It must be in nine tries of ten. The slowed node is built with an overlay: judging an
# order burns as much CPU as calibration says, and nothing in the tree changes.
#
# ROUNDS (default 8) and DURATION (default 700ms) are those of clobench turns. On two quiet cores
# all of it takes five to seven minutes.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

tries=${TRIES:-10}
rounds=${ROUNDS:-8}
duration=${DURATION:-700ms}
scratch=$(mktemp -d)
clean() { rm -rf "$scratch"; name_failure; }
trap clean EXIT
trap 'exit 130' INT TERM

build_clean() { go build -o "$scratch/" ./cmd/clobd ./cmd/clobench; }

# burning N: the source of a function that burns N steps of arithmetic.
burning() {
	cat <<-END
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

# build_slowed N: scratch/slow/clobd judges each order N steps slower.
build_slowed() {
	mkdir -p "$scratch/slow"
	sed 's/^func (t \*placing) Judge() {$/&\n\tburn()/' ingress/order.go >"$scratch/order.go"
	grep -q '^	burn()$' "$scratch/order.go" ||
		{ echo "ingress/order.go has no Judge to slow down"; return 1; }
	{ printf 'package ingress\n\nimport "sync/atomic"\n\n'; burning "$1"; } >"$scratch/burn.go"
	printf '{"Replace":{"%s":"%s","%s":"%s"}}\n' "$PWD/ingress/order.go" "$scratch/order.go" \
		"$PWD/ingress/burn.go" "$scratch/burn.go" >"$scratch/overlay.json"
	go build -overlay "$scratch/overlay.json" -o "$scratch/slow/clobd" ./cmd/clobd
}

# step_time prints how many ns a step burns: the least of nine times.
step_time() {
	{
		printf 'package main\n\nimport ("fmt"; "sync/atomic"; "time")\n\n'
		burning 2000000
		cat <<-'END'
			func main() {
				least := time.Hour
				for range 9 {
					at := time.Now()
					burn()
					least = min(least, time.Since(at))
				}
				fmt.Println(float64(least.Nanoseconds()) / 2000000)
			}
		END
	} >"$scratch/time.go"
	go run "$scratch/time.go"
}

# figure FILE: the CPU time per operation of a report, in µs.
figure() { awk -F'[:,]' '/^  "cpu_micros_per_operation"/ { print $2 }' "$1"; }

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

# A tenth of what an order takes here and now. What the loop that times a step does not see
# (another core's cache, a busy neighbour) is in the second look.
calibrate() {
	turns 1 "$scratch/clobd" "$scratch/clobd"
	local per ns
	per=$(figure "$scratch/a.json")
	ns=$(step_time)
	steps=$(awk -v p="$per" -v n="$ns" 'BEGIN { printf "%d", p * 1000 * 0.1 / n }')
	echo "an order takes $per µs of CPU, a step $ns ns: $steps steps"
	tail -n 1 "$scratch/said"
	build_slowed "$steps"
	turns 2 "$scratch/clobd" "$scratch/slow/clobd"
	local more
	more=$(slower)
	echo "with them it takes $more % more"
	tail -n 1 "$scratch/said"
	# One run may be wrong, so it moves the steps by a half at most.
	steps=$(awk -v s="$steps" -v m="$more" 'BEGIN { f = m > 0 ? 10 / m : 1.5
		f = f > 1.5 ? 1.5 : f < 0.67 ? 0.67 : f; printf "%d", s * f }')
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
