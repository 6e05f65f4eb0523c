package stream

import (
	"time"

	"clobd/api/wire/live"
)

// outbox sends what waits for subscribers. The Hub's mutex guards it.
type outbox struct {
	hub     *Hub
	due     []*subscriber // for whom something waits
	rests   int           // bytes that sockets have taken and not sent
	forms   forms
	scratch []byte
	array   []byte
	batch   live.Batch
	batched [live.BatchSends]*subscriber // whose send has that number
}

// serve sends all subscribers for whom something waits what there is room for.
func (o *outbox) serve(now time.Time) {
	blocked := 0
	for at := 0; at < len(o.due); {
		group := o.due[at:min(at+live.BatchSends, len(o.due))]
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
		if at += len(group); at%turns < live.BatchSends {
			yield()
		}
	}
	clear(o.due[blocked:])
	o.due = o.due[:blocked]
	o.forms.forget()
}

// fill fills the batch. A panic costs the subscriber at whom it came its socket.
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

// add puts frames of a subscriber into the batch, and reports whether it could.
func (o *outbox) add(s *subscriber, frames []byte) bool {
	i, taken := o.batch.Add(s.socket, frames)
	if taken {
		o.batched[i] = s
	}
	return taken
}

// flush sends the batch, and notes what the sockets could not send.
func (o *outbox) flush(now time.Time) {
	o.batch.Send(func(i int, err error) {
		if err != nil {
			o.batched[i].lose(err)
		} else {
			o.batched[i].measure(now)
		}
	})
}
