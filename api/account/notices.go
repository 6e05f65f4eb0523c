package account

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/api/wire"
	"clobd/engine"
	"clobd/journal/history"
)

// Notices tell what happened to the caller without his doing, and his fills, newest first.
const (
	noticeTime = 48 * time.Hour
	maxNotices = 100 // in an answer
	maxLooks   = 500 // positions that are read to find out whose a resolved market is
)

// The types of notices, in the numbers of the public clients.
const (
	cancelNotice     = 1
	fillNotice       = 2
	resolutionNotice = 4
)

// herald answers about notices.
type herald struct {
	*Account
	dropped drops
}

func newHerald(a *Account) *herald {
	return &herald{a, drops{of: make(map[engine.WalletNo][]uint64)}}
}

// notice is one of them; of what and about are set by its kind.
type notice struct {
	kind  uint64
	id    uint64
	at    engine.Time
	trade *history.TradeRow
	other *history.NoticeRow
}

// noticeID numbers a notice: by the Command, the Event or trade in it, and the kind. Clients read
// ids as float64, so that there is room for 53 bits; numbers repeat after 2^34 Commands, which take
// longer than notices last.
func noticeID(seq engine.Sequence, index uint32, kind uint64) uint64 {
	const indexBits, kindBits, bits = 17, 2, 53 // no Command cancels more than 2^16 orders
	return (uint64(seq)<<(indexBits+kindBits) | uint64(index)<<kindBits | kind>>1) & (1<<bits - 1)
}

// notices answers GET /notifications.
func (a *herald) notices(_ *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	all, refused := a.listNotices(c)
	if refused != nil {
		return nil, refused
	}
	b := append(make([]byte, 0, 2+1024*len(all)), '[')
	for i := range all {
		n := &all[i]
		var err error
		if b, err = a.appendNotice(append(wire.AppendComma(b), '{'), n, c); err != nil {
			return nil, wire.Internal(a.o.Log, "describe notice", fmt.Sprint(n.id), err)
		}
		b = wire.CloseObject(b)
	}
	return append(b, ']'), nil
}

// dropNotices answers DELETE /notifications. It says which ids were those of notices.
func (a *herald) dropNotices(ctx *fasthttp.RequestCtx, c *caller) ([]byte, *wire.Refusal) {
	named := strings.Split(wire.Parameter(ctx, "ids"), ",")
	if strings.Trim(wire.Parameter(ctx, "ids"), ", ") == "" || len(named) > maxDrops {
		return nil, errNoIDs
	}
	all, refused := a.listNotices(c)
	if refused != nil {
		return nil, refused
	}
	b := []byte(`{"deleted":[`)
	for _, text := range named {
		id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		listed := func(n notice) bool { return n.id == id }
		if err != nil || !a.dropped.has(c.no, id) && !slices.ContainsFunc(all, listed) {
			continue
		}
		a.dropped.add(c.no, id)
		b = strconv.AppendUint(wire.AppendComma(b), id, 10)
	}
	return append(b, ']', '}'), nil
}

// listNotices finds the newest notices that the caller has not dropped.
func (a *herald) listNotices(c *caller) ([]notice, *wire.Refusal) {
	if c.no == 0 {
		return nil, nil
	}
	since := engine.Time(a.o.Now().Add(-noticeTime).UnixMilli())
	most := maxNotices + a.dropped.count(c.no)
	fills, err := a.fills(c, since, most)
	var others []notice
	if err == nil {
		others, err = a.doings(c, since, most)
	}
	if err != nil {
		return nil, wire.Internal(a.o.Log, "list notices", c.address.Hex(), err)
	}
	dropped := func(n notice) bool { return a.dropped.has(c.no, n.id) }
	all := pick(slices.DeleteFunc(fills, dropped), slices.DeleteFunc(others, dropped))
	slices.SortFunc(all, newestFirst)
	return all, nil
}

func newestFirst(x, y notice) int {
	return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(y.id, x.id))
}

// pick takes the newest notices of both kinds, maxNotices in all. Many fills hide no cancel, nor
// the other way round: either kind has half of the room, and what the other one leaves.
func pick(fills, others []notice) []notice {
	slices.SortFunc(fills, newestFirst)
	slices.SortFunc(others, newestFirst)
	const half = maxNotices / 2
	room := max(half, maxNotices-len(others))
	fills = fills[:min(room, len(fills))]
	return append(fills, others[:min(maxNotices-len(fills), len(others))]...)
}

// fills are the trades of the caller.
func (a *herald) fills(c *caller, since engine.Time, most int) (all []notice, err error) {
	rows, _, err := a.o.History.Trades(c.no, &history.Filter{After: max(since-1, 1)},
		history.Page{Limit: most})
	for i := range rows {
		r := &rows[i]
		all = append(all, notice{fillNotice, noticeID(r.Sequence, r.Index, fillNotice), r.Time, r, nil})
	}
	return all, err
}

// doings are what others did: orders of the caller that they cancelled, markets in which he holds
// or held something that were resolved.
func (a *herald) doings(c *caller, since engine.Time, most int) (all []notice, err error) {
	rows, err := a.o.History.Notices(c.no, since, most)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		id := noticeID(r.Sequence, r.Index, cancelNotice)
		all = append(all, notice{cancelNotice, id, r.Time, nil, r})
	}
	wallets := append([]engine.WalletNo{c.no}, c.wallets...)
	wallets = wallets[:min(len(wallets), maxLooks)]
	if rows, err = a.o.History.Notices(0, since, maxLooks/len(wallets)); err != nil {
		return nil, err
	}
	for i := range rows {
		r := &rows[i]
		for _, w := range wallets {
			both, err := a.o.History.Position(w, r.Market)
			if err != nil {
				return nil, err
			}
			if both[0].Bought+both[1].Bought > 0 {
				id := noticeID(r.Sequence, r.Index, resolutionNotice)
				all = append(all, notice{resolutionNotice, id, r.Time, nil, r})
				break
			}
		}
	}
	return all, nil
}

// appendNotice appends the five members that clients read. The payload is a trade or an order as in
// the lists, or a market with what it pays.
func (a *herald) appendNotice(b []byte, n *notice, c *caller) ([]byte, error) {
	b = strconv.AppendUint(wire.AppendKey(b, "id"), n.id, 10)
	b = strconv.AppendUint(wire.AppendKey(b, "type"), n.kind, 10)
	b = strconv.AppendInt(wire.AppendKey(b, "timestamp"), int64(n.at), 10)
	b = wire.AppendField(b, "owner", a.o.KeyID(c.address, 0))
	b = append(wire.AppendKey(b, "payload"), '{')
	var err error
	switch n.kind {
	case fillNotice:
		b, err = a.appendTrade(b, n.trade, c.dialect, nil)
	case cancelNotice:
		b, err = a.appendCanceled(b, n.other, c)
	default:
		b, err = a.appendResolved(b, n.other)
	}
	return append(b, '}'), err
}

func (a *herald) appendCanceled(b []byte, r *history.NoticeRow, c *caller) ([]byte, error) {
	row, known, err := a.o.History.Order(r.Order)
	if err != nil || !known {
		return b, cmp.Or(err, fmt.Errorf("order %x is unknown to the index", r.Order))
	}
	o, err := a.describe(&row, c.address)
	if err != nil {
		return b, err
	}
	return wire.AppendField(o.appendRecord(b, c.dialect), "reason", wire.CancelReason(r.Reason)), nil
}

func (a *herald) appendResolved(b []byte, r *history.NoticeRow) ([]byte, error) {
	m := a.o.Board.Directory.Market(r.Market)
	if m == nil {
		return b, fmt.Errorf("market %d is not published", r.Market)
	}
	catalog := a.o.Catalog()
	b = wire.AppendHexField(b, "market", m.Condition[:])
	question, slug := "", ""
	if described := catalog.Market(m.Condition); described != nil {
		question, slug = described.Question, described.Slug
	}
	b = wire.AppendField(b, "question", question)
	b = wire.AppendField(b, "market_slug", slug)
	winner := ""
	switch r.Payout {
	case engine.PriceOne:
		winner = catalog.Label(m.Condition, 0)
	case 0:
		winner = catalog.Label(m.Condition, 1)
	}
	b = wire.AppendField(b, "outcome", winner) // empty if both are paid
	b = append(wire.AppendKey(b, "payouts"), `["`...)
	b = append(engine.AppendDecimal(b, int64(r.Payout), 4), `","`...)
	return append(engine.AppendDecimal(b, int64(engine.PriceOne-r.Payout), 4), `"]`...), nil
}

// Dropped notices are kept in memory only: a restart shows them again.
const (
	maxDrops    = 1_000 // of an owner
	maxDroppers = 1_000 // owners
)

// drops are the notices that owners dropped. The newest stay.
type drops struct {
	mutex  sync.Mutex
	of     map[engine.WalletNo][]uint64
	oldest []engine.WalletNo // in the order of their first drop
}

func (d *drops) has(owner engine.WalletNo, id uint64) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return slices.Contains(d.of[owner], id)
}

func (d *drops) count(owner engine.WalletNo) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return len(d.of[owner])
}

func (d *drops) add(owner engine.WalletNo, id uint64) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	ids, known := d.of[owner]
	if slices.Contains(ids, id) {
		return
	}
	if !known {
		if len(d.oldest) == maxDroppers {
			delete(d.of, d.oldest[0])
			d.oldest = slices.Delete(d.oldest, 0, 1)
		}
		d.oldest = append(d.oldest, owner)
	}
	if len(ids) == maxDrops {
		ids = slices.Delete(ids, 0, 1)
	}
	d.of[owner] = append(ids, id)
}
