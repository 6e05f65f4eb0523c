package limits

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"clobd/engine"
)

const (
	wallet1 = "0x0100000000000000000000000000000000000000"
	wallet2 = "0x0200000000000000000000000000000000000000"
)

const goodFile = `
# what our makers have
limit book 400/10s   # twice as many
limit order-burst 1000/20s
limit failed-keys 5/1m
wallet ` + wallet1 + ` maker
tier maker x2.5
tier maker cancel-burst 9/10s
tier slow x0.001
wallet ` + wallet2 + ` slow
`

func TestParse(t *testing.T) {
	p, err := Parse(goodFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want Window
	}{
		{"book", p.address[find(addressTable[:], "book")], Window{400, ten}},
		{"price", p.address[find(addressTable[:], "price")], Window{200, ten}},
		{"failed-keys", p.pair[0], Window{5, time.Minute}},
		{"orders", p.tier(engine.Address{9}).account[0], Window{1000, 20 * time.Second}},
		{"a maker's", p.tier(engine.Address{1}).account[0], Window{2500, 20 * time.Second}},
		{"a maker's cancels", p.tier(engine.Address{1}).account[2], Window{9, ten}},
		{"a slow one's", p.tier(engine.Address{2}).account[0], Window{1, 20 * time.Second}},
		{"a slow one's keys", p.tier(engine.Address{2}).account[7], Window{1, ten}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	w := New(newManualClock().now)
	w.Use(p)
	v := w.Account(engine.Address{1}, Demand{OrderScope, 1})
	if v.Tier != "maker" || v.Left != 2499 ||
		v.Policy != `"order-burst";q=2500;w=20, "order-sustained";q=60000;w=600` {
		t.Errorf("a maker's order: %+v", v)
	}
}

// TestParseRefuses: each line of a bad file is named, with what to write.
func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"books 1/10s":                        `write "limit NAME REQUESTS/PERIOD"`,
		"limit books":                        `write "limit NAME REQUESTS/PERIOD"`,
		"limit gold 1/10s":                   `there is no limit "gold": there are `,
		"limit gifts 1/10s":                  `there is no limit "gifts"`,
		"limit book 0/10s":                   "0 requests: write a number from 1",
		"limit book 100000001/10s":           "write a number from 1",
		"limit book 10":                      `"10" is no limit: write requests, a slash`,
		"limit book 10/10":                   `"10/10" is no limit`,
		"limit book -1/10s":                  `"-1/10s" is no limit`,
		"limit book 10/1500ms":               "write whole seconds",
		"limit book 10/48h":                  "write whole seconds",
		"limit price 1/1s\nlimit price 2/1s": "limit price is set in line 3 already",
		"tier standard x2":                   "standard is the tier of all",
		"tier Gold x2":                       `"Gold" is no name`,
		"tier gold 2":                        `"2" is no factor`,
		"tier gold x0":                       `"x0" is no factor`,
		"tier gold xNaN":                     `"xNaN" is no factor`,
		"tier gold x1001":                    `"x1001" is no factor`,
		"tier gold book 1/1s":                `an account has no limit "book": it has order-burst`,
		"tier gold x1\ntier gold x2":         "tier gold x is set in line 3 already",
		"wallet 0x12 gold":                   `"0x12" is no address`,
		"wallet " + wallet1 + " gold":        `line 3: there is no tier "gold": a line such as "tier gold x2"`,
		"wallet " + wallet1 + " a\nwallet " + wallet1 + " b": "is set in line 3 already",
	} {
		if _, err := Parse("# top\n\n" + line + "\n"); err == nil ||
			!strings.Contains(err.Error(), "line ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	if _, err := Parse(strings.Repeat("x\n", 100)); strings.Count(err.Error(), "\n") != wrongMost-1 {
		t.Errorf("%v", err)
	}
	if _, err := Parse(strings.Repeat("\n", FileMost+1)); err == nil {
		t.Error("a file of any size is read")
	}
}

// TestUseKeepsCounts: a new file forgets nothing that was counted, unless the window has another
// period; and a window that has become smaller lets nothing in until it has room.
func TestUseKeepsCounts(t *testing.T) {
	clock := newManualClock()
	w := New(clock.now)
	from := netip.MustParseAddr("192.0.2.1")
	book := AddressScope("GET", "/book", false)
	for range 150 {
		w.Address(from, book)
	}
	use := func(text string) {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		w.Use(p)
	}
	use("limit book 100/10s")
	if v := w.Address(from, book); v.Wait == 0 || v.Left != 0 {
		t.Errorf("with less than it has sent: %+v", v)
	}
	use("limit book 300/10s")
	if v := w.Address(from, book); v.Wait > 0 || v.Left != 149 {
		t.Errorf("with more: %+v", v)
	}
	use("limit book 10/1m")
	if v := w.Address(from, book); v.Wait > 0 || v.Left != 9 {
		t.Errorf("with another period: %+v", v)
	}
}

// FuzzParse: no file makes Parse panic, and what it takes holds in any window.
func FuzzParse(f *testing.F) {
	f.Add(goodFile)
	f.Add("limit general 1/1s\ntier a x1000\ntier a keys 100000000/24h\nwallet " + wallet1 + " a")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		w := New(newManualClock().now)
		w.Use(p)
		for range 3 {
			w.Account(engine.Address{1}, Demand{CancelScope, 1000})
			w.Cancel(netip.MustParseAddr("192.0.2.1"), engine.Address{2}, 1000, true)
			v := w.Address(netip.MustParseAddr("192.0.2.1"), General)
			if v.Wait < 0 || v.Wait > 25*time.Hour {
				t.Fatalf("wait %v", v.Wait)
			}
		}
	})
}
