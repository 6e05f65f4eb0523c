//go:build cgo && amd64

package lanes

// #cgo CFLAGS: -O3
// #cgo lanescheck CFLAGS: -DLANES_CHECK
// #cgo lanesplain CFLAGS: -DLANES_PLAIN=1 -O1 -Wno-psabi
// #cgo noescape lanes_sum
// #cgo nocallback lanes_sum
// #cgo noescape lanes_sums
// #cgo nocallback lanes_sums
// #cgo noescape lanes_keccak
// #cgo nocallback lanes_keccak
// #cgo noescape lanes_field
// #cgo nocallback lanes_field
// #include "lanes.h"
import "C"

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// C and Go agree on the sizes: no array has a negative length.
var (
	_ [C.BASE_WIDTH - BaseWidth]int
	_ [BaseWidth - C.BASE_WIDTH]int
	_ [C.KEY_WIDTH - KeyWidth]int
	_ [KeyWidth - C.KEY_WIDTH]int
	_ [8*C.MESSAGE - MostBlocks*BlockSize]int
	_ [MostBlocks*BlockSize - 8*C.MESSAGE]int
)

// Have reports whether the processor has the instructions and the kernel keeps the registers.
func Have() bool { return C.LANES_PLAIN == 1 || cpu.X86.HasAVX512F && cpu.X86.HasAVX512IFMA }

// Lack says what is missing where Have is false.
const Lack = "the processor or the kernel has no AVX-512 IFMA"

// word is the address of a struct of words for C. None of these structs holds a pointer.
func word[T Point | Factors | Sum | Messages | [Width]Factors | [Width]Sum | [Width][32]byte](
	p *T,
) *C.uint64_t {
	return (*C.uint64_t)(unsafe.Pointer(p))
}

// Add sets out to k.K·G + k.L·Q. base is the first point of G's table, key of Q's.
func Add(base, key *Point, k *Factors, out *Sum) {
	C.lanes_sum(word(base), word(key), word(k), word(out))
}

// AddAll does the same for eight sums. The keys may be equal; none is nil.
func AddAll(base *Point, keys *[Width]*Point, k *[Width]Factors, out *[Width]Sum) {
	C.lanes_sums(word(base), word(keys[0]), word(keys[1]), word(keys[2]), word(keys[3]),
		word(keys[4]), word(keys[5]), word(keys[6]), word(keys[7]), word(k), word(out))
}

// Keccak sets out to the Keccak-256 hashes of eight messages of so many blocks, 1 to MostBlocks.
func Keccak(m *Messages, blocks int, out *[Width][32]byte) {
	C.lanes_keccak(word(m), C.int(blocks), word(out))
}

// fieldResults is for tests: see lanes_field.
type fieldResults [C.FIELD_RESULTS][Width]Element

func fieldOperations(pairs *[Width]Point, out *fieldResults) {
	C.lanes_field((*C.uint64_t)(unsafe.Pointer(pairs)), (*C.uint64_t)(unsafe.Pointer(out)))
}
