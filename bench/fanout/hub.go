package fanout

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api"
	"clobd/api/stream"
	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/bench"
	"clobd/bench/workload"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/ingress/auth"
)

// hub is the node's market stream without orders, journal and index: an Exchange whose frames go
// to a Board and to the Hub, and the node's own door, through which subscribers come.
type hub struct {
	exchange *engine.Exchange
	board    *view.Board
	hub      *stream.Hub
	head     engine.Head
	frames   chan []byte
	burst    int
	made     bench.Recorder // time to make a burst's frame: engine, encoding and Board
}

const (
	levels = 10                 // of each side of a book
	wallet = engine.WalletNo(1) // owns all orders

	// The balances of the wallet are enough for all orders.
	cash   = 10_000_000 * engine.Unit
	shares = 1_000_000 * engine.Unit

	proofSize = 150 // bytes of the evidence of a typical order

	chain = 80002 // ingress.New needs a chain, although nobody signs
)

// answerTime is how long the Hub may take to tell a frame, and a process to answer. It is long,
// because the machine may pause.
const answerTime = time.Minute

var errOver = errors.New("there are no more frames")

// newHub makes a hub with a market for each message of a burst, and serves subscribers on ln.
func newHub(ln net.Listener, burst int) (*hub, error) {
	// The node does the same, so that other goroutines can run beside the matcher.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), 2*runtime.NumCPU()))
	h := &hub{exchange: engine.NewExchange(1), board: view.NewBoard(), burst: burst,
		frames: make(chan []byte, 1), made: bench.NewRecorder()}
	if err := h.fill(); err != nil {
		return nil, err
	}
	h.hub = stream.New(stream.Options{Board: h.board, Book: api.Book,
		Hash: new(api.Hasher).Hash, JournalID: 1, Now: time.Now,
		Announce: func(*view.Market) []byte { return nil },
		ID:       func(engine.Condition) string { return "" },
		Label:    func(engine.Condition, engine.Outcome) string { return "" },
		Next: func() ([]byte, error) {
			if b, ok := <-h.frames; ok {
				return b, nil
			}
			return nil, errOver
		}})
	door, err := h.door()
	if err != nil {
		return nil, err
	}
	door.Ready(true)
	go func() { _ = door.Serve(ln) }() // until the process ends
	go func() { _ = h.hub.Run() }()
	return h, nil
}

// fill lists the markets and fills their books.
func (h *hub) fill() error {
	all := []engine.Command{{Kind: engine.Deposit, Address: workload.TraderAddress(0), Cash: cash}}
	for m := range h.burst {
		all = append(all, engine.Command{Kind: engine.List, Listing: &engine.Listing{
			Condition: workload.Hashed("condition", m),
			Tokens:    workload.Tokens(m),
			Group:     uint64(m), Tick: 100, MinSize: engine.Unit, Open: true}})
	}
	for m := range h.burst {
		all = append(all, engine.Command{Kind: engine.Deposit, Address: workload.TraderAddress(0),
			Market: engine.MarketNo(m + 1), Size: shares})
		for i := range levels {
			for side, price := range []engine.Price{4900 - 100*engine.Price(i), 5100 + 100*engine.Price(i)} {
				c := order(m, price, engine.Size(100+i)*engine.Unit)
				c.Side, c.ID = engine.Side(side), workload.Hashed("level", (m*levels+i)*2+side)
				all = append(all, c)
			}
		}
	}
	for ; len(all) > 0; all = all[min(len(all), engine.FrameCommands):] {
		if _, err := h.do(all[:min(len(all), engine.FrameCommands)]); err != nil {
			return err
		}
	}
	return nil
}

// token is outcome 0 of market m.
func token(m int) engine.Token { return workload.Tokens(m)[0] }

// order buys outcome 0 in market m, counted from 0.
func order(m int, price engine.Price, size engine.Size) engine.Command {
	return engine.Command{Kind: engine.Place, Type: engine.GTC, Market: engine.MarketNo(m + 1),
		Wallet: wallet, Owner: wallet, Size: size, Cash: engine.Cost(size, price),
		Proof: make([]byte, proofSize)}
}

// do makes a frame of Commands, shows it on the Board, and returns it encoded.
func (h *hub) do(commands []engine.Command) ([]byte, error) {
	f := engine.Frame{Engine: h.exchange.Version(), Epoch: 1, No: h.head.Frame + 1,
		First: h.head.Sequence + 1, Time: engine.Time(time.Now().UnixMilli()), Commands: commands}
	for i := range commands {
		f.Events = h.exchange.Apply(&commands[i], f.First+engine.Sequence(i), f.Time, f.Events)
		f.Ends = append(f.Ends, uint32(len(f.Events)))
	}
	for i := range f.Events {
		if f.Events[i].Kind == engine.Rejected {
			return nil, fmt.Errorf("fan-out: the engine refuses: %v", f.Events[i].Reject)
		}
	}
	f.Digest = h.exchange.Digest()
	f.Encode(h.head.Hash)
	h.head = f.Head()
	h.board.Publish(&f)
	return f.Bytes, nil
}

// publish changes one level of each market in one frame: even bursts place an order in each market,
// and odd bursts cancel these orders. publish first waits until the Hub has told the burst before.
// Otherwise the Hub could merge two changes of a market, and subscribers would get fewer messages
// than those of the other sides.
func (h *hub) publish(n int) error {
	if !h.hub.Reach(h.head.Sequence, answerTime) {
		return errors.New("fan-out: the Hub does not tell what it was given")
	}
	commands := make([]engine.Command, h.burst)
	for m := range commands {
		id := engine.OrderID(workload.Hashed("order", n/2*h.burst+m))
		if commands[m] = order(m, 4500, 7*engine.Unit); n%2 == 1 {
			commands[m] = engine.Command{Kind: engine.Cancel, Owner: wallet}
		}
		commands[m].ID = id
	}
	at := time.Now()
	b, err := h.do(commands)
	if err != nil {
		return err
	}
	h.made.Record(time.Since(at))
	h.frames <- b
	return nil
}

// door returns a server of package ingress, like the node's, which knows no keys and takes no
// orders.
func (h *hub) door() (*ingress.Server, error) {
	return ingress.New(ingress.Options{
		Enter: func(*engine.Command) (*sequencer.Call, error) { return nil, sequencer.ErrClosed },
		EnterAll: func([]engine.Command, []*sequencer.Call) error {
			return sequencer.ErrClosed
		},
		Board: h.board, Market: h.hub.Serve, User: func(*live.Socket, wire.Login) {},
		Public:  func(*fasthttp.RequestCtx) {},
		Account: func(*fasthttp.RequestCtx, engine.Address, wire.Dialect) {},
		Past: func(engine.OrderID) (engine.Receipt, bool, engine.Sequence, error) {
			return engine.Receipt{}, false, 0, nil
		},
		Request: func(engine.OrderID) (engine.Sequence, bool, engine.Sequence, error) {
			return 0, false, 0, nil
		},
		Moved: func(engine.WalletNo, engine.Sequence) (engine.Event, bool, error) {
			return engine.Event{}, false, nil
		},
		Await:   func(engine.Sequence, time.Duration) bool { return true },
		Keyring: auth.NewKeyring([32]byte{9}), Verifier: auth.NewVerifier(auth.Domains(chain)),
		Chains: []uint64{chain}, SocketsPerAddress: mostSubscribers})
}
