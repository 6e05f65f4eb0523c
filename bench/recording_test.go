package bench

import (
	"strings"
	"testing"
	"time"

	"clobd/bench/workload"
	"clobd/engine"
	"clobd/journal"
)

// recordedFolder is the data folder of a node that carried out these Commands, a frame of them each
// second.
func recordedFolder(t *testing.T, commands []engine.Command, spoil func(*engine.Frame)) string {
	t.Helper()
	dir := t.TempDir()
	j, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	x := engine.NewExchange(1)
	head, err := j.Recover(x, func(*engine.Frame) error { return nil })
	for len(commands) > 0 && err == nil {
		n := min(len(commands), engine.FrameCommands)
		f := engine.Frame{Engine: engine.Version, Epoch: 1, No: head.Frame + 1,
			First: head.Sequence + 1, Time: engine.Time(1_700_000_000_000 + 1000*head.Frame)}
		for i, c := range commands[:n] {
			seq := f.First + engine.Sequence(i)
			c.Seen = seq - 1
			f.Commands = append(f.Commands, c)
			f.Events = x.Apply(&c, seq, f.Time, f.Events)
			f.Ends = append(f.Ends, uint32(len(f.Events)))
		}
		f.Digest = x.Digest()
		if spoil != nil {
			spoil(&f)
		}
		f.Encode(head.Hash)
		head = f.Head()
		if err = j.Append(&f); err == nil {
			err = j.Wait(f.No)
		}
		commands = commands[n:]
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// session is a recording with what a bench can play, and what it cannot.
func session(t *testing.T) []engine.Command {
	t.Helper()
	w := workloadNamed(t, "sweep")
	ops, _, err := w.Draw(t.Context(), 4, 400, 2000)
	if err != nil {
		t.Fatal(err)
	}
	id := func(n int) engine.OrderID { return workload.Hashed("extra", n) }
	order := func(n int, kind engine.OrderType) engine.Command {
		return engine.Command{Kind: engine.Place, Type: kind, ID: id(n), Market: 1, Wallet: 1, Owner: 1,
			Side: engine.Buy, Size: 10 * engine.Unit, Cash: engine.Cost(10*engine.Unit, 10)}
	}
	gtd, post, odd, replacing := order(1, engine.GTD), order(2, engine.GTC), order(3, engine.GTC),
		order(4, engine.GTC)
	gtd.Expiry, post.PostOnly, odd.Size = 1_800_000_000_000, true, 10*engine.Unit+1
	replacing.Replace(id(2))
	return append(append(w.Setup(), workload.Commands(ops, 0, len(ops))...),
		gtd, post, odd, replacing, order(5, engine.FOK), order(1, engine.GTC),
		engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(3)},
		engine.Command{Kind: engine.Cancel, Owner: 1, ID: id(77)},
		engine.Command{Kind: engine.SplitTokens, Wallet: 3, Owner: 3, Market: 1, Size: engine.Unit,
			ID: id(6)},
		engine.Command{Kind: engine.CancelAll, Wallet: 4, Owner: 4, Market: 1, Reason: engine.ByOwner,
			Only: engine.OnlyToken, Outcome: 1},
		engine.Command{Kind: engine.CancelAll, Wallet: 3, Owner: 3, Market: 1, Reason: engine.ByOwner},
		engine.Command{Kind: engine.CancelAll, Wallet: 2, Owner: 2, Reason: engine.ByOwner},
		engine.Command{Kind: engine.CancelAll, Wallet: 5, Reason: engine.ByOperator},
		engine.Command{Kind: engine.SetState, Market: 1, State: engine.Paused})
}

func TestReplayOfARecording(t *testing.T) {
	dir := recordedFolder(t, session(t), nil)
	for _, level := range []string{"L0", "L1", "L2"} {
		r := executeUntil(t, Run{Data: dir, Level: level, Seed: 5, Connections: 8, Dir: t.TempDir(),
			Duration: 100 * time.Millisecond, Self: self(t)},
			func(r *Report) bool { // far enough for a fill, and at L0 a whole round
				return *r.Filled > 0 && (level != "L0" || r.Operations >= 2400)
			})
		if r.Workload != workload.Replay || r.Checked == "" || level == "L0" && r.Exchanges == 0 {
			t.Errorf("%s: %+v", level, r)
		}
	}
	// A recorded digest that Apply does not come to.
	bad := recordedFolder(t, session(t), func(f *engine.Frame) {
		if f.No == 3 {
			f.Digest++
		}
	})
	r, err := Execute(t.Context(), Run{Data: bad, Level: "L0", Connections: 1, Self: self(t),
		Duration: time.Second})
	if err != nil || !strings.Contains(r.Failure, "after frame 3 the digest is") {
		t.Errorf("%v, %+v", err, r)
	}
	for _, c := range []struct{ dir, says string }{
		{t.TempDir(), "replay"}, {recordedFolder(t, nil, nil), "nothing is recorded"}} {
		_, err := Execute(t.Context(), Run{Data: c.dir, Level: "L0", Connections: 1, Self: self(t),
			Duration: time.Second})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

// TestScore reads a recording as operations, and applies them in order: they must end as what was
// recorded did, because the extra orders of session lie far from all others.
func TestScore(t *testing.T) {
	commands := session(t)
	s, err := workload.ReadScore(t.Context(), recordedFolder(t, commands, nil))
	if err != nil {
		t.Fatal(err)
	}
	const left = "1 cancels of all orders that no trader asked for; 1 cancels of orders that are not " +
		"played; 1 changes of a market's state; 1 ends of GTD orders: they are played as GTC; " +
		"1 odd amounts: they are played rounded to the tick and the lot; 2 orders that were refused; " +
		"1 post-only marks: they are played without; 1 replacements: they are played as a cancel and an " +
		"order; 1 splits: their tokens are given beforehand"
	if s.Left() != left {
		t.Errorf("left: %s", s.Left())
	}
	if len(s.Stakes) != workload.Traders || len(s.Listings) != 1 || len(s.Due) != len(s.Ops) {
		t.Errorf("%d wallets, %d markets, %d of %d due", len(s.Stakes), len(s.Listings), len(s.Due),
			len(s.Ops))
	}
	kinds := map[workload.All]int{}
	for i := range s.Ops {
		kinds[s.Ops[i].All]++
	}
	if kinds[workload.AllOrders] != 1 || kinds[workload.AllInMarket] != 1 ||
		kinds[workload.AllInToken] != 1 {
		t.Errorf("cancels of many: %v", kinds)
	}
	var want workload.Tally
	x, seq := engine.NewExchange(1), engine.Sequence(0)
	for _, c := range commands {
		if c.Kind == engine.SetState || c.Reason == engine.ByOperator {
			continue
		}
		c.Seen = seq
		seq++
		want.Add(x.Apply(&c, seq, 1, nil))
	}
	had := s.Play()
	if had.Fills != want.Fills || had.Volume != want.Volume || had.Live != want.Live ||
		had.Killed != want.Killed || had.SelfTrades != want.SelfTrades || had.Fills == 0 {
		t.Errorf("played: %+v; recorded: %+v", had, want)
	}
	first, last := s.Due[0], s.Due[len(s.Due)-1]
	if due := s.Paced(4); first != 0 || last < 5*time.Second || due[len(due)-1] != last/4 {
		t.Errorf("due from %v to %v, at four times the pace %v", first, last, due[len(due)-1])
	}
}
