package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/scripts/setting"
)

// wealth is what each trader of a fleet is given.
const wealth = 1_000_000

// examine looks at all nodes once they agree: each has every order that was acknowledged since the
// last time, wherever that was, and one that is sent again to another node is no second one.
func (f *fleet) examine(t *testing.T) {
	t.Helper()
	f.agree(t)
	sent := map[*actor][]*intent{}
	for _, x := range f.world.traders {
		sent[x] = x.sent[f.examined[x]:]
		f.examined[x] = len(x.sent)
	}
	f.everywhere(t, func(name string, orders func(*actor) []*intent) {
		for _, x := range f.world.traders {
			verify(t, orders(x), map[string]float64{})
		}
		f.resend(t, sent[f.world.traders[f.rand.IntN(len(f.world.traders))]])
	}, sent)
	if t.Failed() {
		t.Fatal(f.logs())
	}
}

// everywhere lets the traders talk to each node in turn, and read what it shows of all that the
// nodes have agreed on.
func (f *fleet) everywhere(t *testing.T, look func(name string, orders func(*actor) []*intent),
	sent map[*actor][]*intent) {
	t.Helper()
	s, err := standing(f.nodes[f.agree(t)])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.names {
		host := &fasthttp.HostClient{Addr: f.nodes[name].listen, MaxIdemponentCallAttempts: 1}
		for _, x := range f.world.traders {
			home, manner := x.Host, x.manner
			x.Host, x.manner = host, fmt.Sprintf("?min_seq=%d", s.Sequence)
			defer func() { x.Host, x.manner = home, manner }()
		}
		look(name, func(x *actor) []*intent { return sent[x] })
		host.CloseIdleConnections()
	}
}

// examineAll compares each node with all that was ever sent: orders, books and money. Then it kills
// all nodes: their journals are sound, and their states equal.
func (f *fleet) examineAll(t *testing.T) {
	t.Helper()
	f.examine(t)
	f.everywhere(t, func(name string, _ func(*actor) []*intent) {
		levels := map[string]float64{}
		verify(t, f.all(), levels)
		f.node = f.nodes[name]
		f.books(t, levels)
		f.money(t, name)
	}, nil)
	s, err := standing(f.nodes[f.agree(t)])
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range f.names {
		f.nodes[name].kill(t)
	}
	digests := map[string]string{}
	for _, name := range f.names {
		p := f.nodes[name]
		digests[name] = p.digestAt(t, p.data, uint64(s.Sequence))
		p.expect(t, cli.Done, []string{"verify", "--data", p.data}, "all is well")
		if digests[name] != digests[f.names[0]] {
			t.Errorf("digests after Sequence %d: %v", s.Sequence, digests)
		}
	}
	if t.Failed() {
		t.Log(f.logs())
	}
}

// money: all orders buy, so each fill makes a pair of what two of them pay, and what is not in
// pairs is in the wallets.
func (f *fleet) money(t *testing.T, name string) {
	t.Helper()
	filled := map[string]float64{}
	for _, i := range f.all() {
		filled[i.token] += i.filled
	}
	pairs := 0.0
	for n := 0; n < len(f.tokens); n += 2 {
		yes, no := filled[f.tokens[n].token], filled[f.tokens[n].other]
		if pairs += yes; yes != no {
			t.Errorf("%s: %g shares of %s were bought, and %g of the other outcome", name, yes,
				f.tokens[n].token, no)
		}
	}
	cash := 0
	for _, x := range f.world.traders {
		status, body, err := x.exchange(http.MethodGet, "/balance-allowance?asset_type=COLLATERAL", nil)
		var told struct{ Balance string }
		if err == nil {
			err = json.Unmarshal(body, &told)
		}
		n, bad := strconv.Atoi(told.Balance)
		if err != nil || bad != nil || status != http.StatusOK {
			t.Fatalf("%s: a balance: %d %s %v", name, status, body, err)
		}
		cash += n
	}
	want := (wealth*len(f.world.traders) - int(pairs)) * int(engine.Unit)
	if cash != want || pairs == 0 {
		t.Errorf("%s: %d in the wallets and %g pairs, want %d", name, cash, pairs, want)
	}
}

// follower draws a voter that does not lead.
func (f *fleet) follower(leader string) string {
	voters := []string{"a", "b", "c"}
	at := slices.Index(voters, leader)
	return voters[(at+1+f.rand.IntN(2))%3]
}

// TestClusterKillOthers kills a voter that does not lead, and now and then the gateway, under load
// at all four nodes, and starts it again meanwhile. Writes go on.
func TestClusterKillOthers(t *testing.T) {
	setting.Full(t, "TestClusterKill stays")
	f := newFleet(t, 2)
	f.pace = 5 * time.Millisecond
	var l toll
	gateways, kills := 0, setting.Size(t, 3, 2)
	for n := range kills {
		victims := []string{f.follower(f.agree(t))}
		if n%4 == 1 {
			gateways++
			victims = append(victims, "g")
		}
		for _, victim := range victims {
			p := f.nodes[victim]
			b, pause := f.strike(t, victim, func(b *burst) {
				p.kill(t)
				b.goesOn(t, time.Now(), victim)
				p.start(t)
			})
			l.note(t, victim+" killed", b, pause)
			f.examine(t)
		}
	}
	f.examineAll(t)
	t.Logf("figures: kills=%d gateways=%d %s", kills, gateways, l.figures(f))
	l.within(t, 800*time.Millisecond, 2500*time.Millisecond)
}

// TestClusterStops holds a node still for 10 s under load, the one that leads, a follower, and the
// gateway in turn: the others go on without it, and when it goes on itself, it takes orders as
// before.
func TestClusterStops(t *testing.T) {
	setting.Full(t, "TestClusterHistories has short pauses")
	t.Parallel()
	f := newFleet(t, 2)
	f.pace = 100 * time.Millisecond
	hold := 2 * time.Second
	if asked() {
		hold = 10 * time.Second
	}
	var l, leaders toll
	stops := setting.Size(t, 3, 2)
	for n := range stops {
		leader := f.agree(t)
		victim := []string{leader, f.follower(leader), "g"}[n%3]
		b, pause := f.strike(t, "", func(b *burst) {
			f.signal(t, f.nodes[victim], syscall.SIGSTOP)
			at := time.Now()
			b.goesOn(t, at, victim)
			time.Sleep(time.Until(at.Add(hold)))
			f.signal(t, f.nodes[victim], syscall.SIGCONT)
			at = time.Now()
			b.await(t, victim+" takes orders again", 1,
				func(r *retort) bool { return r.acked(victim, at) })
		})
		if l.note(t, victim+" held still, "+leader+" led", b, pause); victim == leader {
			leaders.add(b, pause)
		}
		f.examine(t)
	}
	f.examineAll(t)
	t.Logf("figures: stops=%d %s leader_median_ms=%d leader_max_ms=%d", stops, l.figures(f),
		median(leaders.pauses).Milliseconds(), slices.Max(leaders.pauses).Milliseconds())
}

// TestClusterFullDisk fills the disk of the node that leads, and that of a follower, under load:
// below its reserve, and to the last byte at once. Somebody else leads, the other doors go on, and
// with room again the node is one of them, started again if it has ended.
func TestClusterFullDisk(t *testing.T) {
	setting.Full(t, "TestClusterFull stays")
	t.Parallel()
	const reserve = 8 << 20
	f := newFleet(t, 2)
	f.pace = 5 * time.Millisecond
	disks := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		f.node = f.nodes[name]
		disks[name] = f.onSmallDisk(t, "--disk-reserve", fmt.Sprint(reserve))
		f.node.start(t)
	}
	var l toll
	ended, rounds := 0, setting.Size(t, 4, 2)
	for n := range rounds {
		leader := f.agree(t)
		victim := []string{leader, f.follower(leader)}[n%2]
		p, room := f.nodes[victim], int64(reserve/2)
		if n%4 >= 2 { // to the last byte
			room = int64(4096 * (1 + f.rand.IntN(16)))
		}
		b, pause := f.strike(t, victim, func(b *burst) {
			filler, at := f.fillBut(t, disks[victim], room), time.Now()
			if room < reserve/4 { // it may not have needed another byte
				for end := at.Add(3 * time.Second); time.Now().Before(end) && len(p.ended) == 0; {
					time.Sleep(5 * time.Millisecond)
				}
			}
			f.withoutRoom(t, b, victim)
			b.goesOn(t, at, victim)
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if at = time.Now(); len(p.ended) > 0 {
				ended++
				p.kill(t)
				p.start(t)
				return
			}
			b.await(t, victim+" takes orders again", 1,
				func(r *retort) bool { return r.acked(victim, at) })
		})
		l.note(t, fmt.Sprintf("disk of %s full to %d bytes, %s led", victim, room, leader), b, pause)
		f.examine(t)
	}
	f.examineAll(t)
	t.Logf("figures: full=%d ended=%d %s", rounds, ended, l.figures(f))
}

// withoutRoom waits until a node with a full disk does not lead and takes no orders, or has ended.
func (f *fleet) withoutRoom(t *testing.T, b *burst, name string) {
	t.Helper()
	at, p := time.Now(), f.nodes[name]
	waitFor(t, "somebody else leads", func() bool {
		s, err := standing(f.nodes["g"])
		return len(p.ended) > 0 || err == nil && s.Leader != "" && s.Leader != name
	})
	waitFor(t, "no orders through the door of a full disk", func() bool {
		return len(p.ended) > 0 || len(b.find(1, func(r *retort) bool {
			return r.declined(name, at) && strings.Contains(r.text, `"cancel_only"`)
		})) > 0
	})
}
