package form

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"clobd/api/wire/scan"
)

const mostIDs = 1000

// FuzzCancels: a list of orders to cancel that the door takes is one that encoding/json reads, with
// the same ids; and what it refuses is no such list, or an object of it has a key twice.
func FuzzCancels(f *testing.F) {
	for _, s := range []string{
		"[]", `["a","b"]`, `[{"orderID":"x"},"y"]`, `[{"hash":"x","id":"y"}]`, `[{"ORDERID":"x"}]`,
		` [ "\u0061" , {"id" : "\ud83d"} ] `, `[null]`, `[1]`, `[[]]`, `["a",]`, `{"orderID":"x"}`, `[{}]`,
		`[{"id":null}]`, `[{"id":5}]`, `[{"x":[{"id":"y"}],"id":"z"}]`, "[\"\xff\"]", `["a"]x`, "", "null",
		"[" + strings.Repeat(`"a",`, mostIDs) + `"b"]`, `[{"x":1,"X":2,"id":"y"}]`, `[{"":1e999}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, count, fault := CancelIDs(body, mostIDs)
		want, ok := slowCancels(body)
		if ok != (fault == nil) || ok && count != len(want) {
			t.Fatalf("%q: %d, %v, want %d, %v", body, count, fault, len(want), ok)
		}
		if ok && !slices.Equal(got, want[:min(len(want), mostIDs)]) {
			t.Fatalf("%q: %q, want %q", body, got, want)
		}
	})
}

// slowCancels is CancelIDs by encoding/json. Behind the first mostIDs values it returns "".
func slowCancels(body []byte) (ids []string, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil || list == nil || tooDeep(body) {
		return nil, false
	}
	for i, raw := range list {
		id := ""
		if i >= mostIDs {
			ids = append(ids, id)
			continue
		}
		if raw[0] == '"' {
			if json.Unmarshal(raw, &id) != nil {
				return nil, false
			}
		} else if id, ok = slowCancel(raw); !ok {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// slowCancel reads the id of one object.
func slowCancel(raw []byte) (id string, ok bool) {
	var o map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a number beyond all floats is a number, too
	if raw[0] != '{' || d.Decode(&o) != nil || judgeStrictly(raw) != nil {
		return "", false
	}
	found := 0
	for name, value := range o {
		for _, known := range []string{"orderID", "order_id", "id", "hash"} { // orderId folds alike
			if !strings.EqualFold(name, known) {
				continue
			}
			found++
			text, isText := value.(string)
			if !isText && value != nil {
				return "", false
			}
			id += text
		}
	}
	return id, found < 2
}

// tooDeep reports whether the values of a body are nested deeper than the door reads.
func tooDeep(body []byte) bool {
	depth, d := 0, json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			if depth++; depth > scan.MaxNested {
				return true
			}
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}
