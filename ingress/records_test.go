package ingress

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"clobd/engine"
)

// TestTooManyKeys: the sixty-fifth key cannot be created; it can be derived, and those there are
// can be restored.
func TestTooManyKeys(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1"})
	derive := func(nonce int, more string) string {
		return h.run([]string{fmt.Sprintf("derive alice nonce=%d %s", nonce, more)})
	}
	for i := range engine.MaxTradingKeys {
		if got := derive(i, ""); !strings.HasPrefix(got, "200\n") {
			t.Fatalf("key %d: %s", i, got)
		}
	}
	want := "400\n" + `{"error":"too many API keys, max allowed: 64","code":"too_many_keys"}` +
		"\nstate same\n"
	if got := derive(64, ""); got != want {
		t.Errorf("one too many: %s", got)
	}
	if got := derive(64, "get"); !strings.HasPrefix(got, "200\n") {
		t.Errorf("derived: %s", got)
	}
	h.run([]string{"call alice DELETE /auth/api-key keynonce=5"})
	if got := derive(5, ""); !strings.HasSuffix(got, "state changed\n") {
		t.Errorf("restored: %s", got)
	}
}

// TestKeysAtOnce: keys that are created at the same time are different ones.
func TestKeysAtOnce(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1"})
	var mutex sync.Mutex
	keys := map[string]int{}
	var joined sync.WaitGroup
	for range 8 {
		joined.Go(func() {
			got := h.runCall(&words{[]string{"alice", "POST", "/auth/readonly-api-key"}}, nil)
			mutex.Lock()
			defer mutex.Unlock()
			keys[got]++
		})
	}
	joined.Wait()
	if len(keys) != 8 {
		t.Errorf("%v", keys)
	}
}

// TestKeyNotRecorded: a key that could not be put on record is not handed out as created.
func TestKeyNotRecorded(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool { return c.Kind == engine.SetKey }
	})
	h.run([]string{"fund alice 1"})
	want := "503\nRetry-After: 1\n" + `{"error":"this request is quarantined","code":"quarantined"}` +
		"\nstate same\n"
	h.expect("derive alice", want)
	h.expect("call alice DELETE /auth/api-key", want)
	h.expect("call alice POST /auth/builder-api-key", want)
}
