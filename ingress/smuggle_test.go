package ingress

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
)

// smuggled sends bytes with a signed order behind them, over one connection, and returns how many
// answers came back before the door hung up.
func smuggled(t *testing.T, h *house, text string) (answers int) {
	t.Helper()
	conn, err := h.listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, text) }() // the door may hang up in the middle
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return answers
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return answers
		}
		answers++
	}
}

// TestSmuggledOrders: an order behind a request that two readers could understand in two ways is
// never entered, nor is anything of that request: the state stays as it was. The same order behind
// a request that all read alike is entered.
func TestSmuggledOrders(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 100000"})
	wire := strings.Replace(h.orderWire("alice buy A 10 @ 0.40"), "Host: test\r\n",
		"Host: test\r\nConnection: close\r\n", 1)
	digest, frames := h.exchange.Digest(), len(h.journal.Frames())
	refused := 0
	for _, c := range rawCases(t) {
		if c.Refused == 0 {
			continue
		}
		refused++
		if n := smuggled(t, h, c.Send+wire); n > 1 {
			t.Errorf("%s: %d answers", c.Name, n)
		}
		if h.exchange.Digest() != digest || len(h.journal.Frames()) != frames {
			t.Fatalf("%s: the state is another", c.Name)
		}
	}
	if refused < 142 {
		t.Errorf("%d cases, want 142 at least", refused)
	}
	for _, c := range rawCases(t) {
		if c.Name == "plain GET" && smuggled(t, h, c.Send+wire) != 2 {
			t.Error("the order is not answered")
		}
	}
	if h.exchange.Digest() == digest || len(h.journal.Frames()) != frames+1 {
		t.Error("the order changes nothing behind a good request either")
	}
}
