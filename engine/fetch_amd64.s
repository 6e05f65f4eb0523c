#include "textflag.h"

#define ONE(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVQ arg+0(FP), AX ; \
	PREFETCHT0 (AX) ; \
	RET

#define TWO(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVQ arg+0(FP), AX ; \
	PREFETCHT0 (AX) ; \
	PREFETCHT0 64(AX) ; \
	RET

// What is hot of a market is at its beginning, which may be anywhere in a line.
#define HOT(name, arg)  \
TEXT name(SB), NOSPLIT, $0-8 ; \
	MOVQ arg+0(FP), AX ; \
	PREFETCHT0 (AX) ; \
	PREFETCHT0 64(AX) ; \
	PREFETCHT0 119(AX) ; \
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
