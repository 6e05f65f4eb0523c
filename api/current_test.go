package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
)

// current asks the node whether it may answer a target.
func (n *node) current(target string) (ctx *fasthttp.RequestCtx, may bool) {
	ctx = ask("GET", target)
	return ctx, n.handler.Current(ctx)
}

// TestCurrentWords: what a query may ask for, and how each family is told that it asks for
// something else. What is asked for is no parameter of the route behind.
func TestCurrentWords(t *testing.T) {
	n, _, _ := listedNode(t)
	shown := n.head.Sequence
	const badWord, badNumber = `{"error":"Invalid consistency","code":"bad_payload"`,
		`{"error":"Invalid min_seq","code":"bad_payload"`
	for target, want := range map[string]string{
		"/book?token_id=10": "",
		"/book":             "",
		"/book?token_id=10&min_seq=&consistency=":           "",
		fmt.Sprintf("/book?min_seq=%d&token_id=10", shown):  "",
		"/book?token_id=10&consistency=linearizable":        "",
		"/value?user=0x1&min%5Fseq=1&consistency=x":         `{"error":"bad_payload: Invalid consistency`,
		"/book?consistency=Linearizable":                    badWord,
		"/data/orders?consistency=eventual":                 badWord,
		"/events?min_seq=-1":                                `{"type":"bad request","error":"Invalid min_seq"`,
		"/book?min_seq=1e3":                                 badNumber,
		"/book?min_seq=18446744073709551616":                badNumber,
		"/book?min_seq=%201":                                badNumber,
		"/positions?min_seq=1&consistency=linearizable&x=1": "",
	} {
		ctx, may := n.current(target)
		body := string(ctx.Response.Body())
		if status := ctx.Response.StatusCode(); may != (want == "") || !strings.HasPrefix(body, want) ||
			want != "" && status != 400 {
			t.Errorf("%s: %v %d %s", target, may, status, body)
		}
		if ctx.QueryArgs().Has(wire.MinSequence) || ctx.QueryArgs().Has(wire.Consistency) {
			t.Errorf("%s: the route sees what was asked for", target)
		}
	}
	// Routes about wallets refuse what they do not know, and the others tell it.
	for _, target := range []string{"/positions?user=0x0000000000000000000000000000000000000001",
		"/book?token_id=" + listing(1, 0).Tokens[0].String()} {
		ctx, may := n.current(target + "&min_seq=1&consistency=linearizable")
		if n.handler.Public(ctx); !may || ctx.Response.StatusCode() != 200 ||
			len(ctx.Response.Header.Peek(wire.UnknownQuery)) > 0 {
			t.Errorf("%s: %d %s", target, ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
}

// TestMinSequence: a request waits until the node shows what it asks for, and is told if that does
// not come: by a word of its own, and to ask again.
func TestMinSequence(t *testing.T) {
	n, _, _ := listedNode(t)
	n.handler.currentWait = 20 * time.Millisecond
	next := n.head.Sequence + 1
	target := fmt.Sprintf("/book?token_id=%s&min_seq=%d", listing(1, 0).Tokens[0], next)
	ctx, may := n.current(target)
	if may || ctx.Response.StatusCode() != 503 ||
		string(ctx.Response.Header.Peek("Retry-After")) != "1" ||
		!strings.Contains(string(ctx.Response.Body()), `"behind"`) {
		t.Errorf("what is not there: %v %s", may, ctx.Response.String())
	}
	n.handler.currentWait = time.Minute
	var readers sync.WaitGroup
	for range 20 {
		readers.Go(func() {
			ctx, may := n.current(target)
			if !may {
				t.Errorf("%s", ctx.Response.Body())
				return
			}
			if n.handler.Public(ctx); sequenceOf(t, ctx) < next {
				t.Errorf("an answer of %d", sequenceOf(t, ctx))
			}
			if n.handler.o.History.Sequence() < next {
				t.Error("the index is behind")
			}
		})
	}
	for n.handler.waiting.Load() < 20 {
		time.Sleep(time.Millisecond)
	}
	n.do(engine.Command{Kind: engine.Deposit, Address: trader("other"), Cash: 1})
	readers.Wait()
	if left := n.handler.waiting.Load(); left != 0 {
		t.Errorf("%d are thought to wait", left)
	}
	n.handler.waiting.Store(mostWaiting)
	ctx, may = n.current(fmt.Sprintf("/book?min_seq=%d", next+1))
	if may || !strings.Contains(string(ctx.Response.Body()), `"busy"`) {
		t.Errorf("one too many: %v %s", may, ctx.Response.Body())
	}
	if _, may := n.current(target); !may {
		t.Error("who need not wait is turned away")
	}
}

// TestLinearizable: a request asks who leads, and is answered with what that one tells, or not at
// all.
func TestLinearizable(t *testing.T) {
	n, _, _ := listedNode(t)
	told, failed := make(chan engine.Sequence, 1), error(nil)
	n.handler.o.Confirm = func(ctx context.Context) (engine.Sequence, error) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("a question without end")
		}
		return <-told, failed
	}
	next := n.head.Sequence + 1
	target := fmt.Sprintf("/book?token_id=%s&consistency=linearizable&min_seq=1",
		listing(1, 0).Tokens[0])
	n.handler.currentWait = time.Minute
	answered := make(chan bool)
	go func() {
		ctx, may := n.current(target)
		if may {
			n.handler.Public(ctx)
			may = sequenceOf(t, ctx) >= next
		}
		answered <- may
	}()
	told <- next
	select {
	case <-answered:
		t.Fatal("answered before it is shown")
	case <-time.After(20 * time.Millisecond):
	}
	n.do(engine.Command{Kind: engine.Deposit, Address: trader("other"), Cash: 1})
	if !<-answered {
		t.Error("answered with less than was told")
	}
	failed = errors.New("no leader")
	told <- 0
	ctx, may := n.current(target)
	if may || ctx.Response.StatusCode() != 503 ||
		string(ctx.Response.Header.Peek("Retry-After")) != "1" ||
		!strings.Contains(string(ctx.Response.Body()), `"no_leader"`) {
		t.Errorf("without a leader: %v %s", may, ctx.Response.String())
	}
}
