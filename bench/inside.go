package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"clobd/api"
	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/api/wire/live"
	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/engine/view"
	"clobd/ingress"
	"clobd/ingress/auth"
	"clobd/journal"
	"clobd/journal/history"
)

// inside is a whole node in this process, on a disk in memory, whose writer can be stalled: the
// matcher, in the clock that it asks for every batch, or the disk, in the wait for a frame.
type inside struct {
	addr     string
	board    *view.Board
	history  *history.History
	writer   *sequencer.Sequencer
	handler  *api.Handler
	keyring  *auth.Keyring
	matcher  sync.RWMutex // held: the matcher stands still
	disk     sync.RWMutex // held: no frame becomes durable
	shutdown []func() error
}

// stalling is a journal whose Wait can be made to hang.
type stalling struct {
	*journal.Journal
	gate *sync.RWMutex
}

// Wait is the journal's, once the gate is open.
func (s stalling) Wait(frame uint64) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	return s.Journal.Wait(frame)
}

// newInside starts one on a free loopback port.
func newInside() (*inside, error) {
	n := &inside{board: view.NewBoard(), keyring: auth.NewKeyring([32]byte{9})}
	if err := n.start(); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (n *inside) start() error {
	quietly := slog.New(slog.DiscardHandler)
	j, err := journal.Open(journal.Options{Dir: "data", FS: vfs.NewMem(), Log: quietly})
	if err != nil {
		return err
	}
	n.later(j.Close)
	x := engine.NewExchange(1)
	if _, err := j.Recover(x, nil); err != nil {
		return err
	}
	index, err := history.Open(j, history.Options{Log: quietly})
	if err != nil {
		return err
	}
	n.background(index.Run, index.Close)
	n.history = index.History
	now := sequencer.NewClock(0)
	n.writer, err = sequencer.New(x, n.board, stalling{j, &n.disk}, sequencer.Options{
		Now: func() engine.Time {
			n.matcher.RLock()
			defer n.matcher.RUnlock()
			return now()
		}})
	if err != nil {
		return err
	}
	n.background(n.writer.Run, n.writer.Close)
	n.handler, err = api.New(api.Options{Board: n.board, History: n.history, JournalID: j.ID,
		Catalog: func() *catalog.Catalog { return nil }, KeyID: n.keyring.KeyID,
		Checksum: auth.Checksum, Log: quietly})
	if err != nil {
		return err
	}
	return n.open(j.ID)
}

// open opens the door.
func (n *inside) open(id uint64) error {
	door, err := ingress.New(ingress.Options{
		Enter: n.writer.Enter, EnterAll: n.writer.EnterAll, Board: n.board,
		Public: n.handler.Public, Account: n.handler.Account,
		Market: func(*live.Socket) {}, User: func(*live.Socket, wire.Login) {}, Past: n.history.Past,
		Request: n.history.Request, Moved: n.history.Move,
		Await: n.history.Await, JournalID: id, Keyring: n.keyring,
		Verifier: auth.NewVerifier(auth.Domains(chain)), Chains: []uint64{chain}})
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	n.addr = ln.Addr().String()
	door.Ready(true)
	n.background(func() error { return door.Serve(ln) }, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), answerTime)
		defer cancel()
		return door.Close(ctx)
	})
	return nil
}

// later registers a function that ends a part. close calls them in reverse order.
func (n *inside) later(end func() error) { n.shutdown = append(n.shutdown, end) }

// background runs a part in a goroutine until it ends.
func (n *inside) background(run, end func() error) {
	done := make(chan error, 1)
	go func() { done <- run() }()
	n.later(func() error { return errors.Join(end(), <-done) })
}

// close ends all parts.
func (n *inside) close() error {
	var problems []error
	for i := len(n.shutdown) - 1; i >= 0; i-- {
		problems = append(problems, n.shutdown[i]())
	}
	return errors.Join(problems...)
}

// submit enters a Command. A refusal is an error.
func (n *inside) submit(c engine.Command) error {
	r, err := n.writer.Submit(&c)
	if err == nil && r.Reject != engine.Accepted {
		err = errors.New(r.Text())
	}
	return err
}
