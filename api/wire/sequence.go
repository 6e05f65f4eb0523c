package wire

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"clobd/engine"
)

var sequenceHeader = []byte("X-Sequence")

// What a query may ask of the node that answers, whatever else it asks: to show at least a
// Sequence, or all that anybody was told of before.
const (
	MinSequence  = "min_seq"
	Consistency  = "consistency"
	Linearizable = "linearizable" // the one value of Consistency
)

// MarkSequence tells the client the Sequence that the answer shows: that of its Command, or the
// last one of what a read was made of. Clients compare the two: a read with a Sequence not below
// that of a write shows the write. Sequence 0, before the first Command, is not told.
func MarkSequence(ctx *fasthttp.RequestCtx, s engine.Sequence) {
	if s == 0 {
		return
	}
	var room [20]byte // as many digits as 2^64 has
	ctx.Response.Header.SetCanonical(sequenceHeader, strconv.AppendUint(room[:0], uint64(s), 10))
}
