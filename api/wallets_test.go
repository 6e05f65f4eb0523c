package api

import (
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wallets"
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

// TestProfiles: what the file of profiles says is told with holders and by /public-profile.
func TestProfiles(t *testing.T) {
	n := newNode(t)
	n.run()
	n.ladder(1)
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		t.Fatal("the index lags")
	}
	path := filepath.Join(t.TempDir(), "profiles.json")
	wallet := trader("maker").Hex()
	n.must(os.WriteFile(path, []byte(`[{"proxyWallet":"`+wallet+`","name":"Max \"M\"","bio":"b","pseudonym":"p",`+
		`"profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png",`+
		`"displayUsernamePublic":true}]`), 0o600))
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	profiles, err := wallets.OpenProfiles(path, quiet)
	n.must(err)
	h := n.again(func(o *Options) { o.Profiles = profiles })
	ctx := ask("GET", "/holders?market="+listing(1, 0).Condition.Hex())
	want := `"displayUsernamePublic":true,"outcomeIndex":0,"name":"Max \"M\"","pseudonym":"p",` +
		`"bio":"b","profileImage":"https://x/1.png","profileImageOptimized":"https://x/2.png"}`
	if h.Public(ctx); !strings.Contains(string(ctx.Response.Body()), want) {
		t.Errorf("%s\nhas no %s", ctx.Response.Body(), want)
	}
	ctx = ask("GET", "/public-profile?address=0x"+strings.ToUpper(wallet[2:]))
	if h.Public(ctx); string(ctx.Response.Body()) != `{"proxyWallet":"`+
		checksum(trader("maker"))+`","displayUsernamePublic":true,"name":"Max \"M\"",`+
		`"pseudonym":"p","bio":"b","profileImage":"https://x/1.png",`+
		`"profileImageOptimized":"https://x/2.png"}` {
		t.Errorf("the profile is %s", ctx.Response.Body())
	}
}

// FuzzWalletQueries: whatever is asked, the answer is a list, an object, or an error of this
// family.
func FuzzWalletQueries(f *testing.F) {
	n := newNode(f)
	n.run()
	n.ladder(2)
	for _, r := range n.handler.wallets.Routes() {
		f.Add(r.Path, "user="+trader("maker").Hex()+"&limit=3&market="+
			listing(1, 0).Condition.Hex())
		f.Add(r.Path, "sortBy=TITLE&sortDirection=asc&title=%ff&user=0x&minBalance=1e9&eventId=1,2")
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
			if !strings.HasPrefix(text, "unknown_field: ") && wire.FamilyOf(ctx.Path()) == wire.Wallets &&
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
	const maxMarkets = 100
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
