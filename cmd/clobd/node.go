package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"clobd/api"
	"clobd/api/catalog"
	"clobd/api/catalog/source"
	"clobd/api/console"
	"clobd/api/gamma"
	"clobd/api/wallets"
	"clobd/cmd/cli"
	"clobd/cmd/clobd/page"
	"clobd/cmd/clobd/role"
	"clobd/engine"
	"clobd/engine/pages"
	"clobd/ingress"
	"clobd/ingress/auth"
	"clobd/ingress/limits"
	"clobd/journal"
	"clobd/journal/disk"
	"clobd/journal/history"
)

const drainTime = 10 * time.Second

const gatherEvery = time.Minute

// node is one running node: what was opened, in the order in which it is closed again.
type node struct {
	*settings
	secrets
	poison  *poisonFolder
	metrics *prometheus.Registry
	watches *stopwatches
	ready   atomic.Bool
	// doorMetrics has those of the door alone, which the node itself reads.
	doorMetrics *prometheus.Registry
	watchman    *watchman

	claim    disk.Claim
	describe *catalog.Store
	source   *source.Source
	lister   *lister
	values   *gamma.Values
	cluster  *role.Cluster // nil: the node is alone
	led      chan struct{} // has a token when this node has begun to lead
	inVain   bool          // the start before this one found damage in its way
	role     *role.Role
	index    *history.Index
	remade   atomic.Bool             // the index has failed, and is made anew when it is opened again
	renewing atomic.Pointer[symptom] // how a member heals its journal, or copies; nil: it does not
	space    *disk.Space
	huge     atomic.Int64      // bytes in huge pages
	unlisted bool              // markets wait for room on the disk
	backing  sync.Mutex        // held while a backup is made
	profiles *wallets.Profiles // nil without any
	verifier *auth.Verifier
	door     *ingress.Server
	admin    *http.Server
	page     *page.Panel
	scrubber *scrubber
	streams  *streams
	front    front

	windows *limits.Windows // nil without --limits
	policy  *limits.Policy  // of --limits-file
	reread  chan os.Signal  // says that the file has changed

	again  chan os.Signal
	failed chan error
}

// runNode serves until ctx is done. If something is damaged that a start makes anew, runNode starts
// the node again in this process, but not twice if the node does not come to serve.
func runNode(ctx context.Context, s *settings) error {
	again := make(chan os.Signal, 1)
	// A SIGHUP before Notify ends the process, so Notify comes first.
	if s.Catalog != "" {
		signal.Notify(again, syscall.SIGHUP)
		defer signal.Stop(again)
	}
	reread := make(chan os.Signal, 1)
	if s.LimitsFile != "" {
		signal.Notify(reread, syscall.SIGHUP)
		defer signal.Stop(reread)
	}
	for inVain := 0; ; {
		n := &node{settings: s, metrics: prometheus.NewRegistry(), again: again, reread: reread,
			doorMetrics: prometheus.NewRegistry(), failed: make(chan error, 8),
			led: make(chan struct{}, 1), inVain: inVain > 0}
		n.watches = newStopwatches(n.metrics)
		err := n.run(ctx)
		switch {
		case ctx.Err() != nil:
			return err
		case n.remade.Load():
			s.log.Warn("the index is damaged: the node starts again and makes it anew", "error", err)
		case n.cluster != nil && membership{n}.damaged() && (inVain == 0 || n.watchman.hasServed()):
			if inVain++; n.watchman.hasServed() {
				inVain = 0
			}
			s.log.Warn("something is damaged: the node starts again and makes it anew", "error", err)
		default:
			return err
		}
	}
}

func (n *node) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx) // of what waits for a SIGHUP
	defer cancel()
	err := n.start(ctx)
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, n.close())
	}
	stopDemo, stopSync := n.startDemo(ctx), n.syncCatalog(ctx)
	stopGathering := n.keepGathering(ctx, gatherEvery)
	go n.watchman.keep(ctx)
	go n.record(ctx)
	if n.cluster != nil {
		go membership{n}.listAsLeader(ctx)
	}
	if n.ScrubInterval > 0 {
		go n.scrubber.follow(ctx, n.ScrubInterval)
	}
	if n.policy != nil {
		go n.followLimits(ctx)
	}
	select {
	case <-ctx.Done():
		n.log.Info("stopping", "sequence", n.role.Board.Sequence())
		membership{n}.handOver()
	case err = <-n.failed:
		n.log.Error("failed", "error", err)
	}
	n.ready.Store(false)
	stopDemo()
	stopSync()
	stopGathering()
	return errors.Join(err, n.close())
}

// start runs the steps from nothing to ready, and looks at ctx and at failures between them.
func (n *node) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		n.readProfiles, n.readLimits, n.checkCatalog, membership{n}.readCluster, n.claimFolder, n.listen,
		n.watchSpace, n.recover, n.openCatalog, n.gather, n.begin, n.open} {
		if err := step(ctx); err != nil {
			return errors.Join(n.first(), err)
		}
		if err := n.first(); err != nil {
			return err
		} else if ctx.Err() != nil {
			n.log.Info("stopped while starting")
			return nil
		}
	}
	return nil
}

// first returns the first failure beside the start, or nil: a step may fail as its consequence.
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

// readProfiles reads --profiles, and reads it again whenever the file changes, until ctx is done.
func (n *node) readProfiles(ctx context.Context) (err error) {
	if n.Profiles == "" {
		return nil
	}
	if n.profiles, err = wallets.OpenProfiles(n.Profiles, n.log); err != nil {
		return cli.Hint(err, "--profiles takes a JSON array of objects like "+
			`{"proxyWallet":"0x and 40 hex digits","name":"…"}`)
	}
	go n.profiles.Run(ctx)
	return nil
}

func (n *node) claimFolder(context.Context) (err error) {
	if err := checkFolder(n.Data); err != nil {
		return err
	}
	if err := disk.MakeFolder(nil, n.Data); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	n.claim, err = disk.TakeClaim(n.Data)
	return role.Advised(err)
}

// listen opens both listeners: from here on the node answers, mostly that it is not ready.
func (n *node) listen(ctx context.Context) error {
	masters, err := n.masterSecrets()
	if err != nil {
		return err
	}
	token, err := n.adminToken()
	if err != nil {
		return err
	}
	n.secrets = n.lockSecrets(masters, &token)
	onHangup(ctx, func() { n.readAgain(n.settings) })
	if n.poison, err = openPoison(n.Data); err != nil {
		return err
	}
	n.front.settings = n.settings
	secure, err := n.front.readCertificate(ctx)
	if err != nil {
		return err
	}
	options := ingress.Options{
		Keyring: n.keyring, Verifier: n.newVerifier(),
		Chains: []uint64{n.ChainID}, Faucet: n.faucet, LinkOnFirstUse: n.Demo,
		Windows: n.windows, Policy: n.policy, AdminToken: n.token, Quarantined: n.poison.holds,
		TrustedProxies: n.proxies, Origins: n.origins, TLS: secure,
		Workers: n.places, Version: version, Log: n.log,
		Sockets: n.Sockets, SocketsPerAddress: n.SocketsPerAddress,
		DebugStages: n.DebugStages || n.Demo,
	}
	n.watches.supply(&options)
	options.Stages.Slowest = &n.recent.Slowest
	if n.cluster != nil {
		options.Member = uint32(n.cluster.ID)
	}
	n.door, err = ingress.New(options)
	if err != nil {
		return err
	}
	n.metrics.MustRegister(n.door.Collectors()...)
	n.doorMetrics.MustRegister(n.door.Collectors()...)
	n.admin = n.adminServer()
	go n.page.Run(ctx)
	return n.front.serve(n.door, n.admin, secure, n.fail)
}

// newVerifier makes the Verifier of the node's domains.
func (n *node) newVerifier() *auth.Verifier {
	n.verifier = auth.NewVerifier(n.domains)
	if n.Lanes == "off" {
		n.verifier.WithoutLanes()
	}
	return n.verifier
}

// watchSpace makes the door take only cancels while less than --disk-reserve is free.
func (n *node) watchSpace(context.Context) (err error) {
	n.space, err = disk.Watch(disk.SpaceOptions{Dir: n.Data, Log: n.log,
		Reserve: int64(n.DiskReserve), Ballast: int64(n.DiskBallast),
		Changed: func(s disk.SpaceState) { n.door.Full(s == disk.Full) }})
	if err == nil {
		n.metrics.MustRegister(n.space.Collectors()...)
	}
	return err
}

func (n *node) recover(ctx context.Context) error {
	var err error
	n.role, err = role.Recover(ctx, role.Options{Data: n.Data, Async: n.Durability == "async",
		InVain: n.inVain, Claim: n.claim, Witnesses: witnesses,
		Commands: n.CheckpointCommands, Interval: n.CheckpointInterval,
		Hold:     func() bool { return n.space.Status().State != disk.Roomy },
		Full:     func() bool { return n.space.Status().State == disk.Full },
		Poisoned: n.poisoned, Torn: n.torn, Spent: n.watches.spent, Failed: n.fail,
		Renewing: membership{n}.renews, Index: func(dir string) error { return n.index.Copy(dir) },
		Metrics: n.metrics, Log: n.log, Cluster: n.cluster})
	if n.role != nil && ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	if err := (membership{n}).dropIndex(); err != nil {
		return err
	}
	n.index, err = history.Open(n.role.Journal, history.Options{Log: n.log,
		Builder: builderOf})
	if err != nil {
		return role.Advised(err)
	}
	n.metrics.MustRegister(n.index.Collectors()...)
	go func() {
		err := n.index.Run()
		n.remade.Store(history.IsRemade(err))
		if n.cluster != nil && journal.CanHeal(err) { // it could not read the journal
			if e := role.NoteDamage(n.Data, role.JournalPart, err); e != nil {
				n.log.Error("the next start does not know of the damage", "error", e)
			}
		}
		n.fail("index", role.Advised(err))
	}()
	return n.role.Start()
}

// poisoned keeps a Command that made Apply panic and ends the process: its state may be wrong now.
func (n *node) poisoned(c *engine.Command, seq engine.Sequence, cause any, stack []byte) {
	kept := n.poison.keep(c, seq, cause, stack)
	n.log.Error("a command made the engine panic", "sequence", seq, "cause", fmt.Sprint(cause),
		"kept", kept)
	n.role.Warn(fingerprint(c)) // before anybody else can lead
	cli.Print(os.Stderr, cli.Hint(fmt.Errorf("command %d made the engine panic: %v", seq, cause),
		"the command is kept in %s and refused from now on: start again", kept))
	os.Exit(cli.Broken)
}

// torn ends the process after a panic behind Apply. Nothing of that frame was acknowledged.
func (n *node) torn(what string, frame uint64, cause any, stack []byte) {
	n.log.Error("panic", "where", what, "frame", frame, "cause", fmt.Sprint(cause),
		"stack", string(stack))
	cli.Print(os.Stderr, cli.Hint(fmt.Errorf("%s of frame %d panicked: %v", what, frame, cause),
		"this is a bug: keep the data folder and report it"))
	os.Exit(cli.Broken)
}

// gather moves the restored state into huge pages: without them a large exchange is slower.
func (n *node) gather(ctx context.Context) error {
	start := time.Now()
	if huge, err := pages.Gather(ctx); err != nil {
		n.log.Info("no huge pages", "reason", err.Error())
	} else {
		n.huge.Store(huge)
		n.log.Info("memory gathered", "hugeBytes", huge, "took", time.Since(start).String())
	}
	n.metrics.MustRegister(disk.Subsystem("memory").Gauge("huge_page_bytes",
		"Memory in huge pages, as of the last minute.",
		func() float64 { return float64(n.huge.Load()) }))
	return nil
}

// keepGathering gathers new memory. Nobody waits for its end: the kernel may take long.
func (n *node) keepGathering(ctx context.Context, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go pages.Keep(ctx, every, n.huge.Store)
	return cancel
}

// begin journals a new epoch and lists the catalog.
func (n *node) begin(context.Context) error {
	if err := n.role.Begin(); err != nil {
		return err
	}
	noteEnd(n.role.Journal, n.log)
	n.scrubber = newScrubber(n.role.Journal, n.log, catalogPart(n.Data), membership{n}.scrubIndex)
	n.scrubber.damaged = func(why error) { n.role.Damaged(role.JournalPart, why) }
	n.metrics.MustRegister(n.scrubber.collectors()...)
	err := n.beginCatalog()
	if n.cluster != nil && role.Lost(err) { // another node leads, and lists
		n.log.Info("the catalog is not listed by this node", "why", err.Error())
		return nil
	}
	return err
}

// open waits for the index and opens the door.
func (n *node) open(ctx context.Context) error {
	history := n.index.History
	answers, err := api.New(api.Options{Board: n.role.Board, History: history,
		Catalog: n.describe.Current, Values: n.values, KeyID: n.keyring.KeyID,
		Checksum: auth.Checksum, JournalID: n.role.Journal.ID, Exchanges: n.exchanges(),
		Confirm:  n.role.Confirm,
		Profiles: n.profiles, Console: n.facts(),
		WalletAllow: n.allowed, Client: n.door.ClientAddress, Log: n.log})
	if err != nil {
		return err
	}
	if err := n.role.Await(ctx); err != nil {
		return err
	}
	for !history.Await(n.role.Board.Sequence(), time.Second) {
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
		n.log.Info("the index catches up", "at", history.Sequence(), "of", n.role.Board.Sequence())
	}
	n.beginStreams(answers)
	attached := ingress.Options{Board: n.role.Board, Public: answers.Public,
		Account: answers.Account, Market: n.streams.hub.Serve,
		User: n.streams.hub.ServeUser, Past: history.Past,
		Request: history.Request, Moved: history.Move, Await: history.Await,
		JournalID: n.role.Journal.ID, Current: answers.Current}
	n.role.Supply(&attached)
	if err := n.door.Attach(attached); err != nil {
		return err
	}
	n.door.Ready(true)
	n.ready.Store(true)
	n.announce()
	return nil
}

func (n *node) exchanges() (contracts []engine.Address) {
	for i := range n.domains {
		if c := n.domains[i].Contract; !slices.Contains(contracts, c) {
			contracts = append(contracts, c)
		}
	}
	return contracts
}

// facts are what the console's pages are told of the node.
func (s *settings) facts() console.Facts {
	told := console.Facts{Version: version, Demo: s.Demo, Chain: s.ChainID}
	for i := range s.domains {
		d, markets := &s.domains[i], "normal"
		if d.Both {
			markets = "all"
		} else if d.NegRisk {
			markets = "neg-risk"
		}
		told.Exchanges = append(told.Exchanges, console.Domain{Name: d.Name, Version: d.Version,
			Contract: auth.Checksum(d.Contract), Markets: markets})
	}
	return told
}

func (n *node) announce() {
	n.log.Info("ready", "url", n.front.url(), "chain", n.ChainID,
		"durability", n.Durability, "lanes", n.verifier.Lanes(), "version", version)
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

// close lets the door answer its requests, then the writer drain, then closes the files.
func (n *node) close() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var now atomic.Value // the part that is being closed
	// Acknowledged Commands are on disk, so leaving a part that does not close loses nothing.
	late := time.AfterFunc(2*drainTime, func() {
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		cli.Print(os.Stderr, cli.Hint(fmt.Errorf("a stop took longer than %v: %v does not close",
			2*drainTime, now.Load()), "the journal is safe; report what is printed above"))
		os.Exit(cli.Failed)
	})
	defer late.Stop()
	for _, part := range []struct {
		name  string
		open  bool
		close func() error
	}{
		{"the scrub", n.scrubber != nil, func() error { n.scrubber.end(); return nil }},
		{"the door", n.door != nil, func() error { return n.door.Close(ctx) }},
		{"the writer", n.role != nil, func() error { return n.role.Close(ctx) }},
		{"the streams", n.streams != nil, func() error {
			n.streams.close(n.role.Board.Sequence())
			return nil
		}},
		{"the index", n.index != nil, func() error { return n.index.Close() }},
		{"the catalog", n.describe != nil, func() error { noteEnd(n.role.Journal, n.log); return nil }},
		{"the catalog", n.describe != nil, func() error { return n.describe.Close() }},
		{"the journal", n.role != nil, func() error { return n.role.Journal.Close() }},
		{"the scrub's memo", n.scrubber != nil, func() error { n.scrubber.running.Lock(); return nil }},
		{"the folder", true, n.claim.Release},
		{"the disk's watch", n.space != nil, func() error { n.space.Close(); return nil }},
		{"the page", n.admin != nil, func() error { n.page.Close(); return n.admin.Close() }},
		{"the log", n.role != nil, func() error { n.log.Info("stopped"); return nil }},
	} {
		if part.open {
			now.Store(part.name)
			err = errors.Join(err, part.close())
		}
	}
	return err
}
