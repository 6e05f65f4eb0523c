package api

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// sequenceOf is the X-Sequence of an answer that must have one.
func sequenceOf(t *testing.T, ctx *fasthttp.RequestCtx) engine.Sequence {
	t.Helper()
	text := string(ctx.Response.Header.Peek("X-Sequence"))
	s, err := strconv.ParseUint(text, 10, 64)
	if err != nil || ctx.Response.StatusCode() != 200 {
		t.Errorf("%s: %d, X-Sequence %q, %s", ctx.RequestURI(), ctx.Response.StatusCode(), text,
			ctx.Response.Body())
	}
	return engine.Sequence(s)
}

// TestSequenceShown: beside a writer, the X-Sequence of a read is not below that of a write exactly
// if the read shows the write. Order k of the writer is the one with Sequence first+2k; what comes
// between any two of them changes no book and no order.
func TestSequenceShown(t *testing.T) {
	n := newNode(t)
	n.ladder(1)
	n.do(engine.Command{Kind: engine.List, Listing: listing(2, 10)})
	n.fund("idle", 2, 1, 0)
	n.run()
	first := n.head.Sequence
	const writes = 30 // one page of orders has them all
	// A read is told anew when somebody writes meanwhile, but only a few times: after each write the
	// writer waits until each reader has ended the read that was under way. Of two turns of a reader
	// the first may be from before the write, the second is not.
	stop := make(chan struct{})
	var turns []chan struct{}
	var readers sync.WaitGroup
	for name, read := range n.shows(t) {
		turn := make(chan struct{}, 1)
		turns = append(turns, turn)
		readers.Go(func() {
			for done := false; !done; {
				select {
				case <-stop:
					done = true // once more, when all is written
				default:
				}
				shown, s := read()
				low, high := first+2*engine.Sequence(shown), first+2*engine.Sequence(shown+1)
				switch {
				case t.Failed():
				case shown > 0 && s < low, shown < writes && s >= high:
					t.Errorf("%s shows %d orders, the last of Sequence %d, and says %d", name, shown, low, s)
				case done && shown != writes:
					t.Errorf("%s shows %d of %d orders in the end", name, shown, writes)
				}
				select {
				case turn <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range writes {
		n.do(engine.Command{Kind: engine.Deposit, Address: trader("other"), Cash: 1},
			place(fmt.Sprint("w", i), 1, quote{1, 0, engine.Buy, 1000, 4000}))
		for _, turn := range turns {
			<-turn
			<-turn
		}
	}
	close(stop)
	readers.Wait()
}

// shares is how many orders of 10 shares rest at 0.40.
func shares(b wireBook) int {
	for _, level := range b.Bids {
		if level.Price == "0.4" {
			size, _ := strconv.ParseFloat(level.Size, 64)
			return int(size / 10)
		}
	}
	return 0
}

// shows reads how many orders of the maker are shown, and as of which Sequence.
func (n *node) shows(t *testing.T) map[string]func() (int, engine.Sequence) {
	return map[string]func() (int, engine.Sequence){
		"/book": func() (int, engine.Sequence) {
			ctx := ask("GET", "/book?token_id=10")
			n.handler.Public(ctx)
			return shares(readBook(t, ctx.Response.Body())), sequenceOf(t, ctx)
		},
		"/books": func() (int, engine.Sequence) {
			ctx := ask("POST", "/books")
			ctx.Request.SetBodyString(`[{"token_id":"20"},{"token_id":"10"},{"token_id":"11"}]`)
			n.handler.Public(ctx)
			s := sequenceOf(t, ctx)
			var books []wireBook
			if err := json.Unmarshal(ctx.Response.Body(), &books); err != nil || len(books) != 3 {
				t.Errorf("%v: %s", err, ctx.Response.Body())
				return 0, s
			}
			return shares(books[1]), s
		},
		"/data/orders": func() (int, engine.Sequence) {
			ctx := ask("GET", "/data/orders")
			n.handler.Account(ctx, trader("maker"), wire.SVC)
			var page struct{ Data []json.RawMessage }
			if err := json.Unmarshal(ctx.Response.Body(), &page); err != nil {
				t.Error(err)
			}
			return len(page.Data) - 2, sequenceOf(t, ctx)
		},
	}
}
