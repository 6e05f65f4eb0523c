package stream

import (
	"time"

	"clobd/api/wire/live"
)

// outbox sends what waits in the queues of subscribers. The Hub's mutex guards it.
type outbox struct {
	hub     *Hub
	due     []*subscriber // subscribers for whom something waits
	rests   int           // bytes that sockets have accepted and not sent, in all
	forms   forms
	scratch []byte
	array   []byte
	batch   live.Batch
	batched [live.BatchSends]*subscriber // the subscriber of each send in batch, by number
}

// open lets the batch use io_uring, unless the options forbid it. Unlike the methods below, open
// and close lock the Hub's mutex.
func (o *outbox) open() {
	o.hub.mutex.Lock()
	defer o.hub.mutex.Unlock()
	if !o.hub.o.Single && o.batch.Open() {
		o.hub.figures.batches.Set(1)
	}
}

// close releases io_uring. Later sends take a system call for each socket.
func (o *outbox) close() {
	o.hub.mutex.Lock()
	defer o.hub.mutex.Unlock()
	o.batch.Close()
}

// serve sends each subscriber in due as much as the socket has room for.
func (o *outbox) serve(now time.Time, most int) {
	defer o.batch.Forget() // after a panic
	blocked, end := 0, min(most, len(o.due))
	for at := 0; at < end; {
		group := o.due[at:min(at+live.BatchSends, end)]
		o.fill(group, now)
		o.flush(now)
		for _, s := range group {
			if s.settle(); s.waits() {
				o.due[blocked] = s
				blocked++
			} else {
				s.due = false
			}
		}
		if at += len(group); at%turns == 0 {
			yield()
		}
	}
	blocked += copy(o.due[blocked:], o.due[end:])
	clear(o.due[blocked:])
	o.due = o.due[:blocked]
	o.forms.forget()
}

// fill sends each subscriber of a group what the socket has room for, or adds it to the batch. If a
// subscriber's messages cause a panic, fill closes the socket of that subscriber.
func (o *outbox) fill(group []*subscriber, now time.Time) {
	i := 0
	offer := func() {
		for ; i < len(group); i++ {
			group[i].offer(now)
		}
	}
	for !o.hub.survives("the messages of a subscriber", offer) {
		group[i].close(live.Broken, failed)
		i++
	}
}

// add adds the frames of a subscriber to the batch, and reports whether the batch took them.
func (o *outbox) add(s *subscriber, frames []byte) bool {
	i, taken := o.batch.Add(s.socket, frames)
	if taken {
		o.batched[i] = s
	}
	return taken
}

// flush sends the batch, and notes how many bytes the sockets have not sent.
func (o *outbox) flush(now time.Time) {
	o.batch.Send(func(i int, err error) {
		if err != nil {
			o.batched[i].lose(err)
		} else {
			o.batched[i].measure(now)
		}
	})
	if !o.batch.Works() {
		o.hub.figures.batches.Set(0)
	}
}
