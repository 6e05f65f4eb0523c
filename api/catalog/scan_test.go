package catalog

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDecimals(t *testing.T) {
	for text, want := range map[string]int64{
		"0.001": 10, "1e-3": 10, "1E-3": 10, "0.0100": 100, `"0.1"`: 1000, "5": 50000, "5.0": 50000,
		"1e+1": 100000, "0": 0, "null": 7, "": 7,
		"0.00001": -1, "-1": -1, `"x"`: -1, "1e99": -1, "1e-99": -1, "[]": -1, `"1.2.3"`: -1,
		"99999999999999999999": -1, `""`: -1, `"."`: -1, `"1e"`: 10000,
	} {
		v, ok := asDecimal([]byte(text), 4, 7)
		if want == -1 && ok || want != -1 && (!ok || v != want) {
			t.Errorf("%s: %d %v, want %d", text, v, ok, want)
		}
	}
}

// FuzzFields holds the scanner against encoding/json: where that reads an object, the scanner finds
// the same values; and it never panics.
func FuzzFields(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"b":"x\"y","a":[{"b":2}]}`, ` { "b" : null , "a":true } `, `{"a":"\\"}`,
		`{"a":1,}`, `{"a"}`, `{"a":}`, `[1]`, `{"a":"`, `{"a":{"b":[}]}`, `{"a":1}x`, `{"a":-1e5}`,
	} {
		f.Add(s)
	}
	keys := []string{"a", "b"}
	f.Fuzz(func(t *testing.T, text string) {
		out := make([][]byte, len(keys))
		got := fields([]byte(text), keys, out)
		elements([]byte(text), func(e []byte) { valueEnd(e, 0) })
		for _, raw := range out {
			asText(raw)
			asList(raw)
			asDecimal(raw, 6, 0)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || strings.Contains(text, `\u`) ||
			strings.Count(text, "[")+strings.Count(text, "{") > maxDepth || want == nil {
			return
		}
		if !got {
			t.Fatalf("not read: %s", text)
		}
		for i, key := range keys {
			if string(out[i]) != string(want[key]) {
				t.Errorf("%s of %s: %q, want %q", key, text, out[i], want[key])
			}
			var s string
			if text, ok := asText(out[i]); ok && len(out[i]) > 0 && out[i][0] == '"' {
				if json.Unmarshal(out[i], &s) == nil && s != text {
					t.Errorf("%s is %q, want %q", out[i], text, s)
				}
			}
		}
	})
}

// FuzzRead feeds any bytes as a catalog: it never panics and every record is accounted for.
func FuzzRead(f *testing.F) {
	f.Add(string(Demo()))
	f.Add("[" + event("1", market(1, ""), market(1, "")) + ",{}]")
	f.Add(event("1", market(1, `"closed":true`)) + "\n{\"id\":\"1\n" + event("2", "1", "{}"))
	f.Add("\x1f\x8b")
	f.Fuzz(func(t *testing.T, text string) {
		text = text[:min(len(text), 1<<16)] // what is cut off is one more broken record
		_, r, err := Read(strings.NewReader(text), Options{})
		if err == nil {
			adds(t, r)
		}
	})
}
