package api

import (
	"io"
	"log/slog"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// again makes another Handler of the same node, with other options.
func (n *node) again(change func(*Options)) *Handler {
	n.t.Helper()
	o := n.handler.o
	change(&o)
	h, err := New(o)
	n.must(err)
	h.patience = n.handler.patience
	return h
}

// TestAwaitIndex: how long a read waits for the index, where no test gives it longer.
func TestAwaitIndex(t *testing.T) {
	const want = 250 * time.Millisecond
	if got := newNode(t).handler.patience; got != want || awaitIndex != want {
		t.Errorf("%v, and awaitIndex is %v, want %v", got, awaitIndex, want)
	}
}

// TestPageWaitsForTheIndex: who asks for a wallet right after it was written is not sent away as
// long as the index may still come to it.
func TestPageWaitsForTheIndex(t *testing.T) {
	n := newNode(t)
	came := make(chan struct{})
	h := n.again(func(o *Options) {
		o.WalletAllow = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		o.Client = func(*fasthttp.RequestCtx) netip.Addr {
			close(came)
			return netip.MustParseAddr("10.1.2.3")
		}
	})
	h.patience = time.Minute
	n.do(engine.Command{Kind: engine.List, Listing: listing(1, 100)})
	n.fund("alice", 1, 100, 10)
	ctx, done := ask("GET", "/positions?user="+trader("alice").Hex()), make(chan struct{})
	go func() {
		defer close(done)
		h.Public(ctx)
	}()
	<-came
	select {
	case <-done:
		t.Fatalf("answered without the index: %d %s", ctx.Response.StatusCode(),
			ctx.Response.Body())
	case <-time.After(20 * time.Millisecond): // it waits for an index that does not run yet
	}
	n.run()
	<-done
	body := string(ctx.Response.Body())
	if ctx.Response.StatusCode() != 200 || !strings.Contains(body, `"size":10`) {
		t.Errorf("%d %s", ctx.Response.StatusCode(), body)
	}
}

// TestWalletAllow: the list shuts the routes about wallets, and no others.
func TestWalletAllow(t *testing.T) {
	n := newNode(t)
	n.run()
	n.ladder(1)
	client := netip.MustParseAddr("10.1.2.3")
	h := n.again(func(o *Options) {
		o.WalletAllow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"),
			netip.MustParsePrefix("2001:db8::/32")}
		o.Client = func(*fasthttp.RequestCtx) netip.Addr { return client }
	})
	user := "?user=" + trader("maker").Hex()
	targets := []string{"/positions" + user, "/closed-positions" + user, "/value" + user,
		"/traded" + user, "/activity" + user, "/trades", "/data-api/trades",
		"/holders?market=" + listing(1, 0).Condition.Hex(), "/live-volume?id=1",
		"/oi?market=" + listing(1, 0).Condition.Hex(), "/v1/leaderboard", "/v1/positions/combos",
		"/v1/market-positions?market=" + listing(1, 0).Condition.Hex()}
	for from, want := range map[string]int{
		"10.1.2.3": 200, "10.2.2.3": 401, "2001:db8::1": 200, "127.0.0.1": 401,
	} {
		client = netip.MustParseAddr(from)
		for _, target := range targets {
			ctx := ask("GET", target)
			h.Public(ctx)
			if ctx.Response.StatusCode() != want {
				t.Errorf("%s from %s: %d %s", target, from, ctx.Response.StatusCode(),
					ctx.Response.Body())
			}
			refused := `{"error":"unauthorized: ip_not_allowlisted"}`
			if want == 401 && string(ctx.Response.Body()) != refused {
				t.Errorf("%s: %s", target, ctx.Response.Body())
			}
		}
		ctx := ask("GET", "/book?token_id=10")
		if h.Public(ctx); ctx.Response.StatusCode() != 200 {
			t.Errorf("a book: %d", ctx.Response.StatusCode())
		}
	}
	_, err := New(Options{WalletAllow: []netip.Prefix{netip.MustParsePrefix("::/0")}})
	if err == nil || !strings.Contains(err.Error(), "Options.Client is not set") {
		t.Errorf("a list without Client: %v", err)
	}
}

// TestProfiles: what the file says is told, a change of it is seen, nonsense changes nothing.
func TestProfiles(t *testing.T) {
	n := newNode(t)
	n.run()
	n.ladder(1)
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		t.Fatal("the index lags")
	}
	path := filepath.Join(t.TempDir(), "profiles.json")
	at := time.Unix(1_700_000_000, 0)
	write := func(text string) {
		n.must(os.WriteFile(path, []byte(text), 0o600))
		at = at.Add(time.Second)
		n.must(os.Chtimes(path, at, at))
	}
	wallet := trader("maker").Hex()
	write(`[{"proxyWallet":"` + wallet + `","name":"Max \"M\"","bio":"b","pseudonym":"p",` +
		`"profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png",` +
		`"displayUsernamePublic":true}]`)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	profiles, err := OpenProfiles(path, quiet)
	n.must(err)
	h := n.again(func(o *Options) { o.Profiles = profiles })
	told := func(want string) {
		t.Helper()
		profiles.refresh()
		ctx := ask("GET", "/holders?market="+listing(1, 0).Condition.Hex())
		if h.Public(ctx); !strings.Contains(string(ctx.Response.Body()), want) {
			t.Errorf("%s\nhas no %s", ctx.Response.Body(), want)
		}
	}
	told(`"displayUsernamePublic":true,"outcomeIndex":0,"name":"Max \"M\"","pseudonym":"p",` +
		`"bio":"b","profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png"}`)
	ctx := ask("GET", "/public-profile?address=0x"+strings.ToUpper(wallet[2:]))
	if h.Public(ctx); string(ctx.Response.Body()) != `{"proxyWallet":"`+
		checksum(trader("maker"))+`","displayUsernamePublic":true,"name":"Max \"M\"",`+
		`"pseudonym":"p","bio":"b","profileImage":"https://x/1.png",`+
		`"profileImageOptimized":"https://x/2.png"}` {
		t.Errorf("the profile is %s", ctx.Response.Body())
	}
	write(`[{"proxyWallet":"` + strings.ToUpper(wallet[2:]) + `"}]`)
	told(`"name":"Max`)
	write(`[{"proxyWallet":"` + wallet + `","name":"Moritz"}]`)
	told(`"displayUsernamePublic":false,"outcomeIndex":0,"name":"Moritz","pseudonym":""`)
	n.must(os.Remove(path))
	told(`"name":"Moritz"`)
	write(`[]`)
	told(`"name":""`)
	for _, bad := range []string{
		``, `{}`, `[{"name":"x"}]`, `[{"proxyWallet":"0x12"}]`, `[] []`,
		`[{"proxyWallet":"` + wallet + `","nam":"x"}]`,
		`[{"proxyWallet":"` + wallet + `"},{"proxyWallet":"` + strings.ToUpper(wallet[2:]) + `"}]`,
		`[{"proxyWallet":"` + wallet + `"},{"proxyWallet":"` + wallet + `"}]`,
		`[{"proxyWallet":"` + wallet + `","bio":"` + strings.Repeat("b", 2001) + `"}]`,
	} {
		write(bad)
		if _, err := OpenProfiles(path, quiet); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%.80s: %v", bad, err)
		}
	}
	if _, err := OpenProfiles(path+"x", quiet); err == nil {
		t.Error("there is no such file")
	}
}

// TestRatio: against exact fractions, far beyond 64 bits, and where it saturates.
func TestRatio(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		a := r.Int64() >> r.IntN(63)
		if r.IntN(2) == 0 {
			a = -a
		}
		by, over := uint64(r.IntN(1_000_001)), uint64(r.Int64()>>r.IntN(63))
		want := int64(0)
		if over != 0 {
			x := new(big.Int).Mul(big.NewInt(a), new(big.Int).SetUint64(by))
			half, whole := new(big.Int).SetUint64(over/2), new(big.Int).SetUint64(over)
			sign := x.Sign()
			x.Quo(x.Add(x.Abs(x), half), whole)
			if want = math.MaxInt64; x.IsInt64() {
				want = x.Int64()
			}
			if sign < 0 {
				want = -want
			}
		}
		if got := ratio(a, by, over); got != want {
			t.Fatalf("ratio(%d, %d, %d) = %d, want %d", a, by, over, got, want)
		}
	}
	for v, want := range map[int64]int64{4999: 0, 5000: 1, -4999: 0, -5000: -1, 10_000: 1} {
		if got := cents(v); got != want {
			t.Errorf("cents(%d) = %d", v, got)
		}
	}
}

// TestAmounts: decimal numbers become base units exactly, and what is finer is rounded up.
func TestAmounts(t *testing.T) {
	for text, want := range map[string]int64{
		"": 7, "0": 0, "1": 1e6, "0.1": 1e5, "0.000001": 1, "0.0000001": 1, "1e-6": 1,
		"123456789.012345": 123456789012345, "0.29": 290_000, "+1": 1e6, "1E3": 1e9,
		"-1": -1, "1_0": -1, "0x10": -1, "inf": -1, "nan": -1, "1e30": -1, " 1": -1, ".": -1,
		"-0": 0, "1,5": -1,
	} {
		ctx := ask("GET", "/")
		ctx.QueryArgs().Set("n", text)
		a := askFor(ctx, "n")
		got := a.amount("n", 7)
		if bad := a.bad != nil; bad != (want < 0) || !bad && got != want {
			t.Errorf("%q: %d, bad %v, want %d", text, got, bad, want)
		}
	}
}

// TestContainsFold: any letter case, and letters beyond ASCII.
func TestContainsFold(t *testing.T) {
	for _, c := range []struct {
		s, part string
		want    bool
	}{
		{"Will it Rain?", "rain?", true}, {"Will it Rain?", "", true}, {"", "a", false},
		{"Will it Rain?", "rain!", false}, {"abab", "babb", false}, {"ÉTÉ", "été", true},
		{"Will it rain in ÖREBRO?", "örebro", true}, {"ab", "abc", false},
	} {
		if got := containsFold(c.s, c.part); got != c.want {
			t.Errorf("%q in %q: %v", c.part, c.s, got)
		}
	}
}

// FuzzWalletQueries: whatever is asked, the answer is a list, an object, or an error of this
// family.
func FuzzWalletQueries(f *testing.F) {
	n := newNode(f)
	n.run()
	n.ladder(2)
	for _, r := range n.handler.walletRoutes() {
		f.Add(r.path, "user="+trader("maker").Hex()+"&limit=3&market="+
			listing(1, 0).Condition.Hex())
		f.Add(r.path, "sortBy=TITLE&sortDirection=asc&title=%ff&user=0x&minBalance=1e9&eventId=1,2")
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		ctx := ask("GET", "/positions")
		ctx.URI().SetPath(path)
		ctx.URI().SetQueryString(query)
		n.handler.Public(ctx)
		body := ctx.Response.Body()
		switch ctx.Response.StatusCode() {
		case 200, 404:
		case 400:
			text, _ := strings.CutPrefix(string(body), `{"error":"`)
			if !strings.HasPrefix(text, "unknown_field: ") && familyOf(ctx.Path()) == wire.Wallets &&
				!strings.HasPrefix(text, "missing_field: ") &&
				!strings.HasPrefix(text, "invalid_field: ") {
				t.Errorf("%s?%s: %s", path, query, body)
			}
		case 500, 503:
			t.Errorf("%s?%s: %s", path, query, body)
		}
	})
}

// TestManyMarkets: an answer is bounded by markets times holders.
func TestManyMarkets(t *testing.T) {
	s := newScript(t)
	s.node.run()
	var ids []string
	for m := range maxMarkets + 1 {
		s.do(engine.Command{Kind: engine.List, Listing: listing(m+1, 100)})
		ids = append(ids, listing(m+1, 0).Condition.Hex())
	}
	for _, c := range []struct {
		count      int
		more, want string
	}{
		{maxMarkets, "", `[{"token":`}, {maxMarkets + 1, "", `{"error":"invalid_field: market"}`},
		{20, "&limit=500", `[{"token":`}, {21, "&limit=500", `{"error":"invalid_field: limit"}`},
	} {
		ctx := ask("GET", "/holders?market="+strings.Join(ids[:c.count], ",")+c.more)
		if s.handler.Public(ctx); !strings.HasPrefix(string(ctx.Response.Body()), c.want) {
			t.Errorf("%d markets%s: %.100s", c.count, c.more, ctx.Response.Body())
		}
	}
}

// TestComplaintsInOrder: of several mistakes the one that is told does not depend on the order
// in which a client writes its parameters: a name that nobody knows, then what every request
// needs, then a value, then what one parameter needs beside it.
func TestComplaintsInOrder(t *testing.T) {
	n := newNode(t)
	user := "user=" + trader("nobody").Hex()
	market := "market=" + listing(1, 100).Condition.Hex()
	for _, c := range []struct{ path, query, want string }{
		{"/positions", "limit=x", "missing_field: user"},
		{"/positions", "limit=x&nonsense=1", "unknown_field: nonsense"},
		{"/positions", "title=" + strings.Repeat("t", 101) + "&" + user, "invalid_field: title"},
		{"/positions", user + "&mergeable=maybe", "invalid_field: mergeable"},
		{"/closed-positions", "sortBy=x", "missing_field: user"},
		{"/closed-positions", "sortBy=x&" + user, "invalid_field: sortBy"},
		{"/closed-positions", "sizeThreshold=1", "unknown_field: sizeThreshold"},
		{"/holders", "limit=x", "missing_field: market"},
		{"/holders", "limit=x&" + market, "invalid_field: limit"},
		{"/holders", user, "unknown_field: user"},
		{"/value", market, "missing_field: user"},
		{"/value", "market=x&" + user, "invalid_field: market"},
		{"/value", "limit=1", "unknown_field: limit"},
		{"/traded", "", "missing_field: user"},
		{"/traded", "user=0x12", "invalid_field: user"},
		{"/traded", "market=x", "unknown_field: market"},
		{"/activity", "type=x&start=x", "missing_field: user"},
		{"/activity", "end=x&" + user, "invalid_field: end"},
		{"/activity", user + "&sortDirection=up", "invalid_field: sortDirection"},
		{"/activity", "takerOnly=true&type=x", "unknown_field: takerOnly"},
		{"/trades", "filterType=XX", "invalid_field: filterType"},
		{"/trades", "filterType=XX&filterAmount=1", "invalid_field: filterType"},
		{"/trades", "filterAmount=-1", "invalid_field: filterAmount"},
		{"/trades", "filterType=CASH&filterAmount=x", "invalid_field: filterAmount"},
		{"/trades", "filterType=CASH", "missing_field: filterAmount"},
		{"/trades", "filterAmount=1", "missing_field: filterType"},
		{"/trades", "filterType=CASH&limit=x", "invalid_field: limit"},
		{"/trades", "filterType=CASH&sortBy=x", "unknown_field: sortBy"},
	} {
		parts := strings.Split(c.query, "&")
		slices.Reverse(parts)
		for _, query := range []string{c.query, strings.Join(parts, "&")} {
			want := `{"error":"` + c.want + `"}`
			if got := string(n.get(c.path+"?"+query, fasthttp.StatusBadRequest)); got != want {
				t.Errorf("%s?%s: %s, want %s", c.path, query, got, want)
			}
		}
	}
}
