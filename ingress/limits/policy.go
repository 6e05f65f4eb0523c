package limits

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"clobd/engine"
	"clobd/ingress/conn"
)

// Policy is the limits that hold. It never changes; Windows.Use replaces it.
type Policy struct {
	address []Window // by the rows of addressTable
	pair    [len(pairTable)]Window
	texts   []string // RateLimit-Policy, by the numbers of addressScopes
	tiers   []tier
	wallets map[engine.Address]uint8 // the tiers of wallets that are in no standard tier
}

// tier is the limits of some accounts.
type tier struct {
	name    string
	account [len(accountTable)]Window
	texts   []string // RateLimit-Policy, by the numbers of accountScopes
}

// standard is the name of the tier of a wallet that no file names.
const standard = "standard"

// Standard returns the limits that hold without a file.
func Standard() *Policy {
	p := &Policy{address: make([]Window, len(addressTable))}
	for i := range addressTable {
		p.address[i] = addressTable[i].Window
	}
	for i := range pairTable {
		p.pair[i] = pairTable[i].Window
	}
	t := tier{name: standard}
	for i := range accountTable {
		t.account[i] = accountTable[i].Window
	}
	p.tiers = []tier{t}
	p.describe()
	return p
}

// Arrivals returns how many connections an address may open in 10 s: as many as the requests that
// it may send in that time, so that a client may open one for each request.
func (p *Policy) Arrivals() conn.Arrivals {
	in := func(row int) int {
		w := p.address[row]
		return int(int64(w.Limit) * int64(ten) / int64(w.Period))
	}
	return conn.Arrivals{Strangers: in(general), Known: in(general) + in(cancels)}
}

// describe words the headers that name a request's windows.
func (p *Policy) describe() {
	p.texts = nil
	for _, s := range addressScopes {
		p.texts = append(p.texts, policyText(s, addressTable[:], p.address))
	}
	for i := range p.tiers {
		t := &p.tiers[i]
		t.texts = nil
		for _, s := range accountScopes {
			t.texts = append(t.texts, policyText(s, accountTable[:], t.account[:]))
		}
	}
}

// policyText is a RateLimit-Policy: "book";q=200;w=10.
func policyText(s *Scope, table []limit, windows []Window) string {
	var b strings.Builder
	for i, row := range s.rows {
		if i > 0 {
			b.WriteString(", ")
		}
		w := windows[row]
		fmt.Fprintf(&b, "%q;q=%d;w=%d", table[row].name, w.Limit, w.Period/time.Second)
	}
	return b.String()
}

// tier returns the limits of an account.
func (p *Policy) tier(a engine.Address) *tier {
	if len(p.wallets) == 0 {
		return &p.tiers[0]
	}
	return &p.tiers[p.wallets[a]]
}

// Verdict is what the windows of a request say.
type Verdict struct {
	Wait   time.Duration // 0: it is let in
	Policy string        // its windows, as RateLimit-Policy
	Name   string        // of the window that has the least left, for its limit
	Left   uint32        // in that window
	More   time.Duration // until that window has more
	Tier   string        // of the account

	Row uint8 // of the table of windows, that of Name
}

// AppendRateLimit appends the verdict as RateLimit: "book";r=150;t=10.
func (v *Verdict) AppendRateLimit(dst []byte) []byte {
	dst = append(append(append(dst, '"'), v.Name...), `";r=`...)
	dst = strconv.AppendUint(dst, uint64(v.Left), 10)
	return strconv.AppendInt(append(dst, ";t="...), Seconds(v.More), 10)
}

// Seconds returns how many whole seconds one must wait for d to pass.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
