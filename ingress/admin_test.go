package ingress

import (
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"clobd/engine"
	"clobd/ingress/auth"
)

// openHouse is a house whose door has answered once: one that is closed before anybody listens at
// its door never ends.
func openHouse(t *testing.T, change func(*Options)) *house {
	t.Helper()
	h := newHouse(t, change)
	if got := h.run([]string{"http GET /ok"}); !strings.HasPrefix(got, "200\n") {
		t.Fatal(got)
	}
	return h
}

// fundRequest is an operator's request for a trader by name.
func fundRequest(name, more string) []string {
	return []string{`admin /admin/fund {"wallet":"` + auth.Checksum(trader(name).Address) +
		`","amount":"100"` + more + `}`}
}

// owner is who may trade for a trader's own wallet, 0 if that is open.
func (h *house) owner(name string) (wallet, owner engine.WalletNo) {
	wallet, _ = h.board.Directory.Wallet(trader(name).Address)
	return wallet, h.board.Directory.Owner(wallet)
}

// TestFundedWalletIsNobodysPrey: where wallets are linked on first use, one that the operator funds
// belongs to itself before anybody else can sign for it.
func TestFundedWalletIsNobodysPrey(t *testing.T) {
	h := openHouse(t, func(o *Options) { o.LinkOnFirstUse = true })
	if got := h.run(fundRequest("alice", `,"ref":"one"`)); !strings.HasPrefix(got, "200\n") {
		t.Fatal(got)
	}
	if wallet, owner := h.owner("alice"); owner != wallet || wallet == 0 {
		t.Errorf("wallet %d belongs to %d", wallet, owner)
	}
	const stolen = "order bob buy A 10 @ 0.40 type=1 maker=alice"
	got := h.run([]string{stolen})
	if !strings.Contains(got, `"code":"maker_not_allowed"`) || !strings.HasSuffix(got, "state same\n") {
		t.Errorf("a stranger's order: %s", got)
	}
	if got := h.run([]string{"order alice buy A 10 @ 0.40"}); !strings.HasPrefix(got, "200\n") {
		t.Errorf("her own order: %s", got)
	}
	got = h.run(fundRequest("alice", `,"ref":"one"`))
	if !strings.Contains(got, `"repeated":true`) || !strings.HasSuffix(got, "state same\n") {
		t.Errorf("the same ref again: %s", got)
	}
}

// TestFundAndLinkEnterTogether: the Link does not wait until everybody can see the money.
func TestFundAndLinkEnterTogether(t *testing.T) {
	var h *house
	var visible, linked atomic.Bool
	release := func() {}
	h = openHouse(t, func(o *Options) {
		o.LinkOnFirstUse = true
		o.Quarantined = func(c *engine.Command) bool {
			switch {
			case c.Kind == engine.Deposit:
				release = h.block() // until the Link comes
			case c.Kind == engine.Link && !linked.Swap(true):
				wallet, _ := h.owner("alice")
				visible.Store(wallet != 0)
				release()
			}
			return false
		}
	})
	got := h.run(fundRequest("alice", ""))
	release()
	if !strings.HasPrefix(got, "200\n") || !linked.Load() || visible.Load() {
		t.Errorf("linked %v, money seen before %v: %s", linked.Load(), visible.Load(), got)
	}
}

// TestFundKeepsTheOwner: the operator's own link counts, and without linking on first use a funded
// wallet is linked to nobody.
func TestFundKeepsTheOwner(t *testing.T) {
	h := openHouse(t, func(o *Options) { o.LinkOnFirstUse = true })
	h.run([]string{"link safe alice"})
	h.run(fundRequest("safe", ""))
	_, owner := h.owner("safe")
	if alice, _ := h.owner("alice"); owner != alice || owner == 0 {
		t.Errorf("safe belongs to %d, linked to %d", owner, alice)
	}
	h = openHouse(t, nil)
	h.run(fundRequest("alice", ""))
	if wallet, owner := h.owner("alice"); wallet == 0 || owner != 0 {
		t.Errorf("wallet %d belongs to %d", wallet, owner)
	}
}

// TestFundLinksAgain: a Link that did not enter with its Deposit is tried again at once, and with
// the operator's next request.
func TestFundLinksAgain(t *testing.T) {
	var refuse atomic.Int32
	h := openHouse(t, func(o *Options) {
		o.LinkOnFirstUse = true
		o.Quarantined = func(c *engine.Command) bool {
			return c.Kind == engine.Link && refuse.Add(-1) >= 0
		}
	})
	refuse.Store(1)
	h.run(fundRequest("alice", ""))
	if wallet, owner := h.owner("alice"); wallet == 0 || owner != wallet {
		t.Errorf("wallet %d belongs to %d", wallet, owner)
	}
	refuse.Store(100)
	h.run(fundRequest("bob", `,"ref":"one"`))
	if wallet, owner := h.owner("bob"); wallet == 0 || owner != 0 {
		t.Fatalf("wallet %d belongs to %d", wallet, owner)
	}
	refuse.Store(0)
	h.run(fundRequest("bob", `,"ref":"one"`))
	if wallet, owner := h.owner("bob"); owner != wallet {
		t.Errorf("wallet %d belongs to %d", wallet, owner)
	}
}

// TestWrongTokensAreBounded: after some wrong tokens an address is told to wait; the right one is
// taken all the time.
func TestWrongTokensAreBounded(t *testing.T) {
	h := newHouse(t, nil)
	door := h.server.Admin()
	send := func(token, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/admin/collect", strings.NewReader(`{"wallet":"0x1"}`))
		r.Header.Set("Authorization", "Bearer "+token)
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	counts := map[int]int{}
	for range 100 { // whoever sends no token does not guess
		r := httptest.NewRequest("GET", "/debug/pprof/", nil)
		r.RemoteAddr = "192.0.2.1:4000"
		w := httptest.NewRecorder()
		if door.ServeHTTP(w, r); w.Code != 401 {
			t.Fatalf("without a token: %d", w.Code)
		}
	}
	for range 100 {
		counts[send("a guess", "192.0.2.1:4000").Code]++
	}
	if counts[401] != 20 || counts[429] != 80 {
		t.Errorf("a hundred wrong tokens: %v, want 20 of 401 and 80 of 429", counts)
	}
	if w := send("a guess", "192.0.2.1:4001"); w.Header().Get("Retry-After") != "10" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := send("a guess", "192.0.2.2:4000"); w.Code != 401 {
		t.Errorf("from elsewhere: %d", w.Code)
	}
	if w := send(testAdmin, "192.0.2.1:4000"); w.Code == 401 || w.Code == 429 {
		t.Errorf("the right token: %d %s", w.Code, w.Body)
	}
}
