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
ONE(·fetchBareOrder, o)

// A link is 8 bytes, a record of a Bare 16.
// func fetchNear(handles, ids []uint32, links *[nearRecords]link, orders *[nearRecords]bareOrder)
TEXT ·fetchNear(SB), NOSPLIT, $0-64
	MOVD handles_base+0(FP), R6
	MOVD handles_len+8(FP), R7
	MOVD ids_base+24(FP), R0
	MOVD ids_len+32(FP), R1
	MOVD links+48(FP), R3
	MOVD orders+56(FP), R4
	ADD  R1<<2, R0, R1
	B    more

next:
	MOVWU.P 4(R0), R2
	CMP     R7, R2
	BHS     more
	MOVWU   (R6)(R2<<2), R2
	ADD     R2<<3, R3, R5
	PRFM    (R5), PLDL1KEEP
	ADD     R2<<4, R4, R5
	PRFM    (R5), PLDL1KEEP

more:
	CMP R1, R0
	BLO next
	RET

// func FetchHandles(handles, ids []uint32)
TEXT ·FetchHandles(SB), NOSPLIT, $0-48
	MOVD handles_base+0(FP), R3
	MOVD ids_base+24(FP), R0
	MOVD ids_len+32(FP), R1
	ADD  R1<<2, R0, R1
	B    more

next:
	MOVWU.P 4(R0), R2
	ADD     R2<<2, R3, R2
	PRFM    (R2), PLDL1KEEP

more:
	CMP R1, R0
	BLO next
	RET
