package ingress

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress/auth"
	"clobd/ingress/conn"
)

// Options are what the door needs. The first group may be left out of New while the journal is
// being recovered; Attach sets it before Ready(true).
type Options struct {
	// Enter hands a Command to the writer, here or on another node, and does not wait: the Call has
	// the answer. It copies c and c.Proof. Errors: sequencer.ErrBusy and sequencer.ErrClosed.
	Enter func(c *engine.Command) (*sequencer.Call, error)
	// EnterAll enters neighbours in the journal, or none of them, and sets calls, of which there are
	// as many. Errors as of Enter.
	EnterAll func(commands []engine.Command, calls []*sequencer.Call) error
	Board    *view.Board
	// Public serves every route that reads and needs no key.
	Public func(ctx *fasthttp.RequestCtx)
	// Account serves every route that reads and needs a key, for the authenticated owner. dialect is
	// the prefix of its headers.
	Account func(ctx *fasthttp.RequestCtx, owner engine.Address, dialect string)
	// Past looks an order up in the index: its result with its status of today, whether the index
	// knows it, and the Sequence that the index had reached before the lookup.
	Past func(id engine.OrderID) (r engine.Receipt, known bool, seen engine.Sequence, err error)
	// Await waits at most d until the index holds seq, and reports whether it does.
	Await     func(seq engine.Sequence, d time.Duration) bool
	JournalID uint64

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
	// Limits turns the table of request windows on.
	Limits bool
	// AdminToken opens the admin routes; with "" they are all refused.
	AdminToken string
	// Quarantined, if set, reports that a Command once made the engine panic and must not enter.
	Quarantined func(*engine.Command) bool
	// TrustedProxies may name their client in X-Forwarded-For.
	TrustedProxies conn.Proxies
	// Workers is how many orders are worked on at once, one less while somebody reads; default: one
	// per CPU.
	Workers int
	// Concurrency caps the connections served at once; default 8,192. It is lowered to the limit of
	// open files less 512, but not below 64.
	Concurrency int
	// ConnsPerAddress caps the connections of one address (of IPv6: of one /64); default: an eighth
	// of Concurrency. Those of TrustedProxies are not counted.
	ConnsPerAddress int
	// Version is the X-Node-Version of every answer.
	Version string
	// Now is the wall clock; default time.Now.
	Now func() time.Time
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.FaucetWallets == 0 {
		o.FaucetWallets = 10_000
	}
	if o.Workers == 0 {
		o.Workers = runtime.NumCPU()
	}
	if o.Concurrency == 0 {
		o.Concurrency = 8192
	}
	if o.Concurrency > 0 {
		o.Concurrency = conn.Affordable(o.Concurrency)
	}
	if o.ConnsPerAddress == 0 {
		o.ConnsPerAddress = max(o.Concurrency/8, 1)
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// validate names every bad option that New needs.
func (o *Options) validate() error {
	var problems []error
	need := func(ok bool, name string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	need(o.Keyring != nil, "Keyring")
	need(o.Verifier != nil, "Verifier")
	need(len(o.Chains) > 0, "Chains")
	if o.Faucet < 0 || o.Faucet > engine.MaxAmount {
		problems = append(problems, fmt.Errorf("option Faucet %s: out of range", o.Faucet))
	}
	if o.FaucetWallets < 0 {
		problems = append(problems, fmt.Errorf("option FaucetWallets %d: negative", o.FaucetWallets))
	}
	if o.Workers < 1 || o.Workers > 1024 {
		problems = append(problems, fmt.Errorf("option Workers %d: not in [1, 1024]", o.Workers))
	}
	if o.Concurrency < 1 {
		problems = append(problems, fmt.Errorf("option Concurrency %d: not positive", o.Concurrency))
	}
	if o.ConnsPerAddress < 0 {
		problems = append(problems,
			fmt.Errorf("option ConnsPerAddress %d: negative", o.ConnsPerAddress))
	}
	return errors.Join(problems...)
}

// validateAttached names every missing option of the first group.
func (o *Options) validateAttached() error {
	var problems []error
	need := func(ok bool, name string) {
		if !ok {
			problems = append(problems, fmt.Errorf("%s is not set", name))
		}
	}
	need(o.Enter != nil, "Enter")
	need(o.EnterAll != nil, "EnterAll")
	need(o.Board != nil, "Board")
	need(o.Public != nil, "Public")
	need(o.Account != nil, "Account")
	need(o.Past != nil, "Past")
	need(o.Await != nil, "Await")
	return errors.Join(problems...)
}
