package engine_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"clobd/engine"
)

func Example() {
	x, events, tokens := engine.NewExchange(1), []engine.Event{}, [2]engine.Token{{1}, {2}}
	for i, c := range []engine.Command{
		{Kind: engine.List, Listing: &engine.Listing{Tokens: tokens, Tick: 100, Open: true}},
		{Kind: engine.Deposit, Address: engine.Address{1}, Cash: 6e6},            // wallet 1: 6.00
		{Kind: engine.Deposit, Address: engine.Address{2}, Market: 1, Size: 4e6}, // wallet 2: 4 shares
		{Kind: engine.Place, ID: engine.OrderID{1}, Wallet: 1, Owner: 1, Market: 1,
			Side: engine.Buy, Size: 10e6, Cash: 6e6}, // 10 shares for 6.00: a limit of 0.60
		{Kind: engine.Place, ID: engine.OrderID{2}, Wallet: 2, Owner: 2, Market: 1,
			Side: engine.Sell, Size: 4e6, Cash: 2e6}, // 4 shares for 2.00: a limit of 0.50
	} {
		events = x.Apply(&c, engine.Sequence(i+1), 0, events[:0])
	}
	fmt.Printf("%v shares at %v\n", events[0].Size, events[0].Price) // 4 shares at 0.6
	// Output: 4 shares at 0.6
}

// TestDocExample compares the code that opens doc.go with the body of Example.
func TestDocExample(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var pasteable strings.Builder
	for line := range strings.Lines(string(doc)) {
		code, indented := strings.CutPrefix(line, "//\t")
		if indented {
			pasteable.WriteString("\t" + code)
		} else if pasteable.Len() > 0 {
			break
		}
	}
	_, body, _ := strings.Cut(string(source), "func Example() {\n")
	body, _, _ = strings.Cut(body, "\t// Output:")
	if pasteable.String() != body {
		t.Errorf("doc.go opens with\n%s\nand Example runs\n%s", pasteable.String(), body)
	}
}
