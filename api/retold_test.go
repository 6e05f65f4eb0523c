package api

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/engine"
	"clobd/scripts/setting"
)

// story is what a listener on the user channel was told: a checksum of each message without its
// tail.
type story struct {
	seed  maphash.Seed
	want  *story // the story that this one must equal; nil: any
	sums  []uint64
	bytes int
	seq   atomic.Uint64 // Sequence of the last message
}

// read reads a socket until a message contains end.
func (s *story) read(t *testing.T, c *websocket.Conn, end string) {
	for {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, text, err := c.ReadMessage()
		if err != nil {
			t.Errorf("after %d messages: %v", len(s.sums), err)
			return
		}
		body, tail, _ := bytes.Cut(text, []byte(`,"stream_id"`))
		_, last, _ := bytes.Cut(tail, []byte(`"seq":`))
		seq, err := strconv.ParseUint(string(bytes.TrimSuffix(last, []byte("}"))), 10, 64)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		s.seq.Store(seq)
		if bytes.HasPrefix(text, []byte(`{"event_type":"heartbeat"`)) {
			continue
		}
		s.bytes += len(text)
		s.sums = append(s.sums, maphash.Bytes(s.seed, body)+seq)
		if n, w := len(s.sums), s.want; w != nil && (n > len(w.sums) || w.sums[n-1] != s.sums[n-1]) {
			t.Errorf("message %d is not the one that the live listener of %d messages got: %s", n,
				len(w.sums), text)
			return
		}
		if bytes.Contains(body, []byte(end)) {
			return
		}
	}
}

// TestToldAgain: a listener who resumes at the first Sequence of a long journal is told the same
// bytes as a live listener. CLOBD_SIZE is the number of Commands in the journal.
func TestToldAgain(t *testing.T) {
	const (
		perFrame = 64
		wish     = `{"type":"user","auth":{"apiKey":"k"},"heartbeat":true`
	)
	commands := setting.Size(t, 20_000, 3000)
	r := newRandom(t, 2)
	r.run()
	url := r.streams()
	listener := openUser(t, url, "alice", wish+`}`)
	if _, _, err := listener.ReadMessage(); err != nil { // the first heartbeat: the listener is live
		t.Fatal(err)
	}
	end := `"id":"` + orderID("end").Hex()
	live := story{seed: maphash.MakeSeed()}
	again := story{seed: live.seed, want: &live}
	var group sync.WaitGroup
	group.Go(func() { live.read(t, listener.Conn, end) })
	began := time.Now()
	for n := 0; int(r.head.Sequence) < commands; n++ {
		if n%200 == 199 {
			w := r.wallets[n/200%2]
			r.do(engine.Command{Kind: engine.CancelAll, Wallet: w, Owner: w, Reason: engine.ByOwner})
		}
		r.frameOf(perFrame)
		late := time.Now().Add(10 * time.Millisecond) // not every frame concerns the listener
		for live.seq.Load()+4*perFrame < uint64(r.head.Sequence) && time.Now().Before(late) {
			time.Sleep(20 * time.Microsecond)
		}
	}
	last := place("end", r.wallets[0], quote{2, 0, engine.Buy, 500, 100})
	last.Seen = r.head.Sequence
	r.do(last)
	group.Wait()
	built := time.Since(began)
	began = time.Now()
	again.read(t, openUser(t, url, "alice", wish+`,"resume":{"seq":1}}`).Conn, end)
	took := time.Since(began)
	if len(again.sums) != len(live.sums) || len(live.sums) < commands/4 {
		t.Errorf("%d messages live, %d told again", len(live.sums), len(again.sums))
	}
	t.Logf("figures: commands=%d frames=%d messages=%d megabytes=%d live_seconds=%.1f again_seconds=%.1f",
		r.head.Sequence, r.head.Frame, len(again.sums), again.bytes>>20, built.Seconds(), took.Seconds())
}
