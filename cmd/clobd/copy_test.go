package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/ingress/auth"
	"clobd/scripts/setting"
)

// fill lets the traders of all nodes send bundles of orders until the log has so many entries.
func (f *fleet) fill(t *testing.T, entries uint64) {
	t.Helper()
	var group sync.WaitGroup
	a := f.nodes["a"]
	enough := make(chan struct{})
	for _, x := range f.world.traders {
		group.Go(func() {
			for full := false; !full && !t.Failed(); {
				var all []*intent
				for range 8 {
					all = append(all, x.draw(t))
				}
				x.sent = append(x.sent, all...)
				if status, text, err := x.postAll(all); err != nil || status != http.StatusOK {
					t.Errorf("%d %s %v", status, text, err)
				}
				select {
				case <-enough:
					full = true
				default:
				}
			}
		})
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if s, err := standing(a); err == nil && s.Commit >= entries {
			break
		} else if time.Now().After(end) {
			t.Errorf("%d entries, %v", s.Commit, err)
			break
		}
	}
	close(enough)
	group.Wait()
}

const copiedBytes = "\nclobd_cluster_copied_bytes_total "

// said returns the records of the node's log that have a message, the oldest first.
func (p *process) said(t *testing.T, message string) (all []map[string]any) {
	t.Helper()
	for s := bufio.NewScanner(strings.NewReader(p.log.String())); s.Scan(); {
		line := map[string]any{}
		if json.Unmarshal(s.Bytes(), &line) == nil && line["msg"] == message {
			all = append(all, line)
		}
	}
	return all
}

// takes waits until a node has so many bytes of a copy, and returns the member that gives it.
func (f *fleet) takes(t *testing.T, p *process, bytes uint64) (from string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if folderSize(filepath.Join(p.data, "copy", "whole")) >= bytes {
			break
		} else if time.Now().After(end) || len(p.said(t, "the copy is in its place")) > 0 {
			t.Fatalf("not in the middle of a copy:\n%s", p.log.String())
		}
	}
	for _, line := range p.said(t, "a copy comes") {
		from = string(rune('a' - 1 + int(line["from"].(float64))))
	}
	return from
}

// copied waits until a node is ready that has taken a copy, and returns the bytes that came since
// its start, those of the whole copy, and the first frame that was no part of it.
func (f *fleet) copied(t *testing.T, p *process) (bytes, whole, next float64) {
	t.Helper()
	p.await(t)
	placed, come, recovered := p.said(t, "the copy is in its place"), p.said(t, "a copy comes"),
		p.said(t, "recovered")
	if len(placed) != 1 || len(come) == 0 || len(recovered) != 1 {
		t.Fatalf("no copy was taken, or more than one:\n%s", p.log.String())
	}
	if made := p.said(t, "the index is made anew from the journal"); len(made) > 0 {
		t.Errorf("the index of the copy is of no use: %v", made)
	}
	bytes, whole = placed[0]["bytes"].(float64), come[len(come)-1]["whole"].(float64)
	if placed[0]["frame"] != recovered[0]["frame"] || placed[0]["sequence"] != recovered[0]["sequence"] {
		t.Errorf("the copy has %v, the start found %v", placed[0], recovered[0])
	}
	_, text := get(t, p.admin, "/metrics")
	var told float64 // the text may have an exponent
	at := strings.Index(text, copiedBytes) + len(copiedBytes)
	if _, err := fmt.Sscan(text[at:], &told); err != nil || told != bytes ||
		!strings.Contains(text, "\nclobd_cluster_copying 0\n") {
		t.Errorf("the metrics tell of %v bytes, %v", told, err)
	}
	if exists(p.data, "copy") || exists(p.data, "journal.salvage") || exists(p.data, "lost-healed") {
		t.Error("something of the copy is left")
	}
	return bytes, whole, placed[0]["frame"].(float64) + 1
}

// same compares what two nodes answer about all traders.
func (f *fleet) same(t *testing.T, p, q *process) {
	t.Helper()
	at := map[*process]*fasthttp.HostClient{}
	for _, n := range []*process{p, q} {
		at[n] = &fasthttp.HostClient{Addr: n.listen}
	}
	for _, x := range f.world.traders {
		home, wallet := x.Host, auth.Checksum(x.Signer.Address)
		for _, path := range []string{"/data/trades", "/data/orders", "/positions?user=" + wallet,
			"/activity?user=" + wallet} {
			var answers []string
			for _, n := range []*process{p, q} {
				x.Host = at[n]
				status, text, err := x.exchange(http.MethodGet, path, nil)
				answers = append(answers, fmt.Sprint(status, string(text), err))
				if status != http.StatusOK || len(text) < 40 {
					t.Errorf("%s: %d %s %v", path, status, text, err)
				}
			}
			if answers[0] != answers[1] {
				t.Errorf("%s differs:\n%.300s\n%.300s", path, answers[0], answers[1])
			}
		}
		x.Host = home
	}
}

// TestClusterCopy: new members of a cluster with thousands of entries begin with a copy of another
// member. One is killed in the middle, and goes on where it was; the giver of another one dies.
// Both know what the others know, and get from the leader only what the copy lacks.
func TestClusterCopy(t *testing.T) {
	setting.Full(t, "it fills a cluster; package copies has tests of the parts")
	f := newFleet(t, 1)
	f.fill(t, uint64(setting.Size(t, 2000, 1200)))
	f.agree(t)
	a := f.nodes["a"]
	d := f.join(t, a, "d")
	f.takes(t, d, 2<<20)
	d.kill(t)
	f.fill(t, 0)
	d.launch(t)
	bytes, whole, next := f.copied(t, d)
	t.Logf("d: %.0f bytes of %.0f after the kill, and frames from %.0f on", bytes, whole, next)
	if bytes >= whole {
		t.Errorf("%.0f of %.0f bytes came again:\n%s", bytes, whole, d.log.String())
	}
	f.nodes["d"], f.names = d, append(f.names, "d")
	f.agree(t)
	f.same(t, d, a)

	e := f.join(t, a, "e")
	from := f.takes(t, e, 2<<20)
	if leader := f.agree(t); from == leader {
		t.Logf("the leader %s gives the copy", leader)
	}
	f.nodes[from].kill(t)
	bytes, whole, next = f.copied(t, e)
	t.Logf("e: %s died, %.0f bytes came of copies of %.0f, and frames from %.0f on", from, bytes, whole,
		next)
	f.nodes["e"], f.names = e, append(f.names, "e")
	f.nodes[from].start(t)
	f.agree(t)
	f.same(t, e, f.nodes[from])
	if exists(f.nodes[from].data, "copy.given") {
		t.Errorf("%s has left its copy", from)
	}
	f.check(t)
	f.ask(t, "promote", "d")
	f.burst(t, "", func() {})
	f.agree(t)
	var digests []string
	for _, p := range []*process{d, e, a} {
		p.stop(t)
		digests = append(digests, p.expect(t, 0, []string{"verify", "--data", p.data}, "all is well"))
	}
	t.Log(digests)
	if t.Failed() {
		t.Log(f.logs())
	}
}
