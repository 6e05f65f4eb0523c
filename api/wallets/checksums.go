package wallets

import (
	"sync/atomic"

	"clobd/engine"
)

// checksums caches the texts of addresses. Computing a text takes a hash, which is half of the work
// for a page of thousands of holders. Any number of goroutines may use a checksums.
type checksums [1 << 15]atomic.Pointer[checksummed]

type checksummed struct {
	no   engine.WalletNo
	text string
}

// of is the text of the address of wallet no. Wallets whose numbers are equal modulo the length
// share one entry, which keeps the wallet that was asked for last.
func (c *checksums) of(
	no engine.WalletNo, a engine.Address, write func(engine.Address) string,
) string {
	entry := &c[uint32(no)%uint32(len(c))]
	if known := entry.Load(); known != nil && known.no == no {
		return known.text
	}
	s := &checksummed{no, write(a)}
	entry.Store(s)
	return s.text
}
