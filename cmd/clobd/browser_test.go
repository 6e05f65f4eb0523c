package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// tradingPage asks its own server what to send, sends it to the node, and tells its server what a
// page could read of the answers.
const tradingPage = `<!doctype html><script>
(async () => {
  const told = [];
  try {
    for (const r of await (await fetch("/plan")).json()) {
      try {
        const a = await fetch(r.url,
          {method: r.method, headers: r.headers || {}, body: r.body || undefined});
        told.push({status: a.status, text: await a.text(),
          version: a.headers.get("X-Node-Version")});
      } catch (e) { told.push({text: String(e)}); }
    }
  } catch (e) { told.push({text: String(e)}); }
  await fetch("/done", {method: "POST", body: JSON.stringify(told)});
})();
</script>`

// errand is a request that a page sends.
type errand struct {
	URL     string            `json:"url"`
	Method  string            `json:"method"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

// errand signs a request for a page.
func (x *actor) errand(t *testing.T, method, path, body string) errand {
	t.Helper()
	r := &auth.Request{Address: x.Address, Timestamp: strconv.FormatInt(time.Now().Unix(), 10),
		Method: method, Path: path, Body: []byte(body)}
	if err := x.Trio.Sign(r); err != nil {
		t.Error(err)
	}
	return errand{"http://" + x.Host.Addr + path, method, map[string]string{"Content-Type": "application/json",
		"Idempotency-Key": "a", "POLY_ADDRESS": x.Address, "POLY_API_KEY": x.Trio.Key,
		"POLY_PASSPHRASE": x.Trio.Passphrase, "POLY_TIMESTAMP": r.Timestamp,
		"POLY_SIGNATURE": r.Signature}, body}
}

// TestBrowserTrades: a page of another origin, in a real browser, posts an order, cancels it, reads
// its account and a book, and reads why it is refused. With a list of origins that lacks the
// page's, its browser shows it nothing.
func TestBrowserTrades(t *testing.T) {
	t.Parallel()
	setting.Full(t, "a browser starts twice")
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: this machine has no chromium")
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "catalog.jsonl")
	tokens := writeCatalog(t, file, 1)
	p := newProcess(t, buildNode(t), folder, "--catalog", file, "--faucet", "1000")
	p.start(t)
	told := visit(t, browser, p, tokens)
	want := []int{200, 401, 200, 200, 200, 404}
	if len(told) != len(want) {
		t.Fatalf("the page tells %+v", told)
	}
	for i, answer := range told {
		if answer.Status != want[i] || answer.Text == "" || answer.Version == "" {
			t.Errorf("request %d: the page reads %+v, not %d", i, answer, want[i])
		}
	}
	p.leave(t)
	p.flags = append(p.flags, "--cors-origin", "https://desk.example")
	p.start(t)
	for i, answer := range visit(t, browser, p, tokens) {
		if answer.Status != 0 {
			t.Errorf("request %d: a page of a foreign origin reads %+v", i, answer)
		}
	}
	p.leave(t)
}

// seen is what a page could read of an answer.
type seen struct {
	Status        int
	Text, Version string
}

// visit opens the page in a browser and returns what it tells.
func visit(t *testing.T, browser string, p *process, tokens []outcome) (told []seen) {
	t.Helper()
	url := "http://" + p.listen
	wallet := &actor{outcomes: tokens, rand: rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))}
	x := wallet.again(t, url, [32]byte{31: 9})
	order := x.draw(t)
	done := make(chan []byte, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, tradingPage)
	})
	mux.HandleFunc("/plan", func(w http.ResponseWriter, _ *http.Request) {
		post := x.errand(t, "POST", "/order", string(order.body))
		wrong := x.errand(t, "POST", "/order", string(order.body))
		wrong.Headers["POLY_SIGNATURE"] = post.Headers["POLY_PASSPHRASE"]
		_ = json.NewEncoder(w).Encode([]errand{post, wrong,
			x.errand(t, "DELETE", "/order", fmt.Sprintf(`{"orderID":%q}`, order.id.Hex())),
			x.errand(t, "GET", "/data/orders", ""),
			{URL: url + "/book?token_id=" + tokens[0].token, Method: "GET"},
			{URL: url + "/book?token_id=1", Method: "GET"}})
	})
	mux.HandleFunc("/done", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		done <- text
	})
	page := httptest.NewServer(mux)
	defer page.Close()
	folder, err := os.MkdirTemp("", "clobd-browser-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder) // its processes may write into it until the end
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--user-data-dir="+folder,
		"--remote-debugging-port=0", page.URL)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it has started others
		_ = cmd.Wait()
	}()
	select {
	case text := <-done:
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	case <-time.After(patience):
		t.Fatal("the browser never told anything")
	}
	return told
}
