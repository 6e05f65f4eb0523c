package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"clobd/api/wire/scan"
	"clobd/scripts/setting"
)

// judgeStrictly is what must hold of a body beside what encoding/json asks for. It knows nothing of
// the scanner: it takes valid JSON apart by encoding/json's tokens.
func judgeStrictly(body []byte) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var names []map[string]bool // of the objects around, nil for an array
	key := false                // the next token is a key or the end of an object
	for {
		token, err := d.Token()
		if err != nil {
			return nil
		}
		if name, is := token.(string); is && key {
			folded := strings.Map(foldSlowly, name)
			now := names[len(names)-1]
			if now[folded] {
				return fmt.Errorf("%q twice", name)
			}
			if now[folded] = true; len(now) > scan.MaxKeys {
				return errors.New("too many keys")
			}
			key = false
			continue
		}
		switch token {
		case json.Delim('{'):
			names = append(names, map[string]bool{})
		case json.Delim('['):
			names = append(names, nil)
		case json.Delim('}'), json.Delim(']'):
			names = names[:len(names)-1]
		}
		if len(names) > scan.MaxNested {
			return errors.New("too deep")
		}
		key = len(names) > 0 && names[len(names)-1] != nil
	}
}

// foldSlowly is the least of the runes that fold alike.
func foldSlowly(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// keysUpTo is an object with n different keys.
func keysUpTo(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(`,"k` + strconv.Itoa(i) + `":` + strconv.Itoa(i))
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

// TestOneReading: a body that two readers could read in two ways is refused, and the answer names
// the key. Every documented spelling is read.
func TestOneReading(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(sampleV2, old) {
			t.Fatalf("no %q in the sample", old)
		}
		return strings.Replace(sampleV2, old, new, 1)
	}
	for _, c := range []struct{ body, key string }{
		{with(`"salt":`, `"salt":1,"salt":`), `"salt"`},
		{with(`"salt":`, `"salt":null,"salt":`), `"salt"`},
		{with(`"salt":`, `"SALT":1,"salt":`), `"salt"`},
		{with(`"side":`, `"\u0073ide":"SELL","side":`), `"side"`},
		{with(`"side":`, `"`+"\u017f"+`ide":"SELL","side":`), `"side"`},
		{with(`"side":"BUY"`, `"side":"BUY","\u017fide":"SELL"`), `"\u017fide"`},
		{with(`"makerAmount"`, `"to`+"\u212a"+`enId":"1","makerAmount"`), `"to\u212aenId"`},
		{with(`"owner":`, `"owner":"","owner":`), `"owner"`},
		{with(`"order":`, `"order":{"salt":5},"order":`), `"order"`},
		{with(`"order":`, `"order":null,"ORDER":`), `"ORDER"`},
		{with(`"owner":`, `"order":{"expiration":"9"},"owner":`), `"order"`},
		{with(`"owner":`, `"x":1,"X":2,"owner":`), `"X"`},
		{with(`"owner":`, `"":1,"":2,"owner":`), `""`},
		{with(`"owner":`, `"x":[{"deep":{"`+"\u212a"+`":1,"k":2}}],"owner":`), `"k"`},
		{with(`"owner":`, `"x":`+keysUpTo(65)+`,"owner":`), `"k64"`},
		{with(`"signature":`, keysUpTo(53)[1:len(keysUpTo(53))-1]+`,"signature":`), `"k52"`},
	} {
		var r Request
		err := Decode(c.body, &r)
		var fault KeyError
		if !errors.Is(err, ErrOther) || !errors.As(err, &fault) || fault.Why == scan.Malformed {
			t.Errorf("%s: %v", c.body, err)
		} else if !strings.Contains(err.Error(), "key "+c.key+" ") {
			t.Errorf("%s: %v does not name %s", c.body, err, c.key)
		}
	}
	for _, body := range []string{
		with(`"tokenId"`, `"TOKENID"`), with(`"tokenId"`, `"to`+"\u212a"+`enId"`),
		with(`"owner":`, `"x":[{"k":1},{"k":2}],"y":{"k":1,"x":{"x":{}}},"owner":`),
		with(`"owner":`, `"x":`+keysUpTo(64)+`,"owner":`),
		with(`"signature":`, keysUpTo(50)[1:len(keysUpTo(50))-1]+`,"expiratiom":{},"signature":`),
	} {
		var r Request
		if err := Decode(body, &r); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestOneSpelling: each spelling of an order's id is read, and two of them in one object are not.
func TestOneSpelling(t *testing.T) {
	spellings := []string{"orderID", "orderId", "order_id", "id", "hash"}
	for _, a := range spellings {
		body := `{"` + a + `":"x"}`
		if id, fault := CancelID([]byte(body)); fault != nil || id != "x" {
			t.Errorf("%s: %q %v", body, id, fault)
		}
		if ids, n, fault := CancelIDs([]byte("["+body+`,"y"]`), mostIDs); fault != nil || n != 2 ||
			ids[0] != "x" {
			t.Errorf("[%s]: %q %v", body, ids, fault)
		}
		for _, b := range spellings {
			body := `{"` + a + `":"x","` + b + `":"x"}`
			if _, fault := CancelID([]byte(body)); fault == nil || fault.Why != scan.Doubled ||
				fault.Key != b {
				t.Errorf("%s: %v", body, fault)
			}
			if _, _, fault := CancelIDs([]byte(`["y",`+body+`]`), mostIDs); fault == nil ||
				fault.Why != scan.Doubled {
				t.Errorf("[%s]: %v", body, fault)
			}
		}
	}
}

// mutations is how many bodies TestDecodeMutations tries: CLOBD_SIZE if it is set.
func mutations(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CLOBD_SIZE")
	switch {
	case text == "" && testing.Short():
		return 20_000
	case text == "":
		return 500_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("CLOBD_SIZE=%s: not a number above 0", text)
	}
	return n
}

// pieces are what mutations put into a body: what JSON readers differ in.
var pieces = []string{`"`, `\`, `,`, `:`, `{`, `}`, `[`, `]`, `null`, `true`, `0`, `1e5`, `-`, ` `,
	`"salt":1,`, `"SALT":null,`, `"order":{},`, `"order":null,`, `"owner":"x",`, `,"owner":7`,
	`"` + "\u212a" + `":1,`, `"k":1,`, "\u212a", "\u017f", `\u212a`, `\u017f`, `\u004b`, `\ud83d`,
	`"x":{"a":1,"A":2},`, `"x":[{"a":1},{"a":2}],`, "\xff", "\x00", `"":0,`, `"to` + "\u212a" +
		`enId":"5",`, `"tokenID":"6",`, `"\u0073ide":0,`, `{"order":`, `,"taker":null`, "\u00df"}

// mutate changes a body in up to four places.
func mutate(r *rand.Rand, body []byte) []byte {
	for range 1 + r.IntN(4) {
		if len(body) == 0 {
			return body
		}
		at := r.IntN(len(body))
		end := min(len(body), at+r.IntN(24))
		switch r.IntN(9) {
		case 0: // another byte
			body[at] = byte(r.IntN(256))
		case 1: // other letter case
			body[at] ^= 0x20
		case 2: // cut out
			body = append(body[:at:at], body[end:]...)
		case 3: // twice
			body = append(body[:end:end], body[at:]...)
		case 4, 5, 6: // something between
			body = insert(body, at, pieces[r.IntN(len(pieces))])
		case 7: // something where a key may begin
			if n := bytes.IndexAny(body[at:], "{,"); n >= 0 {
				body = insert(body, at+n+1, pieces[r.IntN(len(pieces))])
			}
		case 8: // a whole member again, after itself or elsewhere
			from := bytes.IndexByte(body[at:], ',') + at
			to := bytes.IndexByte(body[min(from+1, len(body)):], ',') + from + 1
			if from >= at && to > from && to < len(body) {
				into := to
				if r.IntN(2) == 0 {
					into = bytes.LastIndexByte(body[:at+1], ',')
				}
				body = insert(body, max(into, 0), string(body[from:to]))
			}
		}
	}
	return body
}

func insert(body []byte, at int, piece string) []byte {
	return append(append(body[:at:at], piece...), body[at:]...)
}

// TestDecodeMutations: whatever of many mutated bodies the door takes, encoding/json takes too and
// reads the same; and what it refuses, encoding/json or the rules about keys refuse.
func TestDecodeMutations(t *testing.T) {
	valid := [][]byte{[]byte(sampleV2), []byte(sampleV1)}
	valid = append(valid, vectorBodies(t, 20)...)
	r := rand.New(rand.NewPCG(setting.Seed(t, 1), 0))
	taken, doubled := 0, 0
	n := mutations(t)
	for range n {
		body := mutate(r, bytes.Clone(valid[r.IntN(len(valid))]))
		checkAgainstOracle(t, body)
		p := fillers.Get().(*filler)
		switch fault := p.read(string(body)); {
		case fault == nil:
			taken++
		case fault.Why == scan.Doubled:
			doubled++
		}
		p.put()
	}
	t.Logf("%d bodies: %d taken, %d with a key twice", n, taken, doubled)
	if taken < n/20 || doubled < n/20 {
		t.Error("the mutations try too little")
	}
}
