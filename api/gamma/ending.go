package gamma

import (
	"time"

	"clobd/api/catalog"
	"clobd/api/wire"
	"clobd/engine"
	"clobd/engine/view"
)

// ending is how a market or an event ended here, by an operator's command, in unix milliseconds.
// The zero ending is none: it goes on, or its source says itself how it ended.
type ending struct{ closed, updated int64 }

// The forms in which sources write closedTime.
const (
	marketClosed = "2006-01-02 15:04:05+00"
	eventClosed  = "2006-01-02T15:04:05.000Z"
)

// endingOf tells how a market ended here. What the source has closed or archived ends with it; only
// if it is resolved here as well, that is news.
func (d *describer) endingOf(m *catalog.Market, listed *view.Market) (end ending) {
	bySource := m.Closed || m.Archived
	if listed == nil || !ended(listed) || bySource && listed.State != engine.Settled {
		return end
	}
	return ending{int64(listed.Ended), int64(max(listed.Ended, listed.Resolved))}
}

// endingOfEvent tells how an event ended: with the last of its markets, if one ended here.
func (d *describer) endingOfEvent(e *catalog.Event) (end ending) {
	if e.Closed || !d.over(e) {
		return end
	}
	for _, m := range d.c.MarketsOf(e) {
		one := d.endingOf(m, d.g.o.Board.Directory.Condition(m.Condition))
		end.closed, end.updated = max(end.closed, one.closed), max(end.updated, one.updated)
	}
	return end
}

// append appends members of a record as they are written, but for what an ending changes:
// closedTime where the source has none, and updatedAt if that was earlier. layout is that of
// closedTime.
func (end ending) append(b, members []byte, updated int64, layout string) []byte {
	if end == (ending{}) {
		return appendMembers(b, members)
	}
	closed := false
	for key, value := range catalog.Members(members) {
		switch string(key) {
		case "closedTime":
			if string(value) == "null" || string(value) == `""` {
				continue
			}
			closed = true
		case "updatedAt":
			if end.updated > updated {
				continue
			}
		}
		b = appendMember(b, key, value)
	}
	if !closed {
		b = wire.AppendField(b, "closedTime", time.UnixMilli(end.closed).UTC().Format(layout))
	}
	if end.updated > updated {
		b = wire.AppendField(b, "updatedAt", end.updatedAt())
	}
	return b
}

func (end ending) updatedAt() string {
	return time.UnixMilli(end.updated).UTC().Format(eventClosed)
}
