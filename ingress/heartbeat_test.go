package ingress

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clobd/engine"
)

// TestChain: what each beat is answered, by a clock of its own.
func TestChain(t *testing.T) {
	h := &heartbeats{chains: make(map[beatKey]*chain)}
	k, now := beatKey{1, 7}, time.Unix(testNow, 0)
	expect := func(given string, want beatResult) string {
		t.Helper()
		id, got := judged(h, k, given, now)
		if got != want {
			t.Errorf("beat %q: %d, want %d", given, got, want)
		}
		return id
	}
	expect("", beatFirst)
	expect("x", beatWrong)
	first := h.start(k, 15*time.Second, now)
	second := expect(first, beatTaken)
	if second == first || second == "" {
		t.Errorf("ids %q and %q", first, second)
	}
	if id := expect(first, beatWrong); id != second {
		t.Errorf("told to send %q, want %q", id, second)
	}
	third := expect("", beatTaken) // started anew
	expect(second, beatWrong)
	now = now.Add(14 * time.Second)
	if keys := h.silent(now); keys != nil {
		t.Errorf("silent: %v", keys)
	}
	expect("wrong", beatWrong) // moves nothing
	now = now.Add(time.Second)
	if keys := h.silent(now); len(keys) != 1 || keys[0] != k {
		t.Fatalf("silent: %v", keys)
	}
	if keys := h.silent(now); keys != nil {
		t.Errorf("silent twice: %v", keys)
	}
	expect(third, beatLate)
	h.finish(k, false)
	if keys := h.silent(now); len(keys) != 1 {
		t.Errorf("not tried again: %v", keys)
	}
	h.finish(k, true)
	expect(third, beatWrong)
	expect("", beatFirst)
}

// TestTwoFirstBeats: two first beats that wait for the disk at the same time begin one chain, with
// which either may go on.
func TestTwoFirstBeats(t *testing.T) {
	h := &heartbeats{chains: make(map[beatKey]*chain)}
	k, now := beatKey{1, 7}, time.Unix(testNow, 0)
	for range 2 {
		if _, got := judged(h, k, "", now); got != beatFirst {
			t.Fatalf("beat: %d", got)
		}
	}
	first := h.start(k, 15*time.Second, now)
	now = now.Add(10 * time.Second)
	if second := h.start(k, 15*time.Second, now); second != first {
		t.Errorf("ids %q and %q", first, second)
	}
	now = now.Add(10 * time.Second)
	if keys := h.silent(now); keys != nil {
		t.Errorf("the second one did not count: %v", keys)
	}
	if _, got := judged(h, k, first, now); got != beatTaken {
		t.Errorf("going on with the first: %d", got)
	}
}

// TestTwoFirstBeatsAtTheDoor sends them while the disk hangs.
func TestTwoFirstBeatsAtTheDoor(t *testing.T) {
	h := newHouse(t, nil)
	h.run([]string{"fund alice 1000"})
	w := rawRequest{method: "POST", path: "/v1/heartbeats"}
	h.signed(&w, "alice", &words{})
	before := h.entered()
	release := h.block()
	var joined sync.WaitGroup
	var got [2]string
	for i := range got {
		joined.Go(func() { got[i] = h.send(w.String()) })
	}
	h.awaitEntered(before + len(got))
	release()
	joined.Wait()
	if got[0] != got[1] || !strings.HasPrefix(got[0], "200\n") {
		t.Errorf("answers %s and %s", got[0], got[1])
	}
}

// TestManySilentKeys: the orders of all keys that fall silent together are canceled in the time of
// one sync, as all that it takes has entered before any of it is durable; it leaves one line in the
// log.
func TestManySilentKeys(t *testing.T) {
	var log strings.Builder
	h := newHouse(t, func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	const owners, each = 3, 8
	now := h.server.options.Now()
	for i := range owners {
		name := fmt.Sprintf("silent%d", i)
		h.run([]string{"fund " + name + " 1000"})
		h.run([]string{"order " + name + " buy A 10 @ 0.40 as=" + name})
		owner, _ := h.board.Directory.Wallet(trader(name).Address)
		for key := range uint32(each) {
			h.submit(engine.Command{Kind: engine.Arm, Owner: owner, Key: key, Expiry: 15_000})
			h.server.beats.start(beatKey{owner, key}, beatTimeout, now)
		}
	}
	before := h.entered()
	release := h.block()
	var waited sync.WaitGroup
	waited.Go(func() {
		if got := h.run([]string{"wait seconds=15"}); got != "state changed\n" {
			t.Errorf("not canceled: %s", got)
		}
	})
	// A farewell for each key, and a sweep for those that have an order: the others change nothing.
	h.awaitEntered(before + owners + owners*each)
	release()
	waited.Wait()
	armed := 0
	h.board.Directory.Armed(func(engine.WalletNo, uint32, engine.Time) { armed++ })
	if armed != 0 {
		t.Errorf("%d keys are still armed", armed)
	}
	for i := range owners {
		if r, _, _, err := h.past(h.names[fmt.Sprintf("silent%d", i)]); r.Status != engine.Canceled {
			t.Errorf("order %d is %v: %v", i, r.Status, err)
		}
	}
	if n := strings.Count(log.String(), "silent"); n != 1 {
		t.Errorf("%d lines in the log:\n%s", n, &log)
	}
}

// TestChainAfterRestart: a key that was watched before has one full grace, and its next beat may
// carry any id: nobody knows which one it was told.
func TestChainAfterRestart(t *testing.T) {
	h := &heartbeats{chains: make(map[beatKey]*chain)}
	k, now := beatKey{1, 7}, time.Unix(testNow, 0)
	h.resume(func(each func(engine.WalletNo, uint32, engine.Time)) { each(1, 7, 15_000) }, now)
	if keys := h.silent(now.Add(15*time.Second - 1)); keys != nil {
		t.Errorf("silent: %v", keys)
	}
	id, got := judged(h, k, "of the time before", now)
	if got != beatTaken {
		t.Fatalf("beat: %d", got)
	}
	if _, got := judged(h, k, "of the time before", now); got != beatWrong {
		t.Errorf("sent again: %d", got)
	}
	if _, got := judged(h, k, id, now.Add(14*time.Second)); got != beatTaken {
		t.Errorf("next: %d", got)
	}
	if keys := h.silent(now.Add(29 * time.Second)); len(keys) != 1 {
		t.Errorf("silent: %v", keys)
	}
}

// TestWatch runs the door on the clock of a bubble: a key beats, falls silent, and its orders are
// gone after ten seconds and the buffer, not before.
func TestWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		start := time.Now()
		h := buildHouse(t, func(o *Options) {
			o.Now = func() time.Time { return time.Unix(testNow, 0).Add(time.Since(start)) }
		})
		h.start()
		h.late.Store(0)
		h.run([]string{"fund alice 1000"})
		h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
		beat := func(body string) string {
			t.Helper()
			h.late.Store(int64(time.Since(start) / time.Second))
			got := h.runCall(&words{[]string{"alice", "POST", "/v1/heartbeats"}}, []string{body})
			_, id, _ := strings.Cut(got, `"heartbeat_id":"`)
			id, _, _ = strings.Cut(id, `"`)
			if !strings.HasPrefix(got, "200\n") {
				t.Errorf("beat: %s", got)
			}
			return id
		}
		live := func() bool {
			r, _, _, err := h.past(h.names["a1"])
			if err != nil {
				t.Fatal(err)
			}
			return r.Status == engine.Live
		}
		id := ""
		for range 4 {
			id = beat(`{"heartbeat_id":"` + id + `"}`)
			time.Sleep(9 * time.Second)
		}
		time.Sleep(5 * time.Second)
		if !live() {
			t.Error("canceled 14 seconds after the last beat")
		}
		time.Sleep(2 * time.Second)
		if live() {
			t.Error("live 16 seconds after the last beat")
		}
		armed := 0
		h.board.Directory.Armed(func(engine.WalletNo, uint32, engine.Time) { armed++ })
		if armed != 0 {
			t.Error("watched for ever")
		}
	})
}

// TestSilenceIsTriedAgain: orders that cannot be canceled now are canceled at the next look, and no
// beat is taken in between.
func TestSilenceIsTriedAgain(t *testing.T) {
	var shut atomic.Bool
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool { return c.Kind == engine.CancelAll && shut.Load() }
	})
	h.run([]string{"fund alice 1000"})
	h.run([]string{"order alice buy A 10 @ 0.40 as=a1"})
	h.run([]string{"call alice POST /v1/heartbeats"})
	shut.Store(true)
	if got := h.run([]string{"wait seconds=15"}); got != "state same\n" {
		t.Errorf("canceled: %s", got)
	}
	shut.Store(false)
	if got := h.run([]string{"wait seconds=0"}); got != "state changed\n" {
		t.Errorf("not canceled: %s", got)
	}
}

// beatResult is what became of a beat.
type beatResult uint8

const (
	beatTaken beatResult = iota
	beatFirst            // nobody watches this key yet
	beatWrong            // another id was expected
	beatLate             // its orders are being canceled
)

// judged has h judge a beat, and returns the id to go on with.
func judged(h *heartbeats, k beatKey, id string, now time.Time) (string, beatResult) {
	next, refused := h.beat(k, id, now)
	switch {
	case next != "":
		return next, beatTaken
	case refused == nil:
		return "", beatFirst
	case refused == refuseBusy:
		return "", beatLate
	}
	return refused.More[1].Value, beatWrong
}

// TestHeartbeatBusy: a first beat that could not be journaled watches nobody.
func TestHeartbeatBusy(t *testing.T) {
	h := newHouse(t, func(o *Options) {
		o.Quarantined = func(c *engine.Command) bool { return c.Kind == engine.Arm }
	})
	h.run([]string{"fund alice 1000"})
	h.expect("call alice POST /v1/heartbeats", "503\nRetry-After: 1\n"+
		`{"error":"this request is quarantined","code":"quarantined",`+
		`"detail":"it stopped the node once: it is taken when the operator has looked at it"}`+"\nstate same\n")
	if n := len(h.server.beats.chains); n != 0 {
		t.Errorf("%d keys are watched", n)
	}
}

// TestHeartbeatsOfCluster: the node that leads watches the keys of all nodes, each from when it
// began to; the others tell it whom they hear, and cancel nothing.
func TestHeartbeatsOfCluster(t *testing.T) {
	var leads bool
	var told []beatKey
	h := newHouse(t, func(o *Options) {
		o.Watches = func() bool { return leads }
		o.Heard = func(owner engine.WalletNo, key uint32) bool {
			told = append(told, beatKey{owner, key})
			return true
		}
	})
	address := engine.Address{1}
	h.submit(engine.Command{Kind: engine.Deposit, Address: address, Cash: 1})
	owner, _ := h.board.Directory.Wallet(address)
	k, beats := beatKey{owner, 3}, &h.server.beats
	arm := engine.Command{Kind: engine.Arm, Owner: owner, Key: k.key, Expiry: 15_000}
	h.submit(arm)
	now := time.Unix(h.now(), 0)
	beats.start(k, beatTimeout, now)
	beats.look(now.Add(time.Second))
	if beats.look(now.Add(2 * time.Second)); len(told) != 1 || told[0] != k {
		t.Errorf("told of %v", told)
	}
	if beats.look(now.Add(time.Minute)); len(beats.chains) != 0 {
		t.Errorf("%d chains of a key that is silent here", len(beats.chains))
	}
	leads = true // the key was never heard here, and has its full timeout
	beats.look(now.Add(time.Minute))
	if keys := beats.silent(now.Add(time.Minute + beatTimeout - 1)); keys != nil {
		t.Errorf("silent too early: %v", keys)
	}
	h.server.Heard(k.owner, k.key)
	beats.chains[k].last = now.Add(time.Minute + 10*time.Second)
	if keys := beats.silent(now.Add(time.Minute + 20*time.Second)); keys != nil {
		t.Errorf("silent although another node heard: %v", keys)
	}
	if keys := beats.silent(now.Add(time.Minute + 25*time.Second)); len(keys) != 1 || keys[0] != k {
		t.Errorf("silent: %v", keys)
	}
	arm.Expiry = 0
	h.submit(arm)
	if beats.look(now.Add(2 * time.Minute)); len(beats.chains) != 0 {
		t.Errorf("%d chains after another node has disarmed the key", len(beats.chains))
	}
}
