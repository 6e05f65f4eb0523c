package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api"
	"clobd/api/catalog"
	"clobd/cmd/cli"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/ingress/auth"
	"clobd/journal"
)

// drainTime is how long a stop waits for requests in work.
const drainTime = 10 * time.Second

// node is one running node: what was opened, in the order in which it is closed again.
type node struct {
	*settings
	master  [32]byte
	token   string
	poison  *poisonFolder
	metrics *prometheus.Registry
	ready   atomic.Bool

	claim    journal.Claim
	describe *catalog.Store
	values   *api.Values
	epoch    uint64 // of this start
	journal  *journal.Journal
	index    *journal.Index
	remade   atomic.Bool // the index has failed, and is made anew when it is opened again
	follower *journal.Follower
	space    *journal.Space
	huge     atomic.Int64 // bytes in huge pages
	unlisted bool         // markets wait for room on the disk
	backing  sync.Mutex   // held while a backup is made
	board    *view.Board
	profiles *api.Profiles // nil without any
	writer   *sequencer.Sequencer
	door     *ingress.Server
	admin    *http.Server
	public   net.Listener

	// again gets the SIGHUPs of a node with a catalog.
	again chan os.Signal
	// failed gets the first error of anything that runs beside the start.
	failed chan error
}

// runNode opens the data folder, recovers, serves until ctx is done, and drains. If the index turns
// out to be damaged it does so again, in this process: opening makes the index anew.
func runNode(ctx context.Context, s *settings) error {
	again := make(chan os.Signal, 1)
	// A SIGHUP ends the process until it is asked for. That is done before anything else: the catalog
	// may change, and be looked at again, while the node still starts.
	if s.Catalog != "" {
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
	}
	for {
		n := &node{settings: s, metrics: prometheus.NewRegistry(), again: again,
			failed: make(chan error, 8)}
		err := n.run(ctx)
		if !n.remade.Load() || ctx.Err() != nil {
			return err
		}
		s.log.Warn("the index is damaged: the node starts again and makes it anew", "error", err)
	}
}

// run runs a node once.
func (n *node) run(ctx context.Context) error {
	err := n.start(ctx)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, n.close())
	}
	stopDemo, stopSync := n.startDemo(ctx), n.syncCatalog(ctx)
	stopGathering := n.keepGathering(ctx, gatherEvery)
	select {
	case <-ctx.Done():
		n.log.Info("stopping", "sequence", n.board.Sequence())
	case err = <-n.failed:
		n.log.Error("failed", "error", err)
	}
	n.ready.Store(false)
	stopDemo()
	stopSync()
	stopGathering()
	return errors.Join(err, n.close())
}

// start takes the node from nothing to ready. It looks at ctx and at failures between its steps;
// the long ones look themselves.
func (n *node) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		n.readProfiles, n.checkCatalog, n.claimFolder, n.listen, n.watchSpace, n.recover,
		n.openCatalog, n.gather, n.begin, n.open} {
		if err := step(ctx); err != nil {
			return errors.Join(n.first(), err)
		}
		select {
		case err := <-n.failed:
			return err
		case <-ctx.Done():
			n.log.Info("stopped while starting")
			return nil
		default:
		}
	}
	return nil
}

// first is the first failure so far of what runs beside the start: what a step met may only be its
// consequence.
func (n *node) first() error {
	select {
	case err := <-n.failed:
		return err
	default:
		return nil
	}
}

// fail reports an error from a goroutine that outlives the start; nil is a normal end.
func (n *node) fail(what string, err error) {
	if err == nil {
		return
	}
	select {
	case n.failed <- fmt.Errorf("%s: %w", what, err):
	default: // somebody was first
	}
}

// claimFolder makes sure that no other node has the data folder before anything in it is touched.
func (n *node) claimFolder(context.Context) (err error) {
	n.claim, err = journal.Take(n.Data)
	return advised(err)
}

// listen reads the secrets and opens both listeners: from here on the node answers, though most
// routes say that it is not ready.
func (n *node) listen(context.Context) error {
	if err := journal.MakeFolder(n.Data); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	var err error
	if n.master, err = n.masterSecret(); err != nil {
		return err
	}
	if n.token, err = n.adminToken(); err != nil {
		return err
	}
	if n.poison, err = openPoison(n.Data); err != nil {
		return err
	}
	n.door, err = ingress.New(ingress.Options{
		Keyring: auth.NewKeyring(n.master), Verifier: auth.NewVerifier(n.domains),
		Chains: []uint64{n.ChainID}, Faucet: n.faucet, LinkOnFirstUse: n.Demo,
		Limits: n.Limits == "on", AdminToken: n.token, Quarantined: n.poison.holds,
		TrustedProxies: n.proxies, Workers: n.places, Version: version, Log: n.log,
	})
	if err != nil {
		return err
	}
	n.metrics.MustRegister(n.door.Collectors()...)
	if n.public, err = net.Listen("tcp", n.Listen); err != nil {
		return cli.Hint(fmt.Errorf("open public listener: %w", err), "--listen names another one")
	}
	admin, err := net.Listen("tcp", n.Admin)
	if err != nil {
		return cli.Hint(fmt.Errorf("open admin listener: %w", err), "--admin names another one")
	}
	n.admin = n.adminServer()
	go func() {
		if err := n.admin.Serve(admin); !errors.Is(err, http.ErrServerClosed) {
			n.fail("admin listener", err)
		}
	}()
	go func() { n.fail("public listener", n.door.Serve(n.public)) }()
	return nil
}

// recover opens the journal and restores Exchange and Board from the newest checkpoint and the
// frames after it: starting and recovering are one path.
func (n *node) recover(ctx context.Context) error {
	start := time.Now()
	options := journal.Options{Dir: n.Data, Async: n.Durability == "async", Log: n.log,
		Claim: n.claim}
	var err error
	if n.journal, err = journal.Open(options); err != nil {
		return advised(err)
	}
	n.metrics.MustRegister(n.journal.Collectors()...)
	restored, err := n.journal.Restore(ctx, func() *journal.State {
		var s *journal.State
		s, n.board = newState() // the last one made is the one that is used
		return s
	})
	if ctx.Err() != nil {
		return nil // told to stop: nothing has been written
	} else if err != nil {
		return advised(err)
	}
	head := restored.Head
	n.board.Show()
	n.index, err = journal.OpenIndex(n.journal, journal.IndexOptions{Log: n.log,
		Builder: func(proof []byte) journal.BuilderCode { return auth.BuilderOf(proof) }})
	if err != nil {
		return advised(err)
	}
	n.metrics.MustRegister(n.index.Collectors()...)
	go func() {
		err := n.index.Run()
		n.remade.Store(journal.IsRemade(err))
		n.fail("index", advised(err))
	}()
	n.epoch = head.Epoch + 1
	n.writer, err = sequencer.New(restored.State.Exchange, n.board, n.journal, sequencer.Options{
		Head: head, Poison: n.poisoned, Fatal: n.torn})
	if err != nil {
		return err
	}
	go n.write()
	n.metrics.MustRegister(writerMetrics(n.writer, n.board)...)
	from := uint64(0)
	if restored.From != nil {
		from = uint64(restored.From.Head.Sequence)
	}
	n.log.Info("recovered", "sequence", head.Sequence, "frame", head.Frame, "checkpoint", from,
		"replayed", restored.Commands, "digest", fmt.Sprintf("%016x", uint64(head.Digest)),
		"took", time.Since(start).String())
	return n.follow()
}

// newState is an Exchange to be, and the Board beside it.
func newState() (*journal.State, *view.Board) {
	var seed [8]byte
	rand.Read(seed[:])
	board := view.NewBoard()
	return &journal.State{
		Seed: binary.LittleEndian.Uint64(seed[:]),
		Each: func(f *engine.Frame) error { board.Replay(f); return nil },
		Save: board.Save, Load: board.Load,
	}, board
}

// follow starts the second computation of everything, which writes the checkpoints.
func (n *node) follow() error {
	var err error
	n.follower, err = n.journal.Follow(journal.FollowerOptions{
		Fresh: func() *journal.State {
			s, _ := newState()
			return s
		},
		Commands: n.CheckpointCommands, Interval: n.CheckpointInterval,
		Hold: func() bool { return n.space.Status().State != journal.Roomy },
	})
	if err != nil {
		return err
	}
	n.metrics.MustRegister(n.follower.Collectors()...)
	go func() { n.fail("follower", advised(n.follower.Run())) }()
	return nil
}

// write runs the writer. Once it has failed nothing can be acknowledged any more, and what was
// entered last has no answer.
func (n *node) write() {
	if err := n.writer.Run(); err != nil {
		n.fail("sequencer", &cli.BrokenError{Err: cli.Hint(err, "what was acknowledged is in the "+
			"journal; look at the log for why, then start again: callers without an answer may send again")})
	}
}

// advised is an error of the journal or the index with what to do about it on a line of its own.
// A journal that makes no sense has lost what it promised.
func advised(err error) error {
	advice := journal.Advice(err)
	if advice == "" { // or no error
		return err
	}
	var locked *journal.LockedError
	text := strings.Replace(err.Error(), "; "+advice, "", 1)
	// Pebble says so of damage that it has said all about.
	what := errors.New(strings.ReplaceAll(text, "\n<corruption detail carrier>", ""))
	switch {
	case journal.IsDamage(err):
		return &cli.BrokenError{Err: cli.Hint(what, "%s", advice)}
	case errors.As(err, &locked):
		return cli.Hint(what, "--data names another folder; the process that has this one: %s",
			locked.Holder)
	}
	return cli.Hint(what, "%s", advice)
}

// poisoned is told of a Command that made Apply panic. State that a bug has touched must not be
// acknowledged, so the process ends here.
func (n *node) poisoned(c *engine.Command, seq engine.Sequence, cause any, stack []byte) {
	kept := n.poison.keep(c, seq, cause, stack)
	n.log.Error("a command made the engine panic", "sequence", seq, "cause", fmt.Sprint(cause),
		"kept", kept)
	cli.Print(os.Stderr, cli.Hint(fmt.Errorf("command %d made the engine panic: %v", seq, cause),
		"the command is kept in %s and refused from now on: start again", kept))
	os.Exit(cli.Broken)
}

// torn is told of a panic in what follows Apply: what was published may be half a frame, so the
// process ends here. Nothing of that frame was acknowledged.
func (n *node) torn(what string, frame uint64, cause any, stack []byte) {
	n.log.Error("panic", "where", what, "frame", frame, "cause", fmt.Sprint(cause),
		"stack", string(stack))
	cli.Print(os.Stderr, cli.Hint(fmt.Errorf("%s of frame %d panicked: %v", what, frame, cause),
		"this is a bug: keep the data folder and report it"))
	os.Exit(cli.Broken)
}

// begin journals that a new epoch began, and lists the catalog: without one the markets listed
// before go on.
func (n *node) begin(context.Context) error {
	started := engine.Command{Kind: engine.Started, Seen: engine.Sequence(n.epoch),
		Expiry: engine.Time(time.Now().UnixMilli())}
	if _, err := n.writer.Submit(&started); err != nil {
		return fmt.Errorf("journal the start: %w", err)
	}
	return n.beginCatalog()
}

// open waits for the index and opens the door.
func (n *node) open(ctx context.Context) error {
	history := n.index.History
	answers, err := api.New(api.Options{Board: n.board, History: history,
		Catalog: n.describe.Current, Values: n.values, KeyID: auth.NewKeyring(n.master).KeyID,
		Checksum: auth.Checksum, JournalID: n.journal.ID, Exchanges: n.exchanges(), Profiles: n.profiles,
		WalletAllow: n.allowed, Client: n.door.ClientAddress, Log: n.log})
	if err != nil {
		return err
	}
	for !history.Await(n.board.Sequence(), time.Second) {
		if err := history.Failed(); err != nil {
			select { // its goroutine says the same, with what to do
			case err = <-n.failed:
				return err
			case <-time.After(time.Second):
				return fmt.Errorf("index: %w", err)
			}
		} else if ctx.Err() != nil {
			return nil
		}
		n.log.Info("the index catches up", "at", history.Sequence(), "of", n.board.Sequence())
	}
	err = n.door.Attach(ingress.Options{
		Enter: n.writer.Enter, EnterAll: n.writer.EnterAll, Board: n.board,
		Public: answers.Public, Account: answers.Account, Past: history.Past,
		Await: history.Await, JournalID: n.journal.ID})
	if err != nil {
		return err
	}
	n.door.Ready(true)
	n.ready.Store(true)
	n.announce()
	return nil
}

// exchanges are the contracts that orders may be signed for, each once.
func (n *node) exchanges() []engine.Address {
	var contracts []engine.Address
	for i := range n.domains {
		if c := n.domains[i].Contract; !slices.Contains(contracts, c) {
			contracts = append(contracts, c)
		}
	}
	return contracts
}

// list enters Listings in their order, many at a time, so that they share frames and syncs, and
// waits until all are durable. What is listed already as it is asked for is left alone: a restart
// journals nothing new. What the engine refuses, or once stopped it, is told to the catalog, which
// counts and names it: one contradicting record must not keep the node from starting. The error is
// errFull if the disk has no room for more.
func (n *node) list(listings []engine.Listing) error {
	type entered struct {
		condition engine.Condition
		call      *sequencer.Call
	}
	refused := map[engine.Condition]string{}
	var room error
	const atOnce = 1024 // well below the ring's slots, so that it never fills
	for len(listings) > 0 {
		part := listings[:min(atOnce, len(listings))]
		listings = listings[len(part):]
		var calls []entered
		for i := range part {
			c := engine.Command{Kind: engine.List, Listing: &part[i]}
			if n.listed(&part[i]) {
				continue
			}
			if n.poison.holds(&c) {
				refused[part[i].Condition] = "the listing once stopped the node: see " + n.poison.dir
				continue
			}
			if n.full() {
				room = errFull // after those that are entered
				break
			}
			call, err := n.writer.Enter(&c)
			if err != nil {
				return fmt.Errorf("list %s: %w", part[i].Condition.Hex(), err)
			}
			calls = append(calls, entered{part[i].Condition, call})
		}
		for _, e := range calls {
			receipt, err := e.call.Wait()
			if err != nil {
				return fmt.Errorf("list %s: %w", e.condition.Hex(), err)
			}
			if receipt.Reject != engine.Accepted {
				refused[e.condition] = receipt.Text()
			}
		}
		if room != nil {
			return room
		}
	}
	if len(refused) > 0 {
		return &catalog.RefusedError{Why: refused}
	}
	return nil
}

// listed says whether a listing would change nothing.
func (n *node) listed(l *engine.Listing) bool {
	m := n.board.Directory.Condition(l.Condition)
	if m == nil {
		return false
	}
	same := m.Listing
	same.Open = l.Open
	return same == *l && (m.State == engine.Open || !l.Open)
}

// announce says loudly what an operator must not be surprised by.
func (n *node) announce() {
	n.log.Info("ready", "url", "http://"+n.public.Addr().String(), "chain", n.ChainID,
		"durability", n.Durability, "version", version)
	if n.Durability == "async" {
		n.log.Warn("durability is async: acknowledged orders can be lost; for measuring only")
	}
	if n.faucet > 0 {
		n.log.Warn("faucet is open: new keys get paper collateral", "amount", n.faucet.String())
	}
	if n.Demo {
		n.log.Warn("demo: a wallet without an owner is linked to whoever signs for it first; " +
			"funding it links it to itself")
	}
}

// close takes down what was opened, the door first: what is in work is answered, then the writer
// drains, then the files close.
func (n *node) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	// What is acknowledged is on disk: if a part cannot be closed, leaving without it loses nothing.
	late := time.AfterFunc(2*drainTime, func() {
		cli.Print(os.Stderr, cli.Hint(fmt.Errorf("a stop took longer than %v", 2*drainTime),
			"the journal is safe; look at the log for what could not be closed"))
		os.Exit(cli.Failed)
	})
	defer late.Stop()
	var problems []error
	if n.door != nil {
		problems = append(problems, n.door.Close(ctx))
	}
	if n.writer != nil {
		problems = append(problems, n.writer.Close())
	}
	if n.follower != nil {
		n.follower.Close(ctx)
	}
	if n.index != nil {
		problems = append(problems, n.index.Close())
	}
	if n.describe != nil {
		problems = append(problems, n.describe.Close())
	}
	if n.journal != nil {
		problems = append(problems, n.journal.Close())
	}
	problems = append(problems, n.claim.Release())
	if n.space != nil {
		n.space.Close()
	}
	if n.admin != nil {
		problems = append(problems, n.admin.Close())
	}
	if n.journal != nil {
		n.log.Info("stopped")
	}
	return errors.Join(problems...)
}
