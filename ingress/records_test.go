package ingress

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clobd/engine"
)

// TestTooManyKeys: the sixty-fifth key is handed out and not put on record, and those that are
// there can be restored.
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
	for _, more := range []string{"", "get"} {
		got := derive(64, more)
		if !strings.HasPrefix(got, "200\n") || !strings.HasSuffix(got, "state same\n") {
			t.Errorf("one too many %s: %s", more, got)
		}
	}
	who := trader("alice").Address
	owner, _ := h.board.Directory.Wallet(who)
	if n := len(h.board.Directory.Keys(owner, engine.TradingKey, nil)); n != engine.MaxTradingKeys {
		t.Errorf("%d keys on record", n)
	}
	h.run([]string{"call alice DELETE /auth/api-key keynonce=5"})
	if got := derive(5, ""); !strings.HasSuffix(got, "state changed\n") {
		t.Errorf("restored: %s", got)
	}
	// One that is not on record can be given up all the same; then it is, and others must go first
	// before it is good again.
	h.expect("call alice DELETE /auth/api-key keynonce=64", "200\n{\"revoked\":true}\nstate changed\n")
	if got := h.run([]string{"call alice GET /auth/api-keys keynonce=64"}); !strings.HasPrefix(got, "401\n") {
		t.Errorf("given up: %s", got)
	}
	if got := derive(64, ""); !strings.HasPrefix(got, "400\n") ||
		!strings.Contains(got, "give one up first") || !strings.HasSuffix(got, "state same\n") {
		t.Errorf("restored beyond the limit: %s", got)
	}
	h.run([]string{"call alice DELETE /auth/api-key keynonce=5"})
	if got := derive(64, ""); !strings.HasPrefix(got, "200\n") {
		t.Errorf("restored: %s", got)
	}
}

// TestKeysOfMembers: two members of a cluster that number a key at the same time, before either
// knows of the other's, hand out different ones.
func TestKeysOfMembers(t *testing.T) {
	seen := map[string]bool{}
	for _, route := range []string{"readonly-api-key", "builder-api-key"} {
		for member := range uint32(4) {
			h := newHouse(t, func(o *Options) { o.Member = member })
			h.run([]string{"fund alice 1"})
			for range 2 {
				got := h.run([]string{"call alice POST /auth/" + route})
				if !strings.HasPrefix(got, "200\n") || seen[got] {
					t.Errorf("member %d, %s: %s", member, route, got)
				}
				seen[got] = true
			}
		}
	}
}

// TestKeysRotate: read-only keys and builder keys can be given up for others any number of times;
// only how many are good at once is bounded, and one that was given up stays dead.
func TestKeysRotate(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1"})
	owner, _ := h.board.Directory.Wallet(trader("alice").Address)
	seen := map[string]bool{}
	for i := range 3 * engine.MaxReadOnlyKeys {
		got := h.run([]string{"call alice POST /auth/readonly-api-key"})
		if !strings.HasPrefix(got, "200\n") || seen[got] {
			t.Fatalf("key %d: %s", i, got)
		}
		seen[got] = true
		body := got[strings.Index(got, "\n")+1 : strings.Index(got, "\nstate")]
		body = strings.Replace(body, "apiKey", "key", 1)
		got = h.run([]string{"call alice DELETE /auth/readonly-api-key", body})
		if got != "200\n{\"deleted\":true}\nstate changed\n" {
			t.Fatalf("key %d: %s", i, got)
		}
		for _, path := range []string{"POST", "DELETE"} {
			got = h.run([]string{"call alice " + path + " /auth/builder-api-key"})
			if !strings.HasPrefix(got, "200\n") || !strings.HasSuffix(got, "state changed\n") {
				t.Fatalf("builder key %d: %s %s", i, path, got)
			}
		}
	}
	d := h.board.Directory
	for _, class := range []engine.KeyClass{engine.ReadOnlyKey, engine.BuilderKey} {
		for _, k := range d.Keys(owner, class, nil) {
			if !k.Revoked {
				t.Errorf("key %d of class %d is good", k.Number, class)
			}
		}
	}
	if n := len(seen); n != len(d.Keys(owner, engine.ReadOnlyKey, nil)) {
		t.Errorf("%d keys", n)
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

// TestKeyNotRecorded: a login does not depend on the record; but a key that could not be restored
// is not handed out, because it opens nothing, and one that is kept on record for its class is not
// created without it.
func TestKeyNotRecorded(t *testing.T) {
	var shut atomic.Bool
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool { return c.Kind == engine.SetKey && shut.Load() }
	})
	h.run([]string{"fund alice 1"})
	h.run([]string{"call alice DELETE /auth/api-key keynonce=5"})
	shut.Store(true)
	want := "503\nRetry-After: 1\n" + `{"error":"this request is quarantined","code":"quarantined",` +
		`"detail":"it stopped the node once: it is taken when the operator has looked at it"}` +
		"\nstate same\n"
	if got := h.run([]string{"derive alice"}); !strings.HasPrefix(got, "200\n") {
		t.Errorf("derived: %s", got)
	}
	h.expect("derive alice nonce=5", want)
	h.expect("call alice DELETE /auth/api-key", want)
	h.expect("call alice POST /auth/builder-api-key", want)
}

// TestRevokedKeyIsDisarmed: a key that is given up can send no more heartbeats, and nobody waits
// for them: its orders stay.
func TestRevokedKeyIsDisarmed(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	h.run([]string{"call alice POST /v1/heartbeats"})
	h.run([]string{"call alice DELETE /auth/api-key"})
	armed := 0
	h.board.Directory.Armed(func(engine.WalletNo, uint32, engine.Time) { armed++ })
	if armed != 0 || len(h.server.beats.chains) != 0 {
		t.Errorf("%d keys are armed, %d watched", armed, len(h.server.beats.chains))
	}
	if got := h.run([]string{"wait seconds=60"}); got != "state same\n" {
		t.Errorf("canceled: %s", got)
	}
	if r, _, _, err := h.past(h.names["a1"]); err != nil || r.Status != engine.Live {
		t.Errorf("the order is %v: %v", r.Status, err)
	}
}
