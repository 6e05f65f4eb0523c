package mirror

import (
	"fmt"
	"strings"
	"testing"
)

// first is a book as GET /book answers it, without a hash.
const first = `{"market":"0xc","asset_id":"10","timestamp":"17","hash":"","bids":[{"price":"0.4",` +
	`"size":"5"},{"price":"0.45","size":"7.5"}],"asks":[{"price":"0.6","size":"1"}],` +
	`"min_order_size":"5","tick_size":"0.01","neg_risk":true,"last_trade_price":""}`

// begin returns the message that carries the first book.
func begin(hash string) string {
	return `[{"event_type":"book",` + strings.Replace(first[1:len(first)-1], `"hash":""`,
		`"hash":"`+hash+`"`, 1) + `,"stream_id":"a","sequence":1,"server_ts_ms":1,"seq":4}]`
}

// change returns a message that changes a level: its price, size and side, then the book's hash and
// best prices.
func change(level [3]string, hash, bests string) string {
	return fmt.Sprintf(`{"event_type":"price_change","market":"0xc","price_changes":[{"asset_id":"10",`+
		`"price":"%s","size":"%s","side":"%s","hash":"%s",%s},{"asset_id":"11","price":"0.1","size":"2",`+
		`"side":"BUY","hash":"?"}],"timestamp":"18","stream_id":"a","sequence":2,"seq":5}`,
		level[0], level[1], level[2], hash, bests)
}

// TestBooks: a book that is changed as messages say has the expected hash, and a message with a
// wrong hash or wrong best prices is an error.
func TestBooks(t *testing.T) {
	const bests = `"best_bid":"0.45","best_ask":"0.6"`
	replaced := func(old, now string) string {
		text := strings.Replace(strings.Replace(first, `"17"`, `"18"`, 1), old, now, 1)
		return Hash([]byte(text))
	}
	good := Hash([]byte(first))
	for name, c := range map[string]struct {
		said  [2]string
		wrong bool
	}{
		"a level more": {said: [2]string{begin(good), change([3]string{"0.42", "3", "BUY"},
			replaced(`{"price":"0.45"`, `{"price":"0.42","size":"3"},{"price":"0.45"`), bests)}},
		"a level less": {said: [2]string{begin(good), change([3]string{"0.45", "0", "BUY"},
			replaced(`,{"price":"0.45","size":"7.5"}`, ``), `"best_bid":"0.4","best_ask":"0.6"`)}},
		"an empty side": {said: [2]string{begin(good), change([3]string{"0.6", "0", "SELL"},
			replaced(`{"price":"0.6","size":"1"}`, ``), `"best_bid":"0.45"`)}},
		"a worse ask": {said: [2]string{begin(good), change([3]string{"0.7", "3", "SELL"},
			replaced(`{"price":"0.6"`, `{"price":"0.7","size":"3"},{"price":"0.6"`), bests)}},
		"another size": {said: [2]string{begin(good), change([3]string{"0.4", "6", "BUY"},
			replaced(`"size":"5"`, `"size":"6"`), bests)}},
		"another book": {said: [2]string{begin(replaced("5", "6")), ""}, wrong: true},
		"a level missed": {said: [2]string{begin(good), change([3]string{"0.4", "6", "BUY"},
			replaced(`"size":"7.5"`, `"size":"8"`), bests)}, wrong: true},
		"another best": {said: [2]string{begin(good), change([3]string{"0.4", "6", "BUY"},
			replaced(`"size":"5"`, `"size":"6"`), `"best_bid":"0.4","best_ask":"0.6"`)}, wrong: true},
		"no JSON": {said: [2]string{begin(good), "{"}, wrong: true},
	} {
		books, hashes := make(Books), 0
		err := error(nil)
		for _, frame := range c.said {
			if frame == "" || err != nil {
				continue
			}
			var all []Message
			if all, err = Parse([]byte(frame)); err != nil {
				continue
			}
			n := 0
			n, err = books.Apply(&all[0])
			hashes += n
		}
		if (err != nil) != c.wrong || !c.wrong && (hashes != 2 || len(books) != 1) {
			t.Errorf("%s: %d hashes, %d books, %v", name, hashes, len(books), err)
		}
	}
}
