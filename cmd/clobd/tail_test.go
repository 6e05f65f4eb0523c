package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/cmd/cli"
	"clobd/scripts/setting"
)

// heard is what a process has written so far.
type heard struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write keeps what comes.
func (h *heard) Write(b []byte) (int, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.text.Write(b)
}

// take returns what the process has written since the last call.
func (h *heard) take() string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	text := h.text.String()
	h.text.Reset()
	return text
}

// await waits until the process has written each of some words since the last call.
func (h *heard) await(t *testing.T, words ...string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		h.mutex.Lock()
		text, missing := h.text.String(), ""
		for _, word := range words {
			if !strings.Contains(text, word) {
				missing = word
			}
		}
		if missing == "" {
			h.text.Reset()
		}
		h.mutex.Unlock()
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing of %q in\n%s", missing, text)
		}
	}
}

// TestTail: a tail prints books and changes, and goes on by itself when the node comes back. If the
// node has told that something is missing, the tail ends with 1, else with 0.
func TestTail(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, 4, 1)
	n := w.node
	for _, breaks := range []bool{false, true} {
		out := &heard{}
		c := exec.Command(n.binary, "tail", "--url", "http://"+n.listen, "--market", w.tokens[0].token)
		c.Stdout, c.Stderr = out, out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		out.await(t, `"event_type":"book"`, `"asset_id":"`+w.tokens[0].token)
		w.load(t, func() {})
		out.await(t, `"event_type":"price_change"`, `"hash":"`)
		missing := false
		if breaks {
			n.stop(t)
			out.await(t, "connecting again")
			n.start(t)
			said := ""
			for end := time.Now().Add(patience); !strings.Contains(said, `"price_change"`); {
				w.load(t, func() {}) // until the tail is there again
				if said += out.take(); time.Now().After(end) {
					t.Fatalf("no change in\n%s", said)
				}
			}
			missing = strings.Contains(said, `"event_type":"resync"`)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		var exit *exec.ExitError
		if missing != errors.As(err, &exit) || missing && exit.ExitCode() != cli.Failed {
			t.Errorf("break %v, missing %v: %v", breaks, missing, err)
		}
	}
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--market", "77"},
		"error: the node does not know a market", "hint: --market names")
	n.stop(t)
	n.expect(t, cli.Failed, []string{"tail", "--url", "http://" + n.listen, "--market",
		"0x" + strings.Repeat("0", 64)}, "error: find market", "hint: --url names")
}

// TestTailUnknown: a tail of a market that the node does not know ends with an error that says so.
func TestTailUnknown(t *testing.T) {
	told := &tail{tailCommand: &tailCommand{}}
	for _, code := range []string{"unknown_asset", "unknown_market"} {
		at := uint64(0)
		text := `{"event_type":"error","code":"` + code + `","message":"no","sequence":1,"seq":1}`
		if err := told.print([]byte(text), &at); !errors.Is(err, errUnknown) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestTailGone: if the node cannot resume from a Sequence, the tail goes on from the Sequence that
// the node names.
func TestTailGone(t *testing.T) {
	for _, kind := range []string{`"error","code":"unknown_seq"`, `"resync"`} {
		told := &tail{tailCommand: &tailCommand{}, seen: 1000, part: 3}
		at := uint64(0)
		text := `{"event_type":` + kind + `,"sequence":1,"seq":17}`
		if err := told.print([]byte(text), &at); err != nil || told.seen != 17 || told.part != 0 ||
			told.missing != 1 {
			t.Errorf("%v, %d, part %d, %d times", err, told.seen, told.part, told.missing)
		}
	}
}

// TestTailStalls: if the node sends nothing more after a heartbeat, the tail gives the connection
// up after tailBeat.
func TestTailStalls(t *testing.T) {
	setting.Full(t, "it waits for sockets to fill")
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err == nil {
			err = c.WriteMessage(websocket.TextMessage,
				[]byte(`{"event_type":"heartbeat","sequence":1,"seq":1}`))
		}
		if err != nil {
			t.Error(err)
		}
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	for try := 1; ; try++ {
		told := &tail{tailCommand: &tailCommand{URL: server.URL}}
		begun := time.Now()
		err := told.follow(t.Context())
		took := time.Since(begun)
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() || took < tailBeat {
			t.Fatalf("%v after %v", err, took)
		}
		if took < tailAnswer { // the machine may have stood still
			return
		}
		if try == 3 {
			t.Fatalf("%v after %v, and never earlier", err, took)
		}
	}
}

// TestTailGap: a message that never came is an error that says which.
func TestTailGap(t *testing.T) {
	told := &tail{tailCommand: &tailCommand{}}
	at := uint64(0)
	beat := func(sequence, seq string) string {
		return `{"event_type":"heartbeat","sequence":` + sequence + `,"seq":` + seq + `}`
	}
	for text, want := range map[string]string{
		beat("2", "7"): "message 2 of the connection came where 1 was due",
		"[" + beat("1", "7") + "," + beat("3", "8") + "]": "message 3 of the connection came where 2",
		`nonsense`: "invalid character",
	} {
		at = 0
		if err := told.print([]byte(text), &at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	at = 0
	good := "[" + beat("1", "9") + "," + beat("2", "8") + "]"
	if err := told.print([]byte(good), &at); err != nil || at != 2 || told.seen != 9 {
		t.Errorf("%v, %d messages, seen %d", err, at, told.seen)
	}
}
