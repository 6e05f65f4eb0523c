package gamma

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPricesIn reads lists of prices and mutations of them as encoding/json does.
func TestPricesIn(t *testing.T) {
	slow := func(value []byte) (prices []string) {
		var text string
		if json.Unmarshal(value, &text) != nil || json.Unmarshal([]byte(text), &prices) != nil {
			return nil
		}
		return prices
	}
	seeds := []string{`"[\"0.425\", \"0.575\"]"`, `"[\"1\",\"0\"]"`, `"[\"0.5\"]"`, `"[]"`, `"x"`,
		`"[\"0\", \"0\", \"0\"]"`, `"[0.5, 0.5]"`, `["0.5","0.5"]`, `null`, `"[\"\\u0031\", \"0\"]"`,
		`"[ \"0.1\" ,\t\"0.9\" ]"`, `"[\"\", \"\"]"`}
	random := rand.New(rand.NewPCG(1, 2))
	read := 0
	for range 200_000 {
		value := []byte(seeds[random.IntN(len(seeds))])
		for range random.IntN(3) {
			switch at := random.IntN(len(value)); random.IntN(3) {
			case 0:
				value[at] = `0123"\,[] .u`[random.IntN(12)]
			case 1:
				value = slices.Delete(value, at, at+1)
			default:
				value = slices.Insert(value, at, `0"\,[] `[random.IntN(7)])
			}
			if len(value) == 0 {
				value = []byte("0")
			}
		}
		if !json.Valid(value) {
			continue // the catalog has refused the record
		}
		want := slow(value)
		if got := pricesIn(value); !slices.Equal(got, want) {
			t.Fatalf("%s: %q, want %q", value, got, want)
		}
		read += len(want)
	}
	if read < 10_000 {
		t.Errorf("only %d prices read", read)
	}
}

// TestSaid finds the members that are said again under other names, and stumbles over no key.
func TestSaid(t *testing.T) {
	var s said
	s.read([]byte(`"":1,"i":2,"icon":"a","image":null,"description":"d","acceptingOrdersTimestampX":3,` +
		`"negRiskRequestID":"n","":""`))
	for key, want := range map[string]string{"icon": `"a"`, "image": "", "description": `"d"`,
		"acceptingOrdersTimestamp": "", "negRiskRequestID": `"n"`} {
		if got := string(s.of(key)); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
