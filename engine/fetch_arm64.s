#include "textflag.h"

#define ONE(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVD arg+0(FP), R0 ; \
	PRFM (R0), PLDL1KEEP ; \
	RET

#define TWO(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVD arg+0(FP), R0 ; \
	PRFM (R0), PLDL1KEEP ; \
	PRFM 64(R0), PLDL1KEEP ; \
	RET

// What is hot of a market is at its beginning, which may be anywhere in a line.
#define HOT(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVD arg+0(FP), R0 ; \
	ADD $119, R0, R1 ; \
	PRFM (R0), PLDL1KEEP ; \
	PRFM 64(R0), PLDL1KEEP ; \
	PRFM (R1), PLDL1KEEP ; \
	RET

ONE(·fetchBucket, b)
TWO(·fetchOrder, o)
ONE(·fetchHead, o)
ONE(·fetchLink, l)
ONE(·fetchLevel, l)
ONE(·fetchPage, p)
ONE(·fetchPosition, p)
ONE(·fetchAccount, a)
HOT(·fetchMarket, m)
