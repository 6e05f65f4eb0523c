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
ONE(·fetchBareOrder, o)

// A link is 8 bytes, a record of a Bare 16.
// func fetchNear(handles []*uint32, links *[nearRecords]link, orders *[nearRecords]bareOrder)
TEXT ·fetchNear(SB), NOSPLIT, $0-40
	MOVQ handles_base+0(FP), AX
	MOVQ handles_len+8(FP), CX
	MOVQ links+24(FP), BX
	MOVQ orders+32(FP), SI
	LEAQ (AX)(CX*8), CX
	JMP  more

next:
	MOVQ       (AX), DX
	MOVL       (DX), DX
	ADDQ       $8, AX
	PREFETCHT0 (BX)(DX*8)
	SHLQ       $4, DX
	PREFETCHT0 (SI)(DX*1)

more:
	CMPQ AX, CX
	JB   next
	RET

// func FetchHandles(handles []*uint32)
TEXT ·FetchHandles(SB), NOSPLIT, $0-24
	MOVQ handles_base+0(FP), AX
	MOVQ handles_len+8(FP), CX
	LEAQ (AX)(CX*8), CX
	JMP  more

next:
	MOVQ       (AX), DX
	PREFETCHT0 (DX)
	ADDQ       $8, AX

more:
	CMPQ AX, CX
	JB   next
	RET
