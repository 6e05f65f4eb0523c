package ingress

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/answer"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
	"clobd/ingress/cors"
	"clobd/ingress/limits"
)

// Options are what the door needs. The first group may be left out of New; then Attach sets it.
type Options struct {
	// Enter hands a copy of a Command to the writer and does not wait: the Call has the answer.
	// Errors: sequencer.ErrBusy and sequencer.ErrClosed.
	Enter func(c *engine.Command) (*sequencer.Call, error)
	// EnterAll enters neighbours in the journal, or none of them, and sets one call for each.
	EnterAll func(commands []engine.Command, calls []*sequencer.Call) error
	Board    *view.Board
	// Public serves every route that reads and needs no key.
	Public func(ctx *fasthttp.RequestCtx)
	// Account serves every route that reads and needs a key. dialect is that of the headers.
	Account func(ctx *fasthttp.RequestCtx, owner engine.Address, dialect wire.Dialect)
	// Market serves a socket that asked for market data, until it is closed.
	Market func(*live.Socket)
	// User serves a socket that asked for what happens to somebody's orders, until it is closed. login
	// checks whose.
	User func(s *live.Socket, login wire.Login)
	// Past looks an order up in the index: its result with its status of today, whether the index
	// knows it, and the Sequence that the index had reached before the lookup.
	Past func(id engine.OrderID) (r engine.Receipt, known bool, seen engine.Sequence, err error)
	// Request looks a split, merge or redemption up in the index by its id: its Sequence, whether
	// the index knows it, and the Sequence that the index had reached before the lookup.
	Request func(id engine.OrderID) (at engine.Sequence, known bool, seen engine.Sequence, err error)
	// Moved finds in the index the split, merge or redemption of a wallet at a Sequence.
	Moved func(w engine.WalletNo, seq engine.Sequence) (e engine.Event, known bool, err error)
	// Await waits at most d until the index holds seq, and reports whether it does.
	Await     func(seq engine.Sequence, d time.Duration) bool
	JournalID uint64
	// Confirm returns the last Sequence that any node of a cluster has told by now; nil: it is alone.
	Confirm func(d time.Duration) (engine.Sequence, error)
	// Current waits until this node shows what a query asks for. False: it has answered; nil: no wait.
	Current func(ctx *fasthttp.RequestCtx) bool
	// Watches reports whether this node of a cluster watches all heartbeats; Heard tells the one that
	// does of a key. Member is the node's id there. All are zero for a node that is alone.
	Member  uint32
	Watches func() bool
	Heard   func(owner engine.WalletNo, key uint32) bool

	Keyring  *auth.Keyring
	Verifier *auth.Verifier
	// Chains are the chain ids under which a key may be derived.
	Chains []uint64
	// Faucet is the paper collateral that a wallet without an account gets when it derives a key; 0
	// turns it off. Nobody gets it once FaucetWallets wallets have numbers; default 10,000.
	Faucet        engine.Cash
	FaucetWallets int
	// LinkOnFirstUse links a funded wallet without an owner to the first owner who signs for it. A
	// funded address that derives a key or trades for itself is linked to itself, for good.
	LinkOnFirstUse bool
	// Windows count how often callers ask; nil: there are no limits.
	Windows *limits.Windows
	// Policy holds the limits; nil is limits.Standard.
	Policy *limits.Policy
	// AdminToken opens the admin routes; with "" they are all refused.
	AdminToken string
	// Stages are told how long requests with a key spend in each stage of the door.
	Stages answer.Stages
	// DebugStages answers an order whose request asks for its stages with them.
	DebugStages bool
	// Quarantined, if set, reports that a Command once made the engine panic and must not enter.
	Quarantined func(*engine.Command) bool
	// TrustedProxies may name their client in X-Forwarded-For.
	TrustedProxies conn.Proxies
	// Workers is how many orders are worked on at once; default: one per CPU.
	Workers int
	// Concurrency caps the connections served at once; default 8,192. Concurrency and Sockets together
	// are lowered to the limit of open files less 512, but not below 64.
	Concurrency int
	// ConnsPerAddress caps the connections of one address (of IPv6: of one /64); default: an eighth
	// of Concurrency. Those of TrustedProxies are not counted.
	ConnsPerAddress int
	// Sockets caps the WebSockets open beside the connections; default 16,384. SocketsPerAddress caps
	// those of one address, as ConnsPerAddress does; default: an eighth of Sockets.
	Sockets, SocketsPerAddress int
	// Origins are the web pages that may read the answers; default: all.
	Origins cors.Origins
	// TLS is how connections are secured, but for those of neighbours on a socket in the file system;
	// nil: all are in the clear.
	TLS *tls.Config
	// Version is the X-Node-Version of every answer.
	Version string
	// Now is the wall clock; default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

const Connections = 8192 // the default of Options.Concurrency

func (o Options) withDefaults() Options {
	o.FaucetWallets = cmp.Or(o.FaucetWallets, 10_000)
	o.Workers = cmp.Or(o.Workers, runtime.NumCPU())
	o.Concurrency, o.Sockets = cmp.Or(o.Concurrency, Connections), cmp.Or(o.Sockets, 16_384)
	if all := o.Concurrency + o.Sockets; o.Concurrency > 0 && o.Sockets > 0 {
		can := conn.Affordable(all)
		o.Concurrency = max(can*o.Concurrency/all, 1)
		o.Sockets = max(can-o.Concurrency, 1)
	}
	o.ConnsPerAddress = cmp.Or(o.ConnsPerAddress, max(o.Concurrency/8, 1))
	o.SocketsPerAddress = cmp.Or(o.SocketsPerAddress, max(o.Sockets/8, 1))
	o.Version = cmp.Or(o.Version, "dev")
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o
}

type problems []error

func (p *problems) missing(is bool, name string) { p.wrong(is, "%s is not set", name) }

func (p *problems) wrong(is bool, format string, value any) {
	if is {
		*p = append(*p, fmt.Errorf(format, value))
	}
}

func (o *Options) validate() error {
	var p problems
	p.missing(o.Keyring == nil, "Keyring")
	p.missing(o.Verifier == nil, "Verifier")
	p.missing(len(o.Chains) == 0, "Chains")
	p.wrong(o.Faucet < 0 || o.Faucet > engine.MaxAmount, "option Faucet %s: out of range", o.Faucet)
	p.wrong(o.FaucetWallets < 0, "option FaucetWallets %d: negative", o.FaucetWallets)
	p.wrong(o.Workers < 1 || o.Workers > 1024, "option Workers %d: not in [1, 1024]", o.Workers)
	p.wrong(o.Concurrency < 1, "option Concurrency %d: not positive", o.Concurrency)
	p.wrong(o.ConnsPerAddress < 0, "option ConnsPerAddress %d: negative", o.ConnsPerAddress)
	p.wrong(o.Sockets < 1, "option Sockets %d: not positive", o.Sockets)
	p.wrong(o.SocketsPerAddress < 0, "option SocketsPerAddress %d: negative", o.SocketsPerAddress)
	return errors.Join(p...)
}

func (o *Options) validateAttached() error {
	var p problems
	p.missing(o.Enter == nil, "Enter")
	p.missing(o.EnterAll == nil, "EnterAll")
	p.missing(o.Board == nil, "Board")
	p.missing(o.Public == nil, "Public")
	p.missing(o.Account == nil, "Account")
	p.missing(o.Market == nil, "Market")
	p.missing(o.User == nil, "User")
	p.missing(o.Past == nil, "Past")
	p.missing(o.Request == nil, "Request")
	p.missing(o.Moved == nil, "Moved")
	p.missing(o.Await == nil, "Await")
	return errors.Join(p...)
}
