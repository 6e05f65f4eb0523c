package client

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clobd/cmd/cli"
)

// TestReady: the command fails with the node's own reason, waits if it is told to, and ends when
// the node is ready.
func TestReady(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/readyz":
			t.Errorf("asked for %s", r.URL.Path)
		case asked.Add(1) < 4:
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"ready":false,"why":"disk stalled for 2.5 s"}`))
		default:
			_, _ = w.Write([]byte(`{"ready":true,"version":"1","sequence":9}`))
		}
	}))
	defer server.Close()
	once := Ready{Admin: server.URL}
	if err := once.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "disk stalled") {
		t.Errorf("%v", err)
	}
	patient := Ready{Admin: strings.TrimPrefix(server.URL, "http://"), Wait: time.Minute}
	if err := patient.Run(t.Context()); err != nil || asked.Load() != 4 {
		t.Errorf("%v after %d questions", err, asked.Load())
	}
	server.Close()
	var hint *cli.HintError
	if err := once.Run(t.Context()); !errors.As(err, &hint) {
		t.Errorf("nobody answers: %v", err)
	}
	var usage *cli.UsageError
	if err := (&Ready{Admin: "nowhere"}).Run(t.Context()); !errors.As(err, &usage) {
		t.Errorf("no address: %v", err)
	}
}
