package wallets

import (
	"sync/atomic"

	"clobd/engine"
)

// checksums remembers how addresses are written: to find out takes a hash, which for a page of
// thousands of holders is half of all the work. Anybody may use it at any time.
type checksums [1 << 15]atomic.Pointer[checksummed]

// checksummed is one address as it is written.
type checksummed struct {
	no   engine.WalletNo
	text string
}

// of is the text of the address of wallet no. Wallets whose numbers end alike share a place, which
// the one asked for last has.
func (c *checksums) of(
	no engine.WalletNo, a engine.Address, write func(engine.Address) string,
) string {
	place := &c[uint32(no)%uint32(len(c))]
	if known := place.Load(); known != nil && known.no == no {
		return known.text
	}
	s := &checksummed{no, write(a)}
	place.Store(s)
	return s.text
}
