#!/usr/bin/env bash
# Every fuzz target of the repository, FUZZTIME each (default 10s); an argument picks by name.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

while IFS=: read -r file _ line; do
	target=${line#func }
	target=${target%%(*}
	[[ $target == *${1:-}* ]] || continue
	step "$target" go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" \
		-fuzztime "${FUZZTIME:-10s}" -timeout 30m </dev/null
done < <(grep -rn --include='*_test.go' '^func Fuzz' api bench cmd engine ingress journal)
