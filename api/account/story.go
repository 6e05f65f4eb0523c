package account

import (
	"fmt"
	"strconv"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// Story is what one Command did to the orders of an owner, as messages of the user channel:
//
//	arriving order   PLACEMENT; for each price at which it traded a trade, MATCHED and then
//	                 CONFIRMED, and an UPDATE; CANCELLATION, if a self-trade cut it short
//	resting order    the trade and an UPDATE, or CANCELLATION with the reason
//	replaced order   CANCELLATION, before the PLACEMENT of the order that replaces it
//
// The index must hold the Command. Messages are made again from the journal whenever they are asked
// for, with the same bytes: what a row of the index says of later times is not in them.
type Story struct {
	a       *Account
	frame   *engine.Frame
	command int
	owner   engine.WalletNo
	dialect wire.Dialect
	scenes  []scene
}

// scene is one message that was not rendered yet.
type scene struct {
	kind  sceneKind
	event int32  // the Event that it tells of
	trade uint32 // the index of the trade among those of the Command
	// matched is what the arriving order had traded by then.
	matched engine.Size
	last    bool // and that was all: it is MATCHED
}

type sceneKind uint8

const (
	scenePlaced    sceneKind = iota // the arriving order is there
	sceneTrade                      // a trade
	sceneSettled                    // the same trade: the frame that matched it settled it
	sceneTook                       // the arriving order traded
	sceneMade                       // a resting order traded
	sceneCancelled                  // a resting order left
	sceneCut                        // the arriving order does not rest
)

// Tell lists what a Command of a frame did to the orders of an owner. The Story is valid as long as
// the frame does not change.
func (a *Account) Tell(f *engine.Frame, command int, owner engine.WalletNo, d wire.Dialect) Story {
	s := Story{a: a, frame: f, command: command, owner: owner, dialect: d}
	c, events := &f.Commands[command], f.EventsOf(command)
	if len(events) == 0 {
		return s
	}
	end := &events[len(events)-1]
	arrived := c.Kind == engine.Place && (end.Kind == engine.Placed || end.Kind == engine.Completed)
	mine := arrived && c.Owner == owner
	if mine {
		if _, replaces := c.Replaced(); replaces { // the first Event cancels the replaced order
			s.add(scene{kind: sceneCancelled})
		}
		s.add(scene{kind: scenePlaced, event: int32(len(events) - 1)})
	}
	s.walk(c, events, mine)
	if r := engine.ReceiptOf(c, 0, 0, events); mine && r.Status == engine.Canceled {
		s.add(scene{kind: sceneCut, event: int32(len(events) - 1), matched: s.taken(events)})
	}
	return s
}

func (s *Story) add(x scene) { s.scenes = append(s.scenes, x) }

// taken is all that the arriving order traded.
func (s *Story) taken(events []engine.Event) (sum engine.Size) {
	for i := range events {
		if events[i].Kind == engine.Filled {
			sum += events[i].Size
		}
	}
	return sum
}

// walk lists the trades and cancellations of a Command. Fills at one price are one trade, as in the
// Receipt.
func (s *Story) walk(c *engine.Command, events []engine.Event, mine bool) {
	price, trade := engine.Price(0), uint32(0) // no trade yet: no fill costs nothing
	told, matched, all := false, engine.Size(0), s.taken(events)
	rests := engine.ReceiptOf(c, 0, 0, events).Status != engine.Matched
	replaced, _ := c.Replaced() // Tell has listed its cancellation
	took := func() {
		if mine && price != 0 {
			s.add(scene{kind: sceneTook, trade: trade, matched: matched, last: matched == all && !rests})
		}
	}
	for i := range events {
		e := &events[i]
		switch {
		case e.Kind == engine.Cancelled && e.Owner == s.owner && e.Order != replaced:
			s.add(scene{kind: sceneCancelled, event: int32(i)})
		case e.Kind == engine.Filled:
			p := e.Price
			if e.Outcome != c.Outcome {
				p = engine.PriceOne - p
			}
			if p != price {
				if took(); price != 0 {
					trade++
				}
				price, told = p, false
			}
			matched += e.Size
			if !told && (mine || e.Owner == s.owner) {
				told = true
				s.add(scene{kind: sceneTrade, event: int32(i), trade: trade})
				s.add(scene{kind: sceneSettled, event: int32(i), trade: trade})
			}
			if e.Owner == s.owner {
				s.add(scene{kind: sceneMade, event: int32(i), trade: trade})
			}
		}
	}
	took()
}

// Len is how many messages there are.
func (s *Story) Len() int { return len(s.scenes) }

// Sequence is that of the Command.
func (s *Story) Sequence() engine.Sequence { return s.frame.First + engine.Sequence(s.command) }

// Message renders message i, a JSON object without its closing brace, and returns its market as
// well. The error says what the index or the Board does not have.
func (s *Story) Message(i int) (m engine.MarketNo, b []byte, err error) {
	x := &s.scenes[i]
	switch c, e := &s.frame.Commands[s.command], s.event(x); x.kind {
	case sceneTrade:
		m, b, err = s.tradeMessage(x, "MATCHED")
	case sceneSettled:
		m, b, err = s.tradeMessage(x, "CONFIRMED")
	case scenePlaced, sceneTook, sceneCut:
		end := s.event(&scene{event: int32(len(s.frame.EventsOf(s.command)) - 1)})
		row := history.OrderRow{ID: c.ID, Market: c.Market, Outcome: c.Outcome, Side: c.Side,
			Type: c.Type, Wallet: c.Wallet, Owner: c.Owner, Key: c.Key, Price: end.Price,
			Size: end.Size, Matched: x.matched, Expiry: c.Expiry, Time: s.frame.Time}
		row.Status = engine.Live
		if x.kind == sceneCut {
			row.Status, row.Reason = engine.Canceled, end.Reason
		} else if x.last {
			row.Status = engine.Matched
		}
		m, b, err = s.orderMessage(x, &row)
	default:
		m, b, err = s.resting(x, e, c)
	}
	if err != nil {
		return m, nil, fmt.Errorf("tell owner %d of Sequence %d: %w", s.owner, s.Sequence(), err)
	}
	b = strconv.AppendInt(wire.AppendKey(b, "part"), int64(i+1), 10)
	return m, strconv.AppendInt(wire.AppendKey(b, "parts"), int64(len(s.scenes)), 10), nil
}

func (s *Story) event(x *scene) *engine.Event { return &s.frame.EventsOf(s.command)[x.event] }

// resting tells what happened to a resting order.
func (s *Story) resting(x *scene, e *engine.Event, c *engine.Command) (
	engine.MarketNo, []byte, error) {
	row, known, err := s.a.o.History.Terms(e.Order)
	if err != nil || !known {
		return 0, nil, fmt.Errorf("order %x is not in the index: %w", e.Order, err)
	}
	row.Matched, row.Status, row.Reason = row.Size-e.Remaining, engine.Live, e.Reason
	switch {
	case x.kind == sceneCancelled:
		row.Status = engine.Canceled
		if c.Kind == engine.CancelAll && e.Reason == engine.ByOwner {
			if row.Reason = engine.ByOwnerAll; c.Market != 0 {
				row.Reason = engine.ByOwnerMarket
			}
		}
	case e.Remaining == 0:
		row.Status = engine.Matched
	}
	return s.orderMessage(x, &row)
}

// orderMessage tells of an order as it was after the scene.
func (s *Story) orderMessage(x *scene, row *history.OrderRow) (engine.MarketNo, []byte, error) {
	owner, _ := s.a.o.Board.Directory.Address(s.owner)
	r, err := s.a.describe(row, owner)
	if err != nil {
		return 0, nil, err
	}
	kind := "UPDATE"
	switch x.kind {
	case scenePlaced:
		kind = "PLACEMENT"
	case sceneCut, sceneCancelled:
		kind = "CANCELLATION"
	}
	b := append(make([]byte, 0, 1024), `{"event_type":"order"`...)
	b = wire.AppendField(b, "type", kind)
	b = wire.AppendHexField(b, "id", r.ID[:])
	b = wire.AppendField(b, "owner", r.owner)
	b = wire.AppendField(b, "order_owner", r.owner)
	b = wire.AppendHexField(b, "market", r.market[:])
	b = wire.AppendTokenField(b, "asset_id", r.token)
	b = wire.AppendField(b, "side", wire.SideText(r.Side))
	b = wire.AppendDecimalField(b, "original_size", int64(r.Size), 6)
	b = wire.AppendDecimalField(b, "size_matched", int64(r.Matched), 6)
	b = wire.AppendDecimalField(b, "price", int64(r.Price), 4)
	b = wire.AppendField(b, "outcome", r.outcome)
	b = wire.AppendField(b, "status", [...]string{engine.Live: "LIVE", engine.Matched: "MATCHED",
		engine.Canceled: "CANCELED"}[r.Status])
	if r.Status == engine.Canceled {
		b = wire.AppendField(b, "cancel_reason", wire.CancelReason(r.Reason))
	}
	b = wire.AppendField(b, "order_type", typeText(r.Type))
	b = wire.AppendDecimalField(b, "expiration", int64(r.Expiry)/1000, 0)
	b = wire.AppendKey(b, "associate_trades")
	if x.kind == sceneTook || x.kind == sceneMade {
		b = wire.AppendUUID(append(b, '['), engine.TradeID(s.a.o.JournalID, s.Sequence(), x.trade))
		b = append(b, ']')
	} else {
		b = append(b, "null"...)
	}
	b = wire.AppendDecimalField(b, "created_at", int64(r.Time)/1000, 0)
	b = wire.AppendField(b, "maker_address", r.maker)
	b = wire.AppendDecimalField(b, "timestamp", int64(s.frame.Time), 0)
	return row.Market, b, nil
}

// tradeMessage tells of a trade. Members outside maker_orders describe the taker, but owner and
// trade_owner name the key of the order with which the reader took part.
func (s *Story) tradeMessage(x *scene, status string) (engine.MarketNo, []byte, error) {
	row, err := s.a.o.History.Trade(s.Sequence(), x.trade)
	if err != nil {
		return 0, nil, err
	}
	row.AsMaker = row.Owner != s.owner
	key := row.Key
	for i := 0; row.AsMaker && i < len(row.Makers); i++ {
		if row.Makers[i].Owner == s.owner {
			key = row.Makers[i].Key
			break
		}
	}
	address, _ := s.a.o.Board.Directory.Address(s.owner)
	b := append(make([]byte, 0, 1536), `{"event_type":"trade"`...)
	b, err = s.a.appendTrade(b, &row, s.dialect, &telling{status, s.a.o.KeyID(address, key)})
	b = wire.AppendDecimalField(b, "timestamp", int64(s.frame.Time), 0)
	return row.Market, b, err
}
