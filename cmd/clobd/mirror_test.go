package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// answer is what a node says to a public GET, as JSON.
func answer(t *testing.T, p *process, path string) (status int, body any) {
	t.Helper()
	response, err := p.public.Get("http://" + p.listen + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatalf("%s: %s: %v", path, text, err)
	}
	return response.StatusCode, body
}

// whole is all rows of a list, by id.
func whole(t *testing.T, p *process, list string) map[string]any {
	t.Helper()
	rows := map[string]any{}
	for page, next := 0, ""; page == 0 || next != ""; page++ {
		_, body := answer(t, p, "/"+list+"/keyset?limit=100&after_cursor="+next)
		fields := body.(map[string]any)
		next, _ = fields["next_cursor"].(string)
		for _, row := range fields[list].([]any) {
			rows[row.(map[string]any)["id"].(string)] = row
		}
	}
	return rows
}

// rows are all rows of a list in its own order.
func rows(t *testing.T, p *process, list string) (all []any) {
	t.Helper()
	const limit = 100
	for more := true; more; {
		_, body := answer(t, p, fmt.Sprintf("/%s?limit=%d&offset=%d", list, limit, len(all)))
		page := body.([]any)
		all, more = append(all, page...), len(page) == limit
	}
	return all
}

// books are all rows of the order book's list by their conditions.
func books(t *testing.T, p *process) map[string]any {
	t.Helper()
	all := map[string]any{}
	for next := "MA=="; next != "LTE="; {
		_, body := answer(t, p, "/clob/markets?next_cursor="+next)
		page := body.(map[string]any)
		next = page["next_cursor"].(string)
		for _, row := range page["data"].([]any) {
			fields := row.(map[string]any)
			all[fields["condition_id"].(string)] = fields
		}
	}
	return all
}

// mirrored waits until a node says of the whole catalog what another one does.
func mirrored(t *testing.T, from, to *process) (events, markets int) {
	t.Helper()
	differs := func() string {
		for list, count := range map[string]*int{"events": &events, "markets": &markets} {
			want, got := whole(t, from, list), whole(t, to, list)
			*count = len(want)
			if len(got) != len(want) {
				return fmt.Sprintf("%d %s, want %d", len(got), list, len(want))
			}
			for id := range want {
				if !reflect.DeepEqual(got[id], want[id]) {
					return fmt.Sprintf("%s %s is\n%v, want\n%v", list, id, got[id], want[id])
				}
			}
		}
		for _, list := range []string{"tags", "series"} {
			if got, want := rows(t, to, list), rows(t, from, list); !reflect.DeepEqual(got, want) {
				return fmt.Sprintf("%s are\n%v, want\n%v", list, got, want)
			}
		}
		got, want := books(t, to), books(t, from)
		for id := range want {
			if !reflect.DeepEqual(got[id], want[id]) {
				return fmt.Sprintf("%s in the order book's list is\n%v, want\n%v", id, got[id], want[id])
			}
		}
		return ""
	}
	deadline, why := time.Now().Add(patience), "?"
	for ; why != ""; why = differs() {
		time.Sleep(10 * time.Millisecond)
		if time.Now().After(deadline) {
			t.Fatalf("%s\n%s", why, to.log.String())
		}
	}
	return events, markets
}

// again makes a node look at its source now.
func (p *process) again(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

func mirrorRecord(event int, market string) string {
	return fmt.Sprintf(`{"id":"%d","ticker":"t","slug":"event-%d","title":"Event %d","active":true,`+
		`"closed":false,"archived":false,"creationDate":"2026-01-01T00:00:00Z",`+
		`"eventMetadata":{"a":1},`+
		`"updatedAt":"2026-01-0%dT00:00:00Z","tags":[{"id":"5","label":"Five","slug":"five"}],`+
		`"series":[{"id":"6","slug":"six","title":"Six","seriesType":"single"}],"markets":[%s]}`+"\n",
		event, event, event, event, market)
}

func mirrorMarket(no int, updated, more string) string {
	return fmt.Sprintf(`{"id":"%d","slug":"market-%d","question":"Number %d?","conditionId":"0x%064x",`+
		`"outcomes":"[\"Yes\", \"No\"]","clobTokenIds":"[\"%d\", \"%d\"]","active":true,`+
		`"updatedAt":%q%s}`, no, no, no, no, 10*no, 10*no+1, updated, more)
}

// TestMirror: a node whose source is another node says of every event, market, series and tag what
// that one does, trades the same markets, learns what is new and what has ended, and goes on
// without its source.
func TestMirror(t *testing.T) {
	t.Parallel()
	binary, file := buildNode(t), filepath.Join(t.TempDir(), "catalog.jsonl")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const old = "2026-01-01T00:00:00Z"
	write(mirrorRecord(1, mirrorMarket(1, old, "")+","+mirrorMarket(2, old, `,"negRisk":true`)) +
		mirrorRecord(2, mirrorMarket(3, old, `,"closed":true,"volume":"12.5"`)) +
		mirrorMarket(4, old, `,"orderPriceMinTickSize":0.001`) + "\n")
	first := newProcess(t, binary, t.TempDir(), "--catalog", file, "--limits", "off")
	first.start(t)
	second := newProcess(t, binary, t.TempDir(), "--catalog", "http://"+first.listen,
		"--limits", "off")
	second.start(t)
	if events, markets := mirrored(t, first, second); events != 2 || markets != 4 {
		t.Errorf("%d events, %d markets", events, markets)
	}
	for _, token := range []string{"10", "20", "40"} {
		if status, _ := answer(t, second, "/book?token_id="+token); status != http.StatusOK {
			t.Errorf("token %s does not trade there: %d", token, status)
		}
	}
	// Market 1 ends, market 2 gets another question, event 3 is new.
	const now = "2026-02-01T00:00:00Z"
	changed := strings.Replace(mirrorMarket(2, now, `,"negRisk":true`), "Number 2?", "What now?", 1)
	write(mirrorRecord(1, mirrorMarket(1, now, `,"closed":true`)+","+changed) +
		mirrorRecord(2, mirrorMarket(3, old, `,"closed":true,"volume":"12.5"`)) +
		mirrorRecord(3, mirrorMarket(5, now, "")) +
		mirrorMarket(4, old, `,"orderPriceMinTickSize":0.001`) + "\n")
	first.again(t)
	for deadline := time.Now().Add(patience); ; {
		if status, _ := answer(t, first, "/markets/5"); status == http.StatusOK {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("the first node does not see what is new")
		}
		time.Sleep(10 * time.Millisecond)
	}
	second.again(t)
	if events, markets := mirrored(t, first, second); events != 3 || markets != 5 {
		t.Errorf("%d events, %d markets", events, markets)
	}
	_, ended := answer(t, second, "/markets/1")
	if m := ended.(map[string]any); m["closed"] != true || m["acceptingOrders"] != false {
		t.Errorf("market 1 goes on: %v", m)
	}
	first.stop(t)
	second.stop(t)
	second.start(t)
	if status, _ := answer(t, second, "/events/slug/event-3"); status != http.StatusOK {
		t.Errorf("without its source the node has forgotten: %d", status)
	}
	_, metrics := get(t, second.admin, "/metrics")
	for name, least := range map[string]float64{"last_success_age_seconds": 0,
		`requests_total{outcome="failed"}`: 1} {
		_, after, _ := strings.Cut(metrics, "\nclobd_catalog_"+name+" ")
		text, _, _ := strings.Cut(after, "\n")
		if value, err := strconv.ParseFloat(text, 64); err != nil || value < least || value > 1e6 {
			t.Errorf("%s is %s without the source, want at least %g", name, text, least)
		}
	}
	second.stop(t)
}

// TestMirrorReal: a node whose source is another one says of the real catalog what that one does:
// of every event, market, series and tag, in the same order, and of every market of the order book.
func TestMirrorReal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: no real catalog")
	}
	folder, err := filepath.Abs("../../../shared/data/catalog")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no %s: skipped", folder)
	}
	binary := buildNode(t)
	first := newProcess(t, binary, t.TempDir(), "--catalog", folder, "--limits", "off")
	first.start(t)
	second := newProcess(t, binary, t.TempDir(), "--catalog", "http://"+first.listen,
		"--limits", "off")
	second.start(t)
	if events, markets := mirrored(t, first, second); events != 657 || markets != 1404 {
		t.Errorf("%d events, %d markets", events, markets)
	}
	first.stop(t)
	second.stop(t)
}
