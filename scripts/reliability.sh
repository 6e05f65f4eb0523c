#!/usr/bin/env bash
# Every fault test at the size at which a rare fault does not hide: hours on two cores. ITEMS names
# some of them, SMALL=1 takes the sizes of the ordinary tests, SEED repeats. The node is built once:
# what changes in the checkout meanwhile changes nothing of it.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

cp bin/clobd bin/clobd.reliability
export CLOBD_BINARY=$PWD/bin/clobd.reliability
bin/clobsim reliability --out bin/reliability.json ${SEED:+--seed "$SEED"} ${SMALL:+--small} \
	${ITEMS:+--only "$ITEMS"}
