package mirror

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Message has the members of all messages of the market channel.
type Message struct {
	Type      string   `json:"event_type"`
	Asset     string   `json:"asset_id"`
	Market    string   `json:"market"`
	Bids      []Level  `json:"bids"`
	Asks      []Level  `json:"asks"`
	Timestamp string   `json:"timestamp"`
	Hash      string   `json:"hash"`
	MinSize   string   `json:"min_order_size"`
	Tick      string   `json:"tick_size"`
	NegRisk   bool     `json:"neg_risk"`
	Last      string   `json:"last_trade_price"`
	Price     string   `json:"price"`
	Code      string   `json:"code"`
	Changes   []Change `json:"price_changes"`
	Conflated uint64   `json:"conflated"`
	Stream    string   `json:"stream_id"`
	Sequence  uint64   `json:"sequence"`
	Seq       uint64   `json:"seq"`
}

// Level is a price and the number of shares that rest at it.
type Level struct {
	Price string `json:"price"`
	Size  string `json:"size"`
}

// Change is the new size of one level of a token in a price_change. Size 0 removes the level.
type Change struct {
	Asset string `json:"asset_id"`
	Level
	Side string `json:"side"`
	Hash string `json:"hash"`
	Bid  string `json:"best_bid"`
	Ask  string `json:"best_ask"`
}

// Parse reads a text message: one message of the channel, or an array of several.
func Parse(frame []byte) (all []Message, err error) {
	if len(frame) > 0 && frame[0] == '[' {
		err = json.Unmarshal(frame, &all)
	} else {
		all = make([]Message, 1)
		err = json.Unmarshal(frame, &all[0])
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, frame)
	}
	return all, err
}

// Book is the book of a token: its book message, with all later changes applied. The best levels
// are last, as in GET /book.
type Book struct{ Message }

// Books are the books of a client, by token.
type Books map[string]*Book

// Apply applies a message to the books, and returns how many hashes it has compared.
func (b Books) Apply(m *Message) (hashes int, err error) {
	switch m.Type {
	case "book":
		k := &Book{*m}
		b[m.Asset] = k
		return 1, k.is(m.Hash)
	case "last_trade_price":
		if k := b[m.Asset]; k != nil {
			k.Last = m.Price
		}
	case "price_change":
		for i := range m.Changes {
			c := &m.Changes[i]
			k := b[c.Asset]
			if k == nil {
				continue // a token without a subscription
			}
			k.change(c)
			k.Timestamp, k.Seq = m.Timestamp, m.Seq
			last := !slices.ContainsFunc(m.Changes[i+1:], func(later Change) bool {
				return later.Asset == c.Asset
			})
			if !last {
				continue
			}
			hashes++
			if err := k.is(c.Hash); err != nil {
				return hashes, err
			}
			if err := k.bests(c); err != nil {
				return hashes, err
			}
		}
	}
	return hashes, nil
}

// change sets or removes a level. Prices are below 1, so comparing them as strings orders them.
func (k *Book) change(c *Change) {
	levels, order := &k.Bids, strings.Compare
	if c.Side == "SELL" {
		levels, order = &k.Asks, func(a, b string) int { return strings.Compare(b, a) }
	}
	i, found := slices.BinarySearchFunc(*levels, c.Price, func(l Level, p string) int {
		return order(l.Price, p)
	})
	switch {
	case found && c.Size == "0":
		*levels = slices.Delete(*levels, i, i+1)
	case found:
		(*levels)[i].Size = c.Size
	case c.Size != "0":
		*levels = slices.Insert(*levels, i, c.Level)
	}
}

// bests compares the best prices of the book with those in a change.
func (k *Book) bests(c *Change) error {
	best := func(levels []Level) string {
		if len(levels) == 0 {
			return ""
		}
		return levels[len(levels)-1].Price
	}
	if bid, ask := best(k.Bids), best(k.Asks); bid != c.Bid || ask != c.Ask {
		return fmt.Errorf("token %s: best prices %q and %q, told %q and %q", k.Asset, bid, ask, c.Bid,
			c.Ask)
	}
	return nil
}

// is computes the hash of the book, keeps it, and compares it with the hash that was sent.
func (k *Book) is(hash string) error {
	text := k.AppendText(make([]byte, 0, 4096), "")
	k.Hash = Hash(text)
	if k.Hash != hash {
		return fmt.Errorf("token %s: hash %s, told %s\n%s", k.Asset, k.Hash, hash, text)
	}
	return nil
}

// Hash returns the hash of a book's text, in which the member hash must be empty.
func Hash(text []byte) string {
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:])
}

// AppendText appends the book in the form of GET /book, with the given hash.
func (k *Book) AppendText(b []byte, hash string) []byte {
	for _, part := range []string{`{"market":"`, k.Market, `","asset_id":"`, k.Asset, `","timestamp":"`,
		k.Timestamp, `","hash":"`, hash, `","bids":`} {
		b = append(b, part...)
	}
	b = append(appendLevels(b, k.Bids), `,"asks":`...)
	b = appendLevels(b, k.Asks)
	neg := "false"
	if k.NegRisk {
		neg = "true"
	}
	for _, part := range []string{`,"min_order_size":"`, k.MinSize, `","tick_size":"`, k.Tick,
		`","neg_risk":`, neg, `,"last_trade_price":"`, k.Last, `"}`} {
		b = append(b, part...)
	}
	return b
}

func appendLevels(b []byte, levels []Level) []byte {
	b = append(b, '[')
	for i, l := range levels {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, `{"price":"`...), l.Price...), `","size":"`...)
		b = append(append(b, l.Size...), '"', '}')
	}
	return append(b, ']')
}
