package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
)

// TestWalletFlags: the list of networks looks behind trusted proxies and at nobody else's word, and
// the profiles are served.
func TestWalletFlags(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	markets := writeCatalog(t, filepath.Join(folder, "catalog.jsonl"), 1)
	profiles := filepath.Join(folder, "profiles.json")
	wallet := "0x00000000000000000000000000000000000000AA"
	text := `[{"proxyWallet":"` + wallet + `","name":"Ada"}]`
	if err := os.WriteFile(profiles, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := buildNode(t)
	p := newProcess(t, binary, folder, "--catalog", filepath.Join(folder, "catalog.jsonl"),
		"--wallet-allow", "203.0.113.0/24", "--trusted-proxy", "127.0.0.1/32", "--profiles", profiles)
	p.start(t)
	defer p.stop(t)
	o := client.Operator{Admin: p.admin, Data: p.data}
	if _, err := o.Post("/admin/fund", map[string]string{"wallet": wallet, "amount": "10",
		"token": markets[0].token}, time.Minute); err != nil {
		t.Fatal(err)
	}
	for forwarded, want := range map[string]int{
		"203.0.113.7": 200, "198.51.100.1": 401, "": 401,
		"203.0.113.7, 198.51.100.1": 401, // what stands further left was written by strangers
	} {
		status, body := p.ask(t, "/value?user="+wallet, forwarded)
		if status != want || want == 401 && body != `{"error":"unauthorized: ip_not_allowlisted"}` {
			t.Errorf("from %q: %d %s", forwarded, status, body)
		}
	}
	if status, body := p.ask(t, "/time", ""); status != 200 {
		t.Errorf("the time: %d %s", status, body)
	}
	condition := "0x" + strings.Repeat("0", 63) + "1"
	for _, path := range []string{"/positions?user=" + wallet, "/holders?market=" + condition} {
		_, body := p.ask(t, path, "203.0.113.7")
		if !strings.Contains(body, `"proxyWallet":"`+wallet+`"`) {
			t.Errorf("%s: %s", path, body)
		}
		if strings.HasPrefix(path, "/holders") && !strings.Contains(body, `"name":"Ada"`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	for flag, says := range map[string]string{
		"--wallet-allow=lan":    `error: --wallet-allow "lan" is no network`,
		"--profiles=" + binary:  "hint: --profiles takes a JSON array",
		"--profiles=/nowhere/x": "error: open profiles",
	} {
		code, text := refusedStart(t, binary, "--data", filepath.Join(folder, "other"), flag)
		if code == 0 || !strings.Contains(text, says) {
			t.Errorf("%s: code %d, %s", flag, code, text)
		}
	}
}

// ask asks for a path as if through a proxy.
func (p *process) ask(t *testing.T, path, forwarded string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequest("GET", "http://"+p.listen+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if forwarded != "" {
		request.Header.Set("X-Forwarded-For", forwarded)
	}
	answer, err := p.public.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(b))
}
