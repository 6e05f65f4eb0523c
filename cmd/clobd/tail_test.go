package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"clobd/cmd/cli"
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
		missing := h.missing(words)
		if missing == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing of %q in\n%s", missing, h.take())
		}
	}
}

// missing returns a word that the process has not written since the last call. If it has written
// all of them, the next call begins after this text.
func (h *heard) missing(words []string) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, word := range words {
		if !strings.Contains(h.text.String(), word) {
			return word
		}
	}
	h.text.Reset()
	return ""
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
