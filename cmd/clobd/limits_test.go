package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLimitsFile: a node takes its limits from a file, and again on SIGHUP. A bad file refuses the
// start, with the line; while the node runs, it changes nothing.
func TestLimitsFile(t *testing.T) {
	t.Parallel()
	binary, folder := buildNode(t), t.TempDir()
	file := filepath.Join(folder, "limits")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("limit tme 7/10s\n")
	code, text := refusedStart(t, binary, "--data", filepath.Join(folder, "other"), "--limits-file", file)
	if code == 0 || !strings.Contains(text, `line 1: there is no limit "tme": there are `) ||
		!strings.Contains(text, "hint: each line is limit NAME REQUESTS/PERIOD") {
		t.Errorf("code %d, %s", code, text)
	}
	code, text = refusedStart(t, binary, "--limits-file", file, "--limits", "off")
	if code == 0 || !strings.Contains(text, "--limits-file has no effect with --limits off") {
		t.Errorf("code %d, %s", code, text)
	}
	write("limit general 4000/10s\n")
	p := newProcess(t, binary, folder, "--limits-file", file)
	p.start(t)
	says := func() string {
		r, err := http.Get("http://" + p.listen + "/price?token_id=1&side=BUY")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return r.Header.Get("RateLimit-Policy")
	}
	if got := says(); got != `"general";q=4000;w=10, "price";q=200;w=10` {
		t.Errorf("at the start: %s", got)
	}
	again := func(text string, done func() bool) {
		t.Helper()
		write(text)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after SIGHUP: %s\n%s", says(), p.log.String())
			}
		}
	}
	again("limit price 300/10s\nlimit price\n", func() bool {
		return strings.Contains(p.log.String(), "the limits stay as they were") &&
			strings.Contains(p.log.String(), "line 2: write ")
	})
	if got := says(); got != `"general";q=4000;w=10, "price";q=200;w=10` {
		t.Errorf("after a bad file: %s", got)
	}
	again("limit price 300/10s\n", func() bool {
		return says() == `"general";q=5000;w=10, "price";q=300;w=10`
	})
	p.stop(t)
}
