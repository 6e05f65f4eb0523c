package scan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecimals(t *testing.T) {
	for text, want := range map[string]int64{
		"0.001": 10, "1e-3": 10, "1E-3": 10, "0.0100": 100, `"0.1"`: 1000, "5": 50000, "5.0": 50000,
		"1e+1": 100000, "0": 0, "null": 7, "": 7,
		"0.00001": -1, "-1": -1, `"x"`: -1, "1e99": -1, "1e-99": -1, "[]": -1, `"1.2.3"`: -1,
		"99999999999999999999": -1, `""`: -1, `"."`: -1, `"1e"`: 10000,
	} {
		v, ok := Decimal([]byte(text), 4, 7)
		if want == -1 && ok || want != -1 && (!ok || v != want) {
			t.Errorf("%s: %d %v, want %d", text, v, ok, want)
		}
	}
}

// FuzzObject holds the scanner against encoding/json: both read the same objects, and find the same
// values in them, but for texts that are not UTF-8, which only the scanner refuses.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"b":"x\"y","a":[{"b":2}]}`, ` { "b" : null , "a":true } `, `{"a":"\\"}`,
		`{"a":1,}`, `{"a"}`, `{"a":}`, `[1]`, `{"a":"`, `{"a":{"b":[}]}`, `{"a":1}x`, `{"a":-1e5}`,
		`{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":tru}`, `{"a":"\u12"}`, `{"a":"\x"}`, "{\"a\":\"\n\"}",
		`{"a":{"b":1 "c":2}}`, `{"a":{"b"}}`, `{"a":[1,]}`, `{"a":[,]}`, `{"a":1E+2,"b":0.5e-1}`,
		"{\"a\":\"\xff\"}", `{"a":{}}`, `{"a":[]}`, `{"a":nullx}`, `{"a":"\ud800"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members, got := Object([]byte(text), nil)
		Elements([]byte(text), func(e []byte) { valueEnd(e, 0, 0) })
		if strings.Count(text, "[")+strings.Count(text, "{") > maxRecordDepth || !utf8.ValidString(text) {
			return
		}
		var want map[string]json.RawMessage
		if is := json.Unmarshal([]byte(text), &want) == nil && want != nil; is != got {
			t.Fatalf("an object: %v, want %v: %s", got, is, text)
		}
		last := map[string][]byte{}
		for _, m := range members {
			Text(m.Value)
			List(m.Value)
			Decimal(m.Value, 6, 0)
			last[string(m.Key)] = m.Value
		}
		skimmed := 0
		for key, raw := range want {
			if raw[0] == '[' {
				Elements(raw, func(element []byte) { skimmed += len(element) })
				Skim(raw, func(element []byte) { skimmed -= len(element) })
			}
			if end := skipValue(raw, 0); end != len(raw) {
				t.Errorf("%s ends at %d when skipped", raw, end)
			}
			value, plain := last[key]
			if plain && string(value) != string(raw) {
				t.Errorf("%s of %s: %q, want %q", key, text, value, raw)
			}
			var s string
			if text, ok := Text(raw); ok && len(raw) > 0 && raw[0] == '"' {
				if json.Unmarshal(raw, &s) == nil && s != text {
					t.Errorf("%s is %q, want %q", raw, text, s)
				}
			}
		}
		if skimmed != 0 {
			t.Errorf("%s: elements differ when skimmed", text)
		}
	})
}
