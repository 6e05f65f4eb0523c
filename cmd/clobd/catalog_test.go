package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/api/catalog"
	"clobd/scripts/setting"
)

// get is the answer to a GET of the admin listener.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	return fetch(t, http.DefaultClient, "http://"+address+path)
}

// get is the answer to a GET of the public listener.
func (p *process) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return fetch(t, p.public, "http://"+p.listen+path)
}

func fetch(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	answer, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// untilSays waits until an answer has a text in it.
func (p *process) untilSays(t *testing.T, path, text string) {
	t.Helper()
	var body string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, body = p.get(t, path); strings.Contains(body, text) {
			return
		}
	}
	t.Fatalf("GET %s never said %s; it says %s\n%s", path, text, body, p.log.String())
}

func condition(n int) string { return fmt.Sprintf("0x%064x", n) }

// TestCatalogFollowsItsFile: what changes in the file changes in the node, what the file closes is
// closed, and all of it is there after a start without the file.
func TestCatalogFollowsItsFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.jsonl")
	writeCatalog(t, file, 3)
	p := newProcess(t, buildNode(t), folder, "--catalog", file)
	p.start(t)
	p.untilSays(t, "/clob/markets/"+condition(2), `"accepting_orders":true`)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"question":"Question 1?"`, `"question":"Asked anew?"`, 1)
	lines := strings.Split(changed, "\n")
	lines[1] = strings.ReplaceAll(lines[1], `"closed":false`, `"closed":true`)
	if changed = strings.Join(lines, "\n"); changed == string(text) {
		t.Fatalf("nothing changed in %s", text)
	}
	changed += strings.NewReplacer(condition(3), condition(4), `"3"`, `"4"`, "003", "004",
		"-3", "-4").Replace(lines[2]) + "\n"
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.untilSays(t, "/clob/markets/"+condition(1), "Asked anew?")
	p.untilSays(t, "/clob/markets/"+condition(2), `"closed":true`)
	p.untilSays(t, "/clob/markets/"+condition(4), `"accepting_orders":true`)
	if _, metrics := get(t, p.admin, "/metrics"); !strings.Contains(metrics, "clobd_catalog_markets 4") ||
		!strings.Contains(metrics, "clobd_catalog_last_success_age_seconds") {
		t.Errorf("metrics:\n%s", metrics)
	}
	p.stop(t)
	p.flags = nil
	p.start(t)
	p.untilSays(t, "/clob/markets/"+condition(1), "Asked anew?")
	p.untilSays(t, "/clob/markets/"+condition(2), `"closed":true`)
	p.stop(t)
}

// TestCatalogOfAnotherNode: a node that has its markets from another one describes and lists what
// that one does, and goes on when it is gone.
func TestCatalogOfAnotherNode(t *testing.T) {
	setting.Full(t, "two nodes")
	t.Parallel()
	binary := buildNode(t)
	file := filepath.Join(t.TempDir(), "catalog.jsonl")
	demo := catalog.Demo()
	if err := os.WriteFile(file, demo, 0o600); err != nil {
		t.Fatal(err)
	}
	first := newProcess(t, binary, t.TempDir(), "--catalog", file, "--limits", "off")
	first.start(t)
	second := newProcess(t, binary, t.TempDir(), "--catalog", "http://"+first.listen, "--limits", "off")
	second.start(t)
	for line := range strings.Lines(string(demo)) {
		var event struct {
			ID      string
			Slug    string
			Markets []struct{ ID, Slug, ConditionID string }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		paths := []string{"/events/" + event.ID, "/events/slug/" + event.Slug}
		for _, m := range event.Markets {
			paths = append(paths, "/markets/"+m.ID, "/markets/slug/"+m.Slug,
				"/gamma/markets/"+m.ConditionID, "/clob/markets/"+m.ConditionID)
		}
		for _, path := range paths {
			status, want := first.get(t, path)
			_, got := second.get(t, path)
			for end := time.Now().Add(patience); !sameJSON(t, got, want) && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond) // its first look may have been too slow
				_, got = second.get(t, path)
			}
			if status != http.StatusOK || !sameJSON(t, got, want) {
				t.Errorf("GET %s: %d\n%s\nthe first node: %s", path, status, got, want)
			}
		}
	}
	first.stop(t)
	second.stop(t)
	second.start(t) // without its source
	second.untilSays(t, "/clob/markets/"+firstCondition(t, demo), `"accepting_orders":true`)
	second.stop(t)
}

// sameJSON reports whether two texts hold the same values.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func firstCondition(t *testing.T, text []byte) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(text), `"conditionId": "`)
	if !ok {
		t.Fatal("no condition")
	}
	return rest[:66]
}

// TestCatalogServiceAway: without its source a node starts with what it knows: nothing, at first.
func TestCatalogServiceAway(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	p := newProcess(t, buildNode(t), t.TempDir(), "--catalog", gone.URL)
	p.start(t)
	if !strings.Contains(p.log.String(), `"catalog source"`) {
		t.Errorf("the log says nothing of the source:\n%s", p.log.String())
	}
	p.warns(t, "clobd_catalog_failures_total", "the catalog was never read: ")
	p.stop(t)
	read := filepath.Join(p.data, "catalog", "last-success") // as a look of three hours ago left it
	before := time.Now().Add(-3 * time.Hour)
	if err := errors.Join(os.WriteFile(read, []byte(gone.URL+"\n"), 0o600),
		os.Chtimes(read, before, before)); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.warns(t, "clobd_catalog_last_success_age_seconds", "the catalog was last read 3h0m")
	p.warns(t, "clobd_catalog_last_success_age_seconds", "and could not be read since")
	p.stop(t)
	before = time.Now().Add(-time.Minute)
	if err := os.Chtimes(read, before, before); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	p.warns(t, "clobd_catalog_failures_total", "the catalog could not be read, last with success 1m")
	p.stop(t)
}

// TestCatalogServiceHangs: a node that knows its markets does not wait long for a service that
// takes its time, and serves what it knows.
func TestCatalogServiceHangs(t *testing.T) {
	setting.Full(t, "it waits for deadlines")
	t.Parallel()
	var hangs atomic.Bool
	var asked atomic.Int64
	over := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hangs.Load() {
			asked.Add(1)
			<-over
			return
		}
		list := "[]"
		if r.URL.Path == "/markets" && r.URL.Query().Get("offset") == "0" {
			list = `[{"id":"7","slug":"seven","question":"Seven?","conditionId":"0x` +
				strings.Repeat("7", 64) + `","outcomes":"[\"Yes\",\"No\"]",` +
				`"clobTokenIds":"[\"1\",\"2\"]"}]`
		} else if strings.Contains(r.URL.Path, "keyset") || strings.HasPrefix(r.URL.Path, "/clob") {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, list)
	}))
	defer service.Close()
	defer close(over)
	data := t.TempDir()
	p := newProcess(t, buildNode(t), data, "--catalog", service.URL)
	p.start(t)
	p.stop(t)
	hangs.Store(true)
	p.start(t) // without an answer
	defer p.stop(t)
	if asked.Load() == 0 {
		t.Error("it did not ask")
	}
	if log := p.log.String(); !strings.Contains(log, "context deadline exceeded\",\"known\":1") {
		t.Errorf("it went on for another reason: %s", log)
	}
	if status, body := p.get(t, "/markets/slug/seven"); status != 200 ||
		!strings.Contains(body, `"id":"7"`) {
		t.Errorf("%d %s", status, body)
	}
}
