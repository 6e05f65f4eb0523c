package main

import (
	"strings"
	"testing"

	"clobd/engine"
)

// TestReplacedOrder: the record of a Place shows the order that it replaces as an order id, not as
// two addresses. A search for that order finds the record.
func TestReplacedOrder(t *testing.T) {
	old, wallet := engine.OrderID{1, 31: 2}, engine.Address{1}
	c := engine.Command{Kind: engine.Place, ID: engine.OrderID{9}, Market: 1, Wallet: 3, Owner: 3}
	c.Replace(old)
	f := &engine.Frame{First: 5, Commands: []engine.Command{c}, Ends: []uint32{1},
		Events: []engine.Event{{Kind: engine.Rejected, Reject: engine.RejectReplaced, Order: c.ID}}}
	r, n := recordedAt(f, 0), newNames()
	said := r.text(n)
	if !strings.Contains(said, " replaces="+old.Hex()) || !strings.Contains(said, "not_replaced") ||
		strings.Contains(said, "address=") || strings.Contains(said, "holder=") {
		t.Error(said)
	}
	for _, c := range []struct {
		wanted wanted
		has    bool
	}{
		{wanted{order: old}, true},
		{wanted{order: engine.OrderID{9}}, true},
		{wanted{order: engine.OrderID{1}}, false},
		{wanted{wallet: "3"}, true},
		{wanted{wallet: wallet.Hex()}, false}, // these bytes begin the id, and are no address
	} {
		c.wanted.until = 9
		if got := c.wanted.has(&r, n); got != c.has {
			t.Errorf("%+v: %t", c.wanted, got)
		}
	}
}
