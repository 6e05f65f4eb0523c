package limits

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// FuzzPolicy: a file that is taken sets only what its bounds allow, and what it sets can be written
// as a file that sets the same.
func FuzzPolicy(f *testing.F) {
	for _, text := range []string{goodFile, "", "# nothing", "limit general 1/1s", "tier a x0.001",
		"tier a order-burst 1/24h\r\ntier b x1000", "limit book 100000000/24h\t# all",
		"wallet " + wallet1 + " standard", "wallet " + strings.ToUpper(wallet2) + " a\ntier a x1e-3",
		"limit order-burst 7/10s\ntier a x0x1p-2\ntier a cancel-burst 5/1m"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(written(p))
		if err != nil {
			t.Fatalf("%q is written as %q: %v", text, written(p), err)
		}
		if !reflect.DeepEqual(again, p) {
			t.Fatalf("%q: %+v, written and read: %+v", text, p, again)
		}
	})
}

// written is a policy as a file that says each of its limits.
func written(p *Policy) string {
	var b strings.Builder
	line := func(start string, table []limit, windows []Window) {
		for i, w := range windows {
			if table[i].name != addressTable[gifts].name {
				fmt.Fprintf(&b, "%s %s %d/%v\n", start, table[i].name, w.Limit, w.Period)
			}
		}
	}
	line("limit", addressTable[:], p.address)
	line("limit", pairTable[:], p.pair[:])
	line("limit", accountTable[:], p.tiers[0].account[:])
	for _, d := range p.tiers[1:] {
		line("tier "+d.name, accountTable[:], d.account[:])
	}
	for wallet, i := range p.wallets {
		fmt.Fprintf(&b, "wallet 0x%s %s\n", hex.EncodeToString(wallet[:]), p.tiers[i].name)
	}
	return b.String()
}
