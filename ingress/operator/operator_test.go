package operator

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"clobd/engine"
)

// TestAdminAnswersLikeEncodingJSON: answers to an operator are the bytes that encoding/json writes.
func TestAdminAnswersLikeEncodingJSON(t *testing.T) {
	for _, body := range []map[string]any{
		{"sequence": engine.Sequence(1 << 63), "wallet": "0xAb", "amount": "1.5", "token": "7"},
		{"number": engine.WalletNo(3), "owner_number": engine.WalletNo(0), "repeated": true},
		{"token": "<a href=\"x\">&\u2028\u00e9\x00\xff", "hint": ""}, {},
	} {
		w := httptest.NewRecorder()
		reply(w, body, nil)
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Body.String(); got != string(want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
