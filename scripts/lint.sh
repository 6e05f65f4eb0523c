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

step "gofmt" formatted
step "house rules" go test ./scripts/tidy
step "go vet" go vet ./...
step "staticcheck" go tool staticcheck ./...
