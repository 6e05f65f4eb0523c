package role

import (
	"context"
	"sync"
	"time"

	"clobd/engine"
)

// questions lets all who ask at the same time share one question: there is one on its way, and who
// asks meanwhile waits for the next one, because an answer is good only for those who asked before.
type questions struct {
	ask func(context.Context) (engine.Head, error)

	mu     sync.Mutex
	next   *inquiry // nobody has asked it yet
	asking bool
}

// inquiry is a question that is asked for several. What it came to is read once done is closed.
type inquiry struct {
	done chan struct{}
	head engine.Head
	err  error
}

// questionTime is how long a question may take. Who asks the next one begins to wait meanwhile.
const questionTime = time.Second

// confirm returns a Sequence not below that of anything that anybody was told before the call.
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

// run asks until nobody wants to know any more.
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

// Confirm asks the member that leads, which asks a majority whether it still does. Until there is
// one the question is repeated, until ctx ends, and no longer than a second.
func (m *Together) Confirm(ctx context.Context) (engine.Sequence, error) {
	return m.questions.confirm(ctx)
}

// Confirm asks nobody: this node has told all that was told.
func (a *Alone) Confirm(context.Context) (engine.Sequence, error) { return a.Board.Sequence(), nil }
