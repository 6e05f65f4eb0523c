package door

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// nodePID is the process of a node that somebody else started on this machine.
var nodePID = flag.Int("pid", 0, "process of the node at -address: its memory is watched")

// What an attack may take, at most.
const (
	mostMemory = 600 << 20       // resident bytes while it goes on
	mostKept   = 100 << 20       // resident bytes more than before,
	backWithin = 3 * time.Minute // so long after its end, on a machine of any speed
	mostSlower = 3               // times the p99 of an idle node, and the hiccups
)

// victim is the node under attack.
type victim struct {
	address, token string
	pid            int
	full           bool // the attack lasts long enough to judge times
	time           time.Duration
}

// TestAttacks attacks a node in each way, from one address and from eight, while honest callers
// trade. CLOBD_SIZE is how many seconds each attack lasts. Times are judged from 10 seconds on.
func TestAttacks(t *testing.T) {
	v := besiege(t)
	names := slices.Sorted(maps.Keys(attacks()))
	if testing.Short() {
		names = []string{"heads", "slow-readers"}
	}
	for _, name := range names {
		for _, from := range []int{1, 8} {
			if from == 8 && !v.full {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", name, from), func(t *testing.T) { v.endure(t, name, from) })
		}
	}
}

// besiege starts a node with limits and a large catalog, or takes the one that was named.
func besiege(t *testing.T) *victim {
	seconds, _ := strconv.Atoi(os.Getenv("CLOBD_SIZE"))
	v := &victim{address: *address, pid: *nodePID, full: seconds >= 10,
		time: time.Duration(max(seconds, 2)) * time.Second, token: tokenOf(0, 0)}
	if binary == "" {
		return v
	}
	folder := t.TempDir()
	source := filepath.Join(folder, "events.jsonl")
	if err := os.WriteFile(source, events(2000), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := start(folder, "--limits", "on", "--faucet", "100000", "--catalog", source)
	if err != nil {
		t.Fatal(err)
	}
	v.address, v.pid = n.public, n.process.Process.Pid
	confine(t, v.pid)
	t.Cleanup(n.stop)
	return v
}

// confine gives a process 1 GiB of memory, beyond which the kernel ends it. Where the kernel does
// not let us, GOMEMLIMIT and the test watch alone.
func confine(t *testing.T, pid int) {
	const most = "1073741824"
	name := fmt.Sprintf("clobd-door-%d", pid)
	for _, group := range []struct{ folder, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		folder := filepath.Join(group.folder, name)
		if os.Mkdir(folder, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(folder) }) // an empty group is left behind at worst
		err := os.WriteFile(filepath.Join(folder, group.limit), []byte(most), 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
		}
		if err == nil {
			return
		}
	}
	t.Log("no control group of memory here: resident bytes are watched")
}

// endure attacks the node and judges how it held.
func (v *victim) endure(t *testing.T, name string, from int) {
	calm := v.serve(t, min(v.time, 15*time.Second))
	before := v.resident(t)
	attackers, err := startChild("attacker", part{Address: v.address, Chain: *chain, Attack: name, From: from,
		Token: v.token})
	if err != nil {
		t.Fatal(err)
	}
	defer attackers.end()
	var begun string
	if err := attackers.told(&begun); err != nil {
		t.Fatal(err)
	}
	peak := v.watch(t)
	siege := v.serve(t, v.time)
	most := peak()
	attackers.end()
	after := v.settle(t, before)
	v.judge(t, name, calm, siege)
	if most > mostMemory {
		t.Errorf("%d MiB in use, want %d at most", most>>20, mostMemory>>20)
	}
	label := strings.ReplaceAll(name, "-", "_") + map[int]string{1: "_one", 8: "_eight"}[from]
	t.Logf("figures: %s_put_off=%d %s_peak_mib=%d %s_after_mib=%d %s_book_idle_ms=%.2f "+
		"%s_book_ms=%.2f %s_cancel_idle_ms=%.2f %s_cancel_ms=%.2f %s_hiccup_ms=%.2f",
		label, siege.PutOff, label, most>>20, label, (after-before)>>20,
		label, millis(percentile99(calm.Books)), label, millis(percentile99(siege.Books)),
		label, millis(percentile99(calm.Cancels)), label, millis(percentile99(siege.Cancels)),
		label, millis(percentile99(siege.Hiccups)))
}

// watch looks at the node's memory until the test asks for its peak, or ends.
func (v *victim) watch(t *testing.T) (peak func() int) {
	most, done := 0, make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			most = max(most, v.resident(t))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop := sync.OnceFunc(func() {
		close(done)
		group.Wait()
	})
	t.Cleanup(stop)
	return func() int {
		stop()
		return most
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// serve lets honest callers trade for d and returns what they got.
func (v *victim) serve(t *testing.T, d time.Duration) *service {
	t.Helper()
	c, err := startChild("honest", part{Address: v.address, Chain: *chain, Token: v.token, Time: d})
	if err != nil {
		t.Fatal(err)
	}
	defer c.end()
	var s service
	if err := c.told(&s); err != nil {
		t.Fatal(err)
	}
	for _, failed := range s.Failed {
		t.Errorf("an honest caller: %s", failed)
	}
	if len(s.Books) == 0 || len(s.Cancels) == 0 {
		t.Fatal("nobody was served")
	}
	return &s
}

// judge compares the times of honest callers with those of an idle node.
func (v *victim) judge(t *testing.T, name string, calm, siege *service) {
	t.Helper()
	if !v.full || name == "connect-storm" {
		return // most of what a storm costs is the kernel's work, which a firewall would spare it
	}
	hiccup := percentile99(siege.Hiccups)
	for _, c := range []struct {
		what        string
		idle, under []time.Duration
	}{{"/book", calm.Books, siege.Books}, {"cancel", calm.Cancels, siege.Cancels}} {
		limit := mostSlower*percentile99(c.idle) + hiccup
		if got := percentile99(c.under); got > limit {
			t.Errorf("%s: p99 %v under attack, want %v at most: %v idle, hiccups %v", c.what, got,
				limit, percentile99(c.idle), hiccup)
		}
	}
}

// settle waits until the node has given memory back, and returns its resident bytes.
func (v *victim) settle(t *testing.T, before int) (after int) {
	t.Helper()
	for end := time.Now().Add(backWithin); ; time.Sleep(100 * time.Millisecond) {
		after = v.resident(t)
		if after <= before+mostKept {
			return after
		}
		if time.Now().After(end) {
			t.Errorf("%d MiB after the attack, %d before", after>>20, before>>20)
			return after
		}
	}
}

// resident returns the bytes of memory that the node occupies, 0 if nobody knows its process.
func (v *victim) resident(t *testing.T) int {
	if v.pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	if err != nil {
		t.Errorf("the node is gone: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest + " none")[0])
	if err != nil {
		t.Errorf("the node is gone: it has no memory")
	}
	return kib << 10
}

// tokenOf is the token of an outcome of a made-up market, as the catalog spells it.
func tokenOf(market, outcome int) string {
	return new(big.Int).SetBytes(fmt.Appendf(nil, "door market %06d outcome %d.", market, outcome)).String()
}

// events are records of n made-up markets for a catalog.
func events(n int) []byte {
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	quote := func(list ...string) string {
		text, _ := json.Marshal(list) // texts never fail
		return string(text)
	}
	for i := range n {
		id, slug := strconv.Itoa(1_000+i), fmt.Sprintf("door-market-%d", i)
		condition := hex.EncodeToString(fmt.Appendf(nil, "condition of door market %07d", i))
		_ = encode.Encode(map[string]any{"id": id, "ticker": slug, "slug": slug, // a buffer never fails
			"title": "Will door " + id + " hold?", "active": true, "closed": false,
			"description": strings.Repeat("A made-up question. ", 20),
			"markets": []map[string]any{{"id": id, "question": "Will door " + id + " hold?",
				"conditionId": "0x" + condition, "slug": slug, "outcomes": quote("Yes", "No"),
				"description":  strings.Repeat("A made-up question. ", 20),
				"clobTokenIds": quote(tokenOf(i, 0), tokenOf(i, 1)), "active": true, "closed": false,
				"enableOrderBook": true, "acceptingOrders": true, "orderPriceMinTickSize": 0.01,
				"orderMinSize": 5, "endDate": "2040-12-31T12:00:00Z"}}})
	}
	return out.Bytes()
}
