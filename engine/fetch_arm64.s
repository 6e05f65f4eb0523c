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

ONE(·fetchBucket, b)
TWO(·fetchOrder, o)
ONE(·fetchHead, o)
ONE(·fetchLink, l)
ONE(·fetchLevel, l)
ONE(·fetchPage, p)
ONE(·fetchPosition, p)
ONE(·fetchAccount, a)
TWO(·fetchMarket, m)
