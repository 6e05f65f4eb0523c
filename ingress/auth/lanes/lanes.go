package lanes

// Width is how many lanes there are.
const Width = 8

// The widths of the digits of the combs, in bits: of the generator's and of a signer's.
const (
	BaseWidth = 10
	KeyWidth  = 7
)

// Element is a number modulo the prime of the field, or a factor modulo the curve's order, least
// significant word first. Elements of a Sum are below 2^256, not always below the prime.
type Element = [4]uint64

// Point is a point of a table. The points of a row are 64 bytes apart.
type Point struct{ X, Y Element }

// Factors are k and l of k·G + l·Q, each below the curve's order.
type Factors struct{ K, L Element }

// Sum is the point X/ZZ, Y/ZZZ. If ZZ is 0 modulo the prime, the sum is not known.
type Sum struct{ X, Y, ZZ, ZZZ Element }

// The sizes of what Keccak hashes, in bytes.
const (
	BlockSize  = 136
	MostBlocks = 4
)

// Messages are eight messages of up to four blocks. All have the same number of blocks; each is
// padded by its caller.
type Messages [Width][MostBlocks * BlockSize]byte
