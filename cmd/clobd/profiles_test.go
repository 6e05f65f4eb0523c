package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"clobd/cmd/clobd/page"
	"clobd/ingress"
	"clobd/ingress/auth"

	"github.com/prometheus/client_golang/prometheus"
)

// TestProfileRefusals: whoever asks for a profile in vain gets JSON that says so, as everywhere on
// the admin listener.
func TestProfileRefusals(t *testing.T) {
	door, err := ingress.New(ingress.Options{Keyring: auth.NewKeyring([32]byte{1}),
		Verifier: auth.NewVerifier(auth.Domains(80002)), Chains: []uint64{80002}})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{door: door, secrets: secrets{bearer: []byte("Bearer secret")},
		metrics: prometheus.NewRegistry(), settings: &settings{recent: new(page.Recent)}}
	handler := n.adminServer().Handler
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"/debug/pprof/", "", 401}, {"/debug/pprof/heap", "wrong", 401},
		{"/debug/pprof/profile?seconds=1", "", 401}, {"/debug/pprof/nothing", "secret", 404},
		{"/debug/pprof/heap?gc=x&seconds=-1", "secret", 400},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var told problem
		err := json.Unmarshal(w.Body.Bytes(), &told)
		if w.Code != c.want || err != nil || told.Error == "" || told.Hint == "" ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %s", c.path, w.Code, w.Header(), w.Body)
		}
	}
	for guess := 0; ; guess++ { // wrong tokens are bounded here as on all admin routes
		r := httptest.NewRequest(http.MethodPost, "/admin/backup", nil)
		r.Header.Set("Authorization", "Bearer wrong")
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code == http.StatusTooManyRequests {
			break
		} else if guess > 1000 || w.Code != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d", guess, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/debug/pprof/goroutine?debug=1", nil)
	r.Header.Set("Authorization", "Bearer secret")
	w := httptest.NewRecorder()
	if handler.ServeHTTP(w, r); w.Code != http.StatusOK || w.Body.Len() == 0 {
		t.Errorf("a profile: %d", w.Code)
	}
}
