package gamma

import (
	"sync"
	"time"

	"clobd/api/catalog"
	"clobd/engine"
	"clobd/engine/view"
	"clobd/journal/history"
)

// Values tells the volumes, the liquidity and the prices of markets. It caches the sums over a book
// until the book changes. Any number of goroutines may use a Values.
type Values struct {
	board   *view.Board
	history *history.History
	now     func() time.Time
	kept    sync.Map // engine.MarketNo → worth
}

// NewValues makes Values of what is published and of its index. The windows of the volume end at
// the time of the clock now; nil: time.Now.
func NewValues(board *view.Board, history *history.History, now func() time.Time) *Values {
	if now == nil {
		now = time.Now
	}
	return &Values{board: board, history: history, now: now}
}

// worth is the volume and the liquidity of a market as of a Snapshot.
type worth struct {
	sequence          engine.Sequence
	volume, liquidity int64 // in base units
	windows           catalog.Windows
	hour              int64           // since 1970, of windows
	before            catalog.Windows // the part of volume that was traded before each window
	looked            bool            // before is known
}

// windowHours are the lengths of the volume's windows, each of which begins at a full hour.
var windowHours = [...]int64{24, 7 * 24, 30 * 24, 365 * 24}

// Live is the worth of a condition, for catalog.Options. ok is false if the condition does not
// trade here or the index fails.
func (v *Values) Live(c engine.Condition) (live catalog.Live, ok bool) {
	m := v.board.Directory.Condition(c)
	if m == nil {
		return live, false
	}
	w, err := v.of(m)
	return catalog.Live{Volume: w.volume, Liquidity: w.liquidity, Windows: w.windows,
		Closed: ended(m)}, err == nil
}

// Volume is what takers paid in a market so far, in base units. The error is that of the index.
func (v *Values) Volume(m *view.Market) (int64, error) {
	w, err := v.of(m)
	return w.volume, err
}

// Price is what outcome 0 of a market is worth, in 1/100,000: its payout, else the midpoint, else
// the last trade, else 0.
func (v *Values) Price(m *view.Market) int64 {
	return price(v.board.Condition(m.Condition), m)
}

func price(s *view.Snapshot, m *view.Market) int64 {
	if m.State == engine.Settled {
		return 10 * int64(m.Payout)
	}
	if bid, ask := s.Best(0); bid != 0 && ask != 0 {
		return 5 * (int64(bid) + int64(ask))
	}
	p, _, _ := s.Last(0)
	return 10 * int64(p)
}

// Accepts reports whether a market takes orders right now.
func Accepts(board *view.Board, m *view.Market) bool {
	return m.State == engine.Open && m.Mode != engine.CancelOnly &&
		board.Directory.Mode() != engine.CancelOnly
}

func ended(m *view.Market) bool { return m.State == engine.Closed || m.State == engine.Settled }

// hour is the hour, counted from 1970, with which the windows end.
func (v *Values) hour() int64 { return v.now().Unix() / 3600 }

// of is the worth of a market. The error is that of the index.
func (v *Values) of(m *view.Market) (w worth, err error) {
	s := v.board.Condition(m.Condition)
	if s == nil {
		return w, nil
	}
	_, _, traded := s.Last(0)
	if !traded && s.Depth(0, engine.Buy)+s.Depth(0, engine.Sell) == 0 {
		return w, nil
	}
	hour := v.hour()
	if kept, ok := v.kept.Load(m.No); ok && kept.(worth).hour == hour {
		if w = kept.(worth); w.sequence == s.Sequence {
			return w, nil
		}
	}
	w.sequence, w.hour, w.liquidity = s.Sequence, hour, 0
	for _, side := range [...]engine.Side{engine.Buy, engine.Sell} {
		s.Levels(0, side, func(p engine.Price, size engine.Size) bool {
			w.liquidity += int64(engine.Cost(size, p))
			return true
		})
	}
	// Volumes are cached only if the index is not behind the book.
	current := v.history.Sequence() >= s.Sequence
	if traded {
		if err := v.volumes(m.No, &w); err != nil {
			return w, err
		}
	}
	if current {
		v.kept.Store(m.No, w)
	}
	return w, nil
}

// volumes looks up what takers paid in a market. The sums before the windows of this hour are
// looked up once: they do not change any more.
func (v *Values) volumes(no engine.MarketNo, w *worth) error {
	if !w.looked {
		var from [len(windowHours)]engine.Time
		for i, hours := range windowHours {
			from[i] = engine.Time(w.hour-hours) * 3_600_000
		}
		before, err := v.history.VolumesUntil(no, from[:])
		if err != nil {
			return err
		}
		for i := range before {
			w.before[i] = int64(before[i])
		}
		w.looked = true
	}
	volume, _, err := v.history.Volume(no)
	w.volume = int64(volume)
	for i := range w.windows {
		w.windows[i] = w.volume - w.before[i]
	}
	return err
}
