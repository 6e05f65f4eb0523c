package ingress

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"clobd/ingress/limits"
)

// client is somebody at an address, behind a proxy that says which.
type client struct {
	*house
	name, from string
}

// signs returns a request that the client has signed.
func (c client) signs(w rawRequest, options ...string) string {
	c.t.Helper()
	w.headers = append(w.headers, "X-Forwarded-For: "+c.from)
	c.signed(&w, c.name, &words{options})
	return w.String()
}

func statusOf(h *house, raw string) string {
	h.t.Helper()
	status, _, _ := strings.Cut(h.send(raw), "\n")
	return status
}

// behindProxy starts a house with limits whose clients come through a proxy.
func behindProxy(t *testing.T) *house {
	h := newHouse(t, func(o *Options) {
		o.Windows = limits.New(o.Now)
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	h.server.rests = limits.NewRests(0)
	return h
}

// TestFailedKeysAreNotChecked: after some wrong signatures even the right one is not looked at, and
// the answer says when to come again. From elsewhere the key is good all the time.
func TestFailedKeysAreNotChecked(t *testing.T) {
	h := behindProxy(t)
	const here, there = "192.0.2.1", "192.0.2.2"
	read := rawRequest{method: "GET", path: "/data/orders"}
	bad := client{h, "alice", here}.signs(read, "mac="+strings.Repeat("0", 64))
	for i := range 20 {
		if got := statusOf(h, bad); got != "401" {
			t.Fatalf("wrong signature %d: %s", i, got)
		}
	}
	if got := h.send(client{h, "alice", here}.signs(read)); !strings.HasPrefix(got, "429\n") ||
		!strings.Contains(got, "\nRetry-After: ") || !strings.Contains(got, "authentication failed") {
		t.Errorf("a good signature after twenty wrong ones: %s", got)
	}
	if got := statusOf(h, client{h, "alice", there}.signs(read)); got != "200" {
		t.Errorf("the same from elsewhere: %s", got)
	}
	for i := range 100 { // many keys, each a few times
		h.send(client{h, "mallory", there}.signs(read, "apikey="+strings.Repeat("x", 1+i/5)))
	}
	if got := statusOf(h, client{h, "bob", there}.signs(read)); got != "429" {
		t.Errorf("a new key at an address that has tried many: %s", got)
	}
	if got := statusOf(h, client{h, "alice", there}.signs(read)); got != "200" {
		t.Errorf("a key that was good there: %s", got)
	}
}

// TestGeneralStopsWritesUnchecked: where an address has used up its general window, a write is
// refused before its signature is checked, and so is a false cancel. A true one passes, however
// many false ones came.
func TestGeneralStopsWritesUnchecked(t *testing.T) {
	h := behindProxy(t)
	const here = "192.0.2.1"
	cancel := rawRequest{method: "DELETE", path: "/cancel-all"}
	if got := statusOf(h, client{h, "alice", here}.signs(cancel)); got != "200" {
		t.Fatalf("the first cancel: %s", got)
	}
	from, order := netip.MustParseAddr(here), limits.General
	for h.server.windows.Address(from, order).Wait == 0 {
	}
	post := rawRequest{method: "POST", path: "/order", body: "{}"}
	for range 30 { // the twentieth failure would end the checks of the key
		if got := statusOf(h, client{h, "bob", here}.signs(post, "mac=00")); got != "429" {
			t.Fatalf("a write in a full window: %s", got)
		}
	}
	for range 120 {
		if got := statusOf(h, client{h, "mallory", here}.signs(cancel, "mac=00")); got != "429" {
			t.Fatalf("a false cancel in a full window: %s", got)
		}
	}
	if got := statusOf(h, client{h, "alice", here}.signs(cancel)); got != "200" {
		t.Errorf("a true cancel in a full window: %s", got)
	}
}

// TestFalseCancelsCount: a cancel that nobody sent counts with all other traffic.
func TestFalseCancelsCount(t *testing.T) {
	h := behindProxy(t)
	const here = "192.0.2.1"
	naked := rawRequest{method: "DELETE", path: "/order",
		headers: []string{"X-Forwarded-For: " + here}}
	from, order := netip.MustParseAddr(here), limits.General
	for range 4999 {
		h.server.windows.Address(from, order)
	}
	if first, second := statusOf(h, naked.String()), statusOf(h, naked.String()); first != "401" ||
		second != "429" {
		t.Errorf("the last request that has room: %s, the next: %s", first, second)
	}
	cancel := rawRequest{method: "DELETE", path: "/cancel-all"}
	if got := statusOf(h, client{h, "alice", here}.signs(cancel)); got != "200" {
		t.Errorf("a true cancel: %s", got)
	}
}

// TestSignatureFlood: orders with a wrong signature use up their own budget. Then they are
// refused unverified; the account's cancels and everybody else's orders pass.
func TestSignatureFlood(t *testing.T) {
	h := behindProxy(t)
	const here, there = "192.0.2.1", "192.0.2.2"
	for _, name := range []string{"alice", "bob"} {
		h.run([]string{"fund " + name + " 1000"})
	}
	order := func(name, from string, options ...string) string {
		list := append([]string{name, "buy", "A", "10", "@", "0.40"}, options...)
		x, o := h.parseOrder(&words{list})
		return client{h, name, from}.signs(rawRequest{method: "POST", path: "/order",
			body: h.orderBody(x, name, o)})
	}
	if got := statusOf(h, order("bob", here)); got != "200" {
		t.Fatalf("an order: %s", got)
	}
	wrong, verified := order("alice", here, "corrupt"), 0
	for range 200 {
		if got := statusOf(h, wrong); got == "400" {
			verified++
		} else if got != "429" {
			t.Fatalf("a wrong signature: %s", got)
		}
	}
	if verified != 50 {
		t.Errorf("%d wrong signatures were checked, want 50", verified)
	}
	for _, from := range []string{here, there} {
		if got := h.send(order("alice", from)); !strings.HasPrefix(got, "429\n") ||
			!strings.Contains(got, "orderHash") {
			t.Errorf("an order of the account at %s: %s", from, got)
		}
	}
	if got := statusOf(h, order("bob", here, "salt=2")); got != "200" {
		t.Errorf("a neighbour's order: %s", got)
	}
	if got := statusOf(h, client{h, "alice", here}.signs(rawRequest{method: "DELETE",
		path: "/cancel-all"})); got != "200" {
		t.Errorf("the account's cancel: %s", got)
	}
	h.late.Store(11)
	if got := statusOf(h, order("alice", here)); got != "200" {
		t.Errorf("an order after the wait: %s", got)
	}
}

// TestPauseHoldsNoSeat: while a caller with wrong signatures waits for his refusal, an order of
// somebody else has the only seat.
func TestPauseHoldsNoSeat(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := newHouse(t, func(o *Options) { o.Windows = limits.New(o.Now) })
		// Of the clock of the bubble, which goes on when all wait.
		h.server.rests = limits.NewRests(time.Minute)
		for _, name := range []string{"alice", "bob"} {
			h.run([]string{"fund " + name + " 1000"})
		}
		h.run([]string{"order alice buy A 10 @ 0.40 corrupt times=50"})
		began, refused := time.Now(), make(chan string)
		go func() { refused <- h.run([]string{"order alice buy A 10 @ 0.40"}) }()
		synctest.Wait()
		if got := h.run([]string{"order bob buy A 10 @ 0.40"}); !strings.HasPrefix(got, "200\n") {
			t.Errorf("an order beside a pause: %s", got)
		}
		if waited := time.Since(began); waited >= time.Minute {
			t.Errorf("an order waited %v for the pause of another caller", waited)
		}
		if got := <-refused; !strings.HasPrefix(got, "429\n") || time.Since(began) < time.Minute {
			t.Errorf("after %v: %s", time.Since(began), got)
		}
	})
}

// TestPauseOfEarlySeat: a connection whose orders take their seats before they are parsed gives the
// seat back when its key is wrong and the refusal comes after a pause.
func TestPauseOfEarlySeat(t *testing.T) {
	h := newHouse(t, func(o *Options) { o.Windows = limits.New(o.Now) })
	h.server.rests = limits.NewRests(3 * time.Second) // the order of bob must be answered before
	for _, name := range []string{"alice", "bob"} {
		h.run([]string{"fund " + name + " 1000"})
	}
	good := h.orderWire("alice buy A 10 @ 0.40")
	name, _, _ := strings.Cut(good[strings.Index(good, "_SIGNATURE: "):], "\r\n")
	wrong := strings.Replace(good, name, "_SIGNATURE: "+strings.Repeat("A", 43)+"=", 1)
	c := serveTCP(t, h)()
	if got := ask(t, c, good); got[:4] != "200\n" {
		t.Fatalf("a good order: %s", got)
	}
	for range 20 {
		if got := ask(t, c, wrong); got[:4] != "401\n" {
			t.Fatalf("a wrong key: %s", got)
		}
	}
	refused := make(chan string, 1)
	go func() { refused <- ask(t, c, wrong) }()
	awaitBusy(t, h, 1)
	if got := h.run([]string{"order bob buy A 10 @ 0.40"}); !strings.HasPrefix(got, "200\n") {
		t.Errorf("an order beside a pause: %s", got)
	}
	select {
	case got := <-refused:
		t.Errorf("refused before an order beside it was answered: %s", got)
	default:
	}
	if got := <-refused; got[:4] != "429\n" {
		t.Errorf("after the pause: %s", got)
	}
}
