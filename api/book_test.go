package api

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"clobd/engine"
)

// shared reads a file of ../shared/data beside the repository, or skips.
func shared(t testing.TB, name string) []byte {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	path := filepath.Join(dir, "..", "shared", "data", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no %s: skipped", path)
	}
	return text
}

// TestBookHashVectors: the hashes that other people's tests expect.
func TestBookHashVectors(t *testing.T) {
	var vectors struct {
		Books []struct {
			JSON string `json:"json_hashed"`
			Hash string `json:"hash"`
		} `json:"book_hash_sha1"`
	}
	if err := json.Unmarshal(shared(t, "vectors.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors.Books) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors.Books {
		if got := bookHash([]byte(v.JSON)); string(got[:]) != v.Hash {
			t.Errorf("%s: %s, want %s", v.JSON, got, v.Hash)
		}
	}
	t.Logf("%d agree", len(vectors.Books))
}

// TestBookHashKnown is one known answer that needs no other files.
func TestBookHashKnown(t *testing.T) {
	const text = `{"market":"0xaabbcc","asset_id":"100","timestamp":"123456789","hash":"",` +
		`"bids":[{"price":"0.3","size":"100"},{"price":"0.4","size":"100"}],` +
		`"asks":[{"price":"0.6","size":"100"},{"price":"0.7","size":"100"}],` +
		`"min_order_size":"100","tick_size":"0.01","neg_risk":false,"last_trade_price":"0.5"}`
	got := bookHash([]byte(text))
	if want := "0458ea5755c9f73d64a14636fa5c36ed460ec394"; string(got[:]) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// wireBook is a book as a client reads it, its keys in the order in which clients write them again.
type wireBook struct {
	Market    string      `json:"market"`
	AssetID   string      `json:"asset_id"`
	Timestamp string      `json:"timestamp"`
	Hash      string      `json:"hash"`
	Bids      []wireLevel `json:"bids"`
	Asks      []wireLevel `json:"asks"`
	MinSize   string      `json:"min_order_size"`
	Tick      string      `json:"tick_size"`
	NegRisk   bool        `json:"neg_risk"`
	Last      string      `json:"last_trade_price"`
}

type wireLevel struct {
	Price string `json:"price"`
	Size  string `json:"size"`
}

// readBook does what public clients do: parse, empty the hash, write again, hash.
func readBook(t testing.TB, text []byte) wireBook {
	t.Helper()
	var b wireBook
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	hash := b.Hash
	b.Hash = ""
	again, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha1.Sum(again); hex.EncodeToString(sum[:]) != hash {
		t.Fatalf("hash %s of %s\nhashes to %x as %s", hash, text, sum, again)
	}
	b.Hash = hash
	return b
}

// TestBookAgain: what a client parses and writes again has the hash that it was sent.
func TestBookAgain(t *testing.T) {
	for _, tick := range []engine.Price{1000, 100, 50, 25, 10, 1} {
		n := newNode(t)
		n.do(engine.Command{Kind: engine.List, Listing: listing(1, tick)})
		w := n.fund("maker", 1, 1_000_000, 1_000_000)
		for i := range 4 {
			away := engine.Price(i+1) * tick
			n.do(place(fmt.Sprint("b", i), w, quote{1, 0, engine.Buy, 12345 + i, 5000 - away}))
			n.do(place(fmt.Sprint("s", i), w, quote{1, 1, engine.Buy, 500 + i, 5000 - away}))
		}
		for o := range engine.Outcome(2) {
			s, _, _ := n.board.Book(small(10 + int(o)))
			b := readBook(t, renderBook(s, o))
			if len(b.Bids) != 4 || len(b.Asks) != 4 || b.Tick != tick.String() {
				t.Errorf("tick %s: %+v", tick, b)
			}
			bid, ask := s.Best(o)
			if b.Bids[3].Price != bid.String() || b.Asks[3].Price != ask.String() {
				t.Errorf("tick %s: best prices %s %s are not last: %+v", tick, bid, ask, b)
			}
		}
	}
}

// TestBookOnce: the bytes of a book are made once per version and outcome.
func TestBookOnce(t *testing.T) {
	n := newNode(t)
	n.ladder(2)
	first, _, _ := n.board.Book(small(10))
	text := first.Text(0, renderBook)
	if again := first.Text(0, renderBook); &again[0] != &text[0] {
		t.Error("rendered twice")
	}
	if other := first.Text(1, renderBook); bytes.Equal(other, text) {
		t.Error("both outcomes have the same book")
	}
	n.do(engine.Command{Kind: engine.Cancel, ID: orderID("b0"), Owner: 1})
	next, _, _ := n.board.Book(small(10))
	if bytes.Equal(next.Text(0, renderBook), text) {
		t.Error("the old version is shown")
	}
}

// TestBookWhilePublished: readers beside the one writer see a whole book, never an older one.
func TestBookWhilePublished(t *testing.T) {
	s := newScript(t)
	s.ladder(1)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			last := ""
			for {
				select {
				case <-stop:
					return
				default:
				}
				status, body := s.get("/book?token_id=10")
				b := readBook(t, body)
				if status != 200 || b.Timestamp < last {
					t.Errorf("status %d, time %s after %s", status, b.Timestamp, last)
					return
				}
				last = b.Timestamp
			}
		})
	}
	for i := range 200 {
		s.now++
		id := fmt.Sprint("x", i)
		s.do(place(id, 1, quote{1, 0, engine.Buy, 1000, 4000}))
		s.do(engine.Command{Kind: engine.Cancel, ID: orderID(id), Owner: 1})
	}
	close(stop)
	readers.Wait()
}

// askBooks asks for the books of tokens.
func (n *node) askBooks(tokens []engine.Token) (status, size int, books []wireBook, text string) {
	n.t.Helper()
	type one struct {
		Token string `json:"token_id"`
	}
	list := make([]one, len(tokens))
	for i := range tokens {
		list[i].Token = tokens[i].String()
	}
	body, err := json.Marshal(list)
	n.must(err)
	ctx := ask("POST", "/books")
	ctx.Request.SetBodyRaw(body)
	n.handler.Public(ctx)
	status, size = ctx.Response.StatusCode(), ctx.Response.Header.ContentLength()
	if text = string(ctx.Response.Body()); status == 200 {
		n.must(json.Unmarshal([]byte(text), &books))
		if size != len(text) {
			n.t.Errorf("announced %d bytes, sent %d", size, len(text))
		}
	}
	return status, size, books, text
}

// TestBooksOnce: a token that is asked for 500 times has one book in the answer, and each answer
// that waits for its client to read costs no copy of it.
func TestBooksOnce(t *testing.T) {
	n := newNode(t)
	n.ladder(450)
	tokens := make([]engine.Token, 500)
	for i := range tokens {
		tokens[i] = small(10)
	}
	s, _, _ := n.board.Book(small(10))
	one := len(s.Text(0, renderBook))
	status, size, books, _ := n.askBooks(tokens)
	if status != 200 || len(books) != 1 || size != one+2 || len(books[0].Bids) != 450 {
		t.Errorf("%d: %d books, %d bytes; one book has %d", status, len(books), size, one)
	}
	tokens[1], tokens[2], tokens[3] = small(999), small(11), small(10)
	_, _, books, text := n.askBooks(tokens)
	if len(books) != 2 || books[0].AssetID != "10" || books[1].AssetID != "11" {
		t.Errorf("%d books: %.80s", len(books), text)
	}
	if _, _, _, text := n.askBooks([]engine.Token{small(999)}); text != "[]" {
		t.Errorf("no book: %s", text)
	}
	asked := []tokenQuery{{token: small(10)}, {token: small(11)}}
	var before, after runtime.MemStats
	const rounds = 1000
	runtime.ReadMemStats(&before)
	for range rounds {
		n.handler.books(ask("POST", "/books"), asked)
	}
	runtime.ReadMemStats(&after)
	if bytes := int(after.TotalAlloc-before.TotalAlloc) / rounds; bytes > one/2 {
		t.Errorf("an answer costs %d bytes, a book has %d", bytes, one)
	}
}

// TestBooksBound: what would be too long is refused, and says what to do.
func TestBooksBound(t *testing.T) {
	n := newNode(t)
	n.ladder(450)
	const markets = 80
	var tokens []engine.Token
	for c := 2; c < 2+markets; c++ {
		m := engine.MarketNo(c)
		n.do(engine.Command{Kind: engine.List, Listing: listing(c, 10)})
		w := n.fund(fmt.Sprint("maker", c), m, 1_000_000, 1_000_000)
		batch := make([]engine.Command, 0, 900)
		for i := range 450 {
			below, above := engine.Price(4990-10*i), engine.Price(5010+10*i)
			batch = append(batch,
				place(fmt.Sprint(c, "b", i), w, quote{m, 0, engine.Buy, 1000, below}),
				place(fmt.Sprint(c, "s", i), w, quote{m, 0, engine.Sell, 1000, above}))
		}
		for some := range slices.Chunk(batch, engine.FrameCommands) {
			n.do(some...)
		}
		tokens = append(tokens, small(10*c), small(10*c+1))
	}
	s, _, _ := n.board.Book(tokens[0])
	fit := (maxBooksBytes - 2) / (len(s.Text(0, renderBook)) + 8)
	if status, size, books, _ := n.askBooks(tokens[:fit]); status != 200 || len(books) != fit {
		t.Errorf("%d of %d books: %d, %d bytes", len(books), fit, status, size)
	}
	status, _, _, text := n.askBooks(tokens)
	if status != 400 || text != string(errTooLong.Append(nil)) {
		t.Errorf("%d books: %d %.99s", len(tokens), status, text)
	}
}
