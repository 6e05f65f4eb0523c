#!/usr/bin/env bash
# The packages in which more than one goroutine touches memory, under the race detector. -short
# keeps their long runs out: those are in the ordinary tests. The engine has one goroutine: only its
# histories run here, because their digests must be those of every other build.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

go test -vet=off -race -short -timeout 20m \
	./engine/view/... ./engine/sequencer/... ./journal/... ./ingress/... ./api/... "$@"
go test -vet=off -race -short -run 'TestHistories|TestPlacedOnce' "$@" ./engine
