#include "textflag.h"

// func fetchLine(p unsafe.Pointer)
TEXT ·fetchLine(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// A link is 8 bytes, a bareOrder 16.
// func fetchNear(handles, ids []uint32, links, orders unsafe.Pointer)
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

// func fetchHandles(handles, ids []uint32)
TEXT ·fetchHandles(SB), NOSPLIT, $0-48
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
