#!/usr/bin/env bash
# What a machine can say about the text of the code, cheapest first.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

formatted() {
	local list
	list=$(gofmt -l api bench cmd engine ingress journal scripts)
	[[ -z $list ]] && return
	printf 'not gofmt-ed:\n%s\n' "$list"
	return 1
}

# What go.mod says is what the code needs, no more and no less. Nothing is changed. It reads more
# modules than a build does: where they are neither in the cache nor to be had, nobody can tell.
tidied() {
	local said
	said=$(go mod tidy -diff 2>&1) && return
	printf '%s\n' "$said"
	if [[ $said == *"diff current/go."* ]]; then
		echo "go.mod or go.sum is not tidy: go mod tidy makes the changes above"
		return 1
	fi
	echo "SKIPPED: go.mod cannot be judged here"
}

step "gofmt" formatted
step "go.mod" tidied
step "house rules" go test ./scripts/tidy
step "go vet" go vet ./...
step "staticcheck" go tool staticcheck ./...
