#!/usr/bin/env bash
# The packages in which more than one goroutine touches memory, under the race detector and -short.
# Tests that have one goroutine and take long under the detector are left out: the ordinary tests
# have them. So is TestContractOnBorrowedMemory, whose cases run here as those of two other tests.
# The engine has one goroutine: only its histories run here, because their digests must be those of
# every other build.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

one_goroutine='^Test(Field|CheckedAsRecovered|CheckAddsAnything|HotVectors|Hostile|LongKeyset|'
one_goroutine+='BooksBound|IdleMarkets|Filter|PagesApart|RealFilters|RealMarketIDs|GzipBombs|'
one_goroutine+='EventsPagination|Offsets|DeepOffsets|CreatorOfBookLists|'
one_goroutine+='Salvage|HealPowerLoss|SupplyInParts|RescuePowerLoss|OneFlippedBitLosesNothing|'
one_goroutine+='RescueAgain|RescueFillsTheDisk|JournalWithoutTables|CrashWhileCompacting|'
one_goroutine+='ContractOnBorrowedMemory)$'

# Packages that take longest begin, and more run at a time than there are processors: many wait.
go test -vet=off -race -short -skip "$one_goroutine" -timeout 20m -p "$(($(nproc) + 1))" \
	./ingress ./api ./journal/history ./journal ./api/catalog ./engine/view/... \
	./engine/sequencer/... ./journal/... ./ingress/... ./api/... "$@"
go test -vet=off -race -short -run 'TestHistories|TestPlacedOnce' "$@" ./engine
