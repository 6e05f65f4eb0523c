package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"clobd/cmd/cli"
	"clobd/cmd/clobd/page"
	"clobd/engine"
	"clobd/ingress/auth"
	"clobd/ingress/cors"
)

// serveCommand holds the options of the process. What the engine reads is journaled instead.
type serveCommand struct {
	Data               string        `default:"clobd-data" help:"The node's one folder."`
	Listen             string        `default:"127.0.0.1:8080" help:"Public listeners, with commas between them: HOST:PORT, or unix:PATH for a socket that only the node's user and group may use, in the clear. Who comes over a socket counts as 127.0.0.1."`
	Admin              string        `default:"127.0.0.1:8081" help:"Admin listener: livez, readyz, metrics, pprof, admin routes."`
	AdminPublic        bool          `help:"Let --admin be an address that other machines reach. It needs --tls-cert."`
	AdminHosts         []string      `name:"admin-host" sep:"none" help:"One more name in Host that the admin listener answers to, beside loopback and its own address. May be repeated."`
	TLSCert            string        `name:"tls-cert" help:"PEM file of the certificate with its chain: the public listener speaks TLS, 1.2 or later. Read again on SIGHUP."`
	TLSKey             string        `name:"tls-key" help:"PEM file of the certificate's key."`
	Catalog            string        `help:"Where the markets come from: a file of events, markets, series, tags or order-book markets (a JSON array or JSON lines, gzipped or not), a folder of such files, or the base address of a service with the same lists. Looked at again as it changes, and on SIGHUP. What it closes is closed here; nothing but resolve resolves."`
	Demo               bool          `help:"Paper market: bots quote the first open markets, keys get --faucet, wallets link on first use."`
	Faucet             string        `help:"Paper collateral that a wallet gets when it first derives a key. Off without --demo; 10000 with it."`
	Durability         string        `default:"fsync" enum:"fsync,async" help:"async acknowledges before the sync: for measuring only."`
	CheckpointInterval time.Duration `default:"5m" help:"Time after which a checkpoint is written if anything happened."`
	ScrubInterval      time.Duration `default:"24h" help:"Time between two looks at all old data, in the background, at 32 MiB/s, however often the node starts. 0: never."`
	CheckpointCommands uint64        `default:"2000000" help:"Commands after which a checkpoint is written: what a start after a crash replays at most, but for what came while it was written."`
	DiskReserve        byteSize      `default:"1GiB" help:"Free space of the disk below which only cancels are taken; below twice of it a warning. 0: never."`
	DiskBallast        byteSize      `default:"256MiB" help:"Size of a file in the data folder that is deleted when the disk is all but full, so that cancels and a stop still find room. 0: none."`
	ChainID            uint64        `default:"80002" help:"The one chain whose signatures count."`
	Exchange           []string      `sep:"none" help:"One more signing domain: NAME,VERSION,ADDRESS[,neg-risk|both]. May be repeated."`
	Limits             string        `default:"on" enum:"on,off" help:"Request limits per wallet and address."`
	LimitsFile         string        `help:"File of limits that replace the built-in ones, and of tiers of wallets. Read again on SIGHUP; README.md shows its lines."`
	MasterKey          string        `help:"File with the 32-byte secret that API keys derive from, in hex. Default: the service credential master.key, else DATA/master.key, made at first start."`
	Trusted            []string      `name:"trusted-proxy" help:"Network whose X-Forwarded-For is believed, as 10.0.0.0/8."`
	CORSOrigin         string        `name:"cors-origin" default:"*" help:"Origins whose web pages may read answers, with commas between them, as https://example.com; * is any. Empty: none."`
	Sockets            int           `default:"16384" help:"WebSockets that may be open at once, beside the connections of requests."`
	SocketsPerAddress  int           `default:"2048" help:"WebSockets that one address, or one IPv6 /64, may have."`
	IOUring            string        `name:"io-uring" default:"on" enum:"on,off" help:"Write to many WebSockets with one system call, where the kernel lets the node: off for a kernel that is not trusted with it."`
	Lanes              string        `default:"on" enum:"on,off" help:"Check signatures in the widest registers of the processor (AVX-512 IFMA), where it has them: off for a processor that is not trusted with them."`
	AllowCore          bool          `help:"Let the system write core dumps of the node, and other processes of its user trace it: both show its secrets."`
	Profiles           string        `help:"File of what wallets are called: a JSON array of objects with proxyWallet, name, pseudonym, bio, profileImage, profileImageOptimized, displayUsernamePublic. Read again when it changes."`
	Allowed            []string      `name:"wallet-allow" help:"Network that may ask about wallets, as 10.0.0.0/8; all others are refused. May be repeated. Without it everybody may."`
	DebugStages        bool          `help:"Answer an order whose request has X-Debug-Stages: 1 with the microseconds of each stage. On with --demo."`
	TraceSlow          time.Duration `help:"Keep a runtime trace of the last 10 s in memory, and write it to DATA/traces when p99 of POST /order passes this. 0: never. It takes CPU time all the while."`
	Cluster            string        `placeholder:"NAME@HOST:PORT" help:"Be the member of a cluster that the data folder was made for, and take connections of other members there. One of the voters leads; all members answer reads and take writes. For trials, not for money yet: journal/raft/DESIGN.md lists the gaps. --demo has no bots then."`
	Peers              []string      `placeholder:"NAME@HOST:PORT" help:"Where other members are, if not where clobd cluster init was told."`
	Priority           int           `default:"1" placeholder:"NUMBER" help:"Of the voters of a cluster that are well the one with the highest number leads. 0: this one does only if for 3 s nobody else can; it votes, and counts for a majority."`
	LogLevel           string        `default:"info" enum:"debug,info,warn,error" help:"Least level of the log on standard error."`
}

func (c *serveCommand) Run(ctx context.Context) error {
	s, err := c.settings()
	if err != nil {
		return err
	}
	s.keepToItself()
	procs, places := concurrency(os.Getenv("GOMAXPROCS"), runtime.GOMAXPROCS(0), runtime.NumCPU())
	runtime.GOMAXPROCS(procs)
	s.places = places
	s.limitHeap()
	return runNode(ctx, s)
}

// heapShare is the part of the machine's memory, or of the container's, that Go's heap may take
// before the collector works harder. The rest is for what the heap does not count: the caches and
// memtables of two databases, and the page cache, without which reads wait for the disk.
const heapShare = 0.8

// limitHeap tells the collector how much memory there is, unless the environment's GOMEMLIMIT does.
// A node whose heap comes near the limit becomes slower, which its metrics show, where the system
// would have killed it.
func (s *settings) limitHeap() {
	_, err := memlimit.Set(memlimit.WithRatio(heapShare), memlimit.WithProvider(memory))
	if err != nil {
		s.log.Warn("the heap has no limit: set GOMEMLIMIT", "error", err)
	}
}

// memory returns how many bytes of memory the container may use, or the machine has if that is
// less.
func memory() (uint64, error) {
	machine, err := memlimit.FromSystem()
	container, unlimited := memlimit.FromCgroup()
	if unlimited == nil && (err != nil || container < machine) {
		return container, nil
	}
	return machine, err
}

// concurrency returns GOMAXPROCS, and how many goroutines may work on orders: one per CPU.
// GOMAXPROCS is four times that, so that the queues of Go's scheduler, which knows no priorities,
// stay short under load: the system's own scheduler prefers the threads that have run least, which
// are those of reads, matcher and committer. asked is the environment's GOMAXPROCS, which wins;
// running knows the container's limit, cpus does not.
func concurrency(asked string, running, cpus int) (procs, places int) {
	procs, places = running, min(running, cpus)
	if asked == "" {
		procs += 3 * places
	}
	return procs, places
}

// byteSize is a number of bytes on the command line: 1073741824, 64MiB, 1GiB.
type byteSize int64

func (b *byteSize) UnmarshalText(text []byte) error {
	digits, shift := string(text), 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, is := strings.CutSuffix(digits, unit); is {
			digits, shift = rest, 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > 1<<50>>shift {
		return fmt.Errorf("%q is no size: write bytes, or a number with KiB, MiB, GiB or TiB, up to "+
			"1024TiB", text)
	}
	*b = byteSize(n << shift)
	return nil
}

type settings struct {
	*serveCommand
	places  int // for work on orders; 0 is one per CPU
	faucet  engine.Cash
	domains []auth.Domain
	proxies []netip.Prefix
	allowed []netip.Prefix
	screen  *screen
	origins cors.Origins
	log     *slog.Logger
	recent  *page.Recent // what log and door have told lately
}

// settings names every option that is wrong.
func (c *serveCommand) settings() (*settings, error) {
	var level slog.Level
	problems := []error{level.UnmarshalText([]byte(c.LogLevel))}
	s := &settings{serveCommand: c, domains: auth.Domains(c.ChainID)}
	for _, text := range c.Exchange {
		d, err := auth.ParseDomain(text, c.ChainID)
		problems = append(problems, err)
		s.domains = append(s.domains, d)
	}
	if len(s.domains) == 0 {
		problems = append(problems, cli.Hint(fmt.Errorf("no exchange is known on chain %d", c.ChainID),
			"--exchange NAME,VERSION,ADDRESS names one; 80002, 137 and 31337 have a table"))
	}
	for _, flag := range []struct {
		name  string
		texts []string
		into  *[]netip.Prefix
	}{{"--trusted-proxy", c.Trusted, &s.proxies}, {"--wallet-allow", c.Allowed, &s.allowed}} {
		for _, text := range flag.texts {
			p, err := netip.ParsePrefix(text)
			if err != nil {
				problems = append(problems, cli.Hint(fmt.Errorf("%s %q is no network", flag.name, text),
					"write an address, a slash and a number of bits: 10.0.0.0/8, or 10.0.0.1/32 for one "+
						"address"))
			}
			*flag.into = append(*flag.into, p)
		}
	}
	var err error
	if s.origins, err = cors.Parse(c.CORSOrigin); err != nil {
		problems = append(problems, cli.Hint(fmt.Errorf("--cors-origin: %w", err), "write scheme and "+
			"host, and the port if it is not the usual one: https://example.com,http://localhost:3000"))
	}
	faucet := c.Faucet
	if faucet == "" && c.Demo {
		faucet = "10000"
	}
	if faucet != "" {
		units, err := strconv.ParseInt(faucet, 10, 64)
		if err != nil || units < 0 || units > engine.MaxAmount/engine.Unit {
			problems = append(problems, fmt.Errorf("--faucet %q: not a whole number of units", faucet))
		}
		s.faucet = engine.Cash(units * engine.Unit)
	}
	if c.LimitsFile != "" && c.Limits == "off" {
		problems = append(problems, errors.New("--limits-file has no effect with --limits off: leave "+
			"one of the two out"))
	}
	problems = append(problems, c.checkListeners()...)
	if c.ScrubInterval < 0 || c.TraceSlow < 0 || c.Priority < 0 {
		problems = append(problems, errors.New("--scrub-interval, --trace-slow or --priority is negative"))
	}
	if c.Cluster == "" && len(c.Peers) > 0 {
		problems = append(problems, cli.Hint(errors.New("--peers has no effect without --cluster"),
			"--cluster NAME@HOST:PORT says which member this node is"))
	}
	if c.CheckpointInterval <= 0 || c.CheckpointCommands == 0 {
		problems = append(problems, errors.New("--checkpoint-interval and --checkpoint-commands "+
			"must be above 0"))
	}
	s.screen = newScreen()
	s.recent = new(page.Recent)
	s.log = slog.New(slog.NewMultiHandler(
		slog.NewJSONHandler(s.screen, &slog.HandlerOptions{Level: level}), s.recent.Handler()))
	if err := errors.Join(problems...); err != nil {
		return nil, &cli.UsageError{Err: cli.Hint(err, "clobd serve --help lists the flags")}
	}
	return s, nil
}
