package account

import (
	"encoding/json"
	"io"
	"log/slog"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal"
	"clobd/journal/history"
)

// TestUnknownNames: a row that names what the Board does not know is an error, not a panic.
func TestUnknownNames(t *testing.T) {
	x, board := engine.NewExchange(1), view.NewBoard()
	f := engine.Frame{Engine: engine.Version, Epoch: 1, No: 1, First: 1, Commands: []engine.Command{
		{Kind: engine.List, Listing: &engine.Listing{Group: 1, Tick: 100, MinSize: engine.Unit,
			Tokens: [2]engine.Token{{31: 1}, {31: 2}}, Open: true}},
		{Kind: engine.Deposit, Address: engine.Address{1}, Cash: engine.Unit},
	}}
	for i := range f.Commands {
		f.Events = x.Apply(&f.Commands[i], engine.Sequence(i)+1, 1, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	board.Publish(&f)
	h := New(Options{Board: board})
	if board.Directory.Market(1) == nil {
		t.Fatal("there is no market")
	}
	if _, known := board.Directory.Address(1); !known {
		t.Fatal("there is no wallet")
	}
	for _, row := range []history.OrderRow{{Market: 9, Wallet: 1}, {Market: 1, Wallet: 9}} {
		if _, err := h.describe(&row, engine.Address{}); err == nil {
			t.Errorf("%+v is described", row)
		}
	}
	var ctx fasthttp.RequestCtx
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	wire.Internal(quiet, "test", "0x", journal.ErrClosed).Send(&ctx)
	if got := string(ctx.Response.Body()); ctx.Response.StatusCode() != 500 ||
		got != `{"error":"internal_error","code":"internal",`+
			`"detail":"the node failed to read its own records: its log says which"}` {
		t.Errorf("%d %s", ctx.Response.StatusCode(), got)
	}
}

// TestStatuses: what an order's own terms killed on arrival was canceled.
func TestStatuses(t *testing.T) {
	for _, c := range []struct {
		row  history.OrderRow
		want string
	}{
		{history.OrderRow{}, "canceled"},
		{history.OrderRow{Status: engine.Live}, "live"},
		{history.OrderRow{Status: engine.Matched}, "matched"},
		{history.OrderRow{Status: engine.Canceled, Reason: engine.Expired}, "canceled"},
		{history.OrderRow{Status: engine.Canceled, Reason: engine.MarketResolved},
			"canceled_market_resolved"},
	} {
		if got := statusText(&c.row); got != c.want {
			t.Errorf("%+v: %s, want %s", c.row, got, c.want)
		}
	}
}

// TestExpiration: clients read whole seconds, as text.
func TestExpiration(t *testing.T) {
	r := orderRecord{OrderRow: &history.OrderRow{
		Type: engine.GTD, Time: 1_700_000_000_999, Expiry: 1_800_000_000_000,
	}}
	var got struct {
		Created    int64  `json:"created_at"`
		Expiration string `json:"expiration"`
		Type       string `json:"order_type"`
	}
	if err := json.Unmarshal(r.appendAnswer(nil, "POLY_"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Created != 1_700_000_000 || got.Expiration != "1800000000" || got.Type != "GTD" {
		t.Errorf("%+v", got)
	}
}
