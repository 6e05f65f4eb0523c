package role

import (
	"context"
	"sync"
	"time"

	"clobd/engine"
)

// questions lets callers share questions. One question is on its way at a time. Callers that come
// meanwhile share the next one, because an answer is good only for callers that came before the
// question was sent.
type questions struct {
	ask func(context.Context) (engine.Head, error)

	mu     sync.Mutex
	next   *inquiry // not sent yet
	asking bool
}

// inquiry is a question of several callers. They read the result once done is closed.
type inquiry struct {
	done chan struct{}
	head engine.Head
	err  error
}

// questionTime is how long a question may take. Callers of the next one wait meanwhile.
const questionTime = time.Second

// confirm returns a Sequence at or above all that any client was told before the call.
func (q *questions) confirm(ctx context.Context) (engine.Sequence, error) {
	q.mu.Lock()
	if q.next == nil {
		q.next = &inquiry{done: make(chan struct{})}
	}
	mine := q.next
	if !q.asking {
		q.asking = true
		go q.run()
	}
	q.mu.Unlock()
	select {
	case <-mine.done:
		return mine.head.Sequence, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run sends one question after the other until no caller waits.
func (q *questions) run() {
	for {
		q.mu.Lock()
		asked := q.next
		q.next, q.asking = nil, asked != nil
		q.mu.Unlock()
		if asked == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), questionTime)
		asked.head, asked.err = q.ask(ctx)
		cancel()
		close(asked.done)
	}
}

// Confirm asks the leader, which asks a majority whether it still leads. Without a leader the
// question is repeated until ctx ends, at most for questionTime.
func (m *Together) Confirm(ctx context.Context) (engine.Sequence, error) {
	return m.questions.confirm(ctx)
}

// Confirm asks nobody: clients are told by this node only.
func (a *Alone) Confirm(context.Context) (engine.Sequence, error) { return a.Board.Sequence(), nil }
