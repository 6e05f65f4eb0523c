package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// benchTarget measures the handler alone: no socket, no parsing of the request.
func benchTarget(b *testing.B, target string) {
	n := newNode(b)
	n.ladder(50)
	ctx := ask("GET", target)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		n.handler.Public(ctx)
		if ctx.Response.StatusCode() != fasthttp.StatusOK {
			b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
	b.SetBytes(int64(len(ctx.Response.Body())))
}

func BenchmarkBook(b *testing.B) { benchTarget(b, "/book?token_id=10") }

func BenchmarkMidpoint(b *testing.B) { benchTarget(b, "/midpoint?token_id=10") }

func BenchmarkPrice(b *testing.B) { benchTarget(b, "/price?token_id=10&side=BUY") }

// BenchmarkRender is what a book costs once per version, for its first reader.
func BenchmarkRender(b *testing.B) {
	for _, depth := range []int{5, 50, 490} {
		b.Run(fmt.Sprintf("%d+%d", depth, depth), func(b *testing.B) {
			n := newNode(b)
			n.ladder(depth)
			s, o, _ := n.board.Book(small(10))
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				size = len(renderBook(s, o))
			}
			b.SetBytes(int64(size))
			if got := readBook(b, s.Text(o, renderBook)); len(got.Asks) != depth {
				b.Fatalf("%d asks", len(got.Asks))
			}
		})
	}
}

// BenchmarkOrderRecord is the encoding of one order for the dialect with the longest answer.
func BenchmarkOrderRecord(b *testing.B) {
	n := newNode(b)
	n.run()
	n.ladder(1)
	if !n.index.History.Await(n.head.Sequence, time.Minute) {
		b.Fatal("the index lags")
	}
	ctx := ask("GET", "/data/order/"+orderID("b0").Hex())
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		n.handler.Account(ctx, trader("maker"), "POLY_")
		if ctx.Response.StatusCode() != fasthttp.StatusOK {
			b.Fatalf("%d %s", ctx.Response.StatusCode(), ctx.Response.Body())
		}
	}
}
