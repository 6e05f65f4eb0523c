#include "textflag.h"

// func fetchLine(p unsafe.Pointer)
TEXT ·fetchLine(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// A link is 8 bytes, a bareOrder 16.
// func fetchNear(handles, ids []uint32, links, orders unsafe.Pointer)
TEXT ·fetchNear(SB), NOSPLIT, $0-64
	MOVQ handles_base+0(FP), R8
	MOVQ handles_len+8(FP), R9
	MOVQ ids_base+24(FP), AX
	MOVQ ids_len+32(FP), CX
	MOVQ links+48(FP), BX
	MOVQ orders+56(FP), SI
	LEAQ (AX)(CX*4), CX
	JMP  more

next:
	MOVL       (AX), DX
	ADDQ       $4, AX
	CMPQ       DX, R9
	JAE        more
	MOVL       (R8)(DX*4), DX
	PREFETCHT0 (BX)(DX*8)
	SHLQ       $4, DX
	PREFETCHT0 (SI)(DX*1)

more:
	CMPQ AX, CX
	JB   next
	RET

// func fetchHandles(handles, ids []uint32)
TEXT ·fetchHandles(SB), NOSPLIT, $0-48
	MOVQ handles_base+0(FP), R8
	MOVQ ids_base+24(FP), AX
	MOVQ ids_len+32(FP), CX
	LEAQ (AX)(CX*4), CX
	JMP  more

next:
	MOVL       (AX), DX
	ADDQ       $4, AX
	PREFETCHT0 (R8)(DX*4)

more:
	CMPQ AX, CX
	JB   next
	RET
