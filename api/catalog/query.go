package catalog

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"clobd/engine"
)

// Flag says which rows are wanted by a property.
type Flag int8

// All rows, those that have the property, or those that do not.
const (
	Any Flag = iota
	Yes
	No
)

// Bounds are inclusive: times in unix milliseconds, money in units of 10^-6.
type Bounds struct {
	Min, Max       int64
	HasMin, HasMax bool
}

// limits returns the bounds, with the least or the greatest number for one that is missing.
func (b *Bounds) limits() (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if b.HasMin {
		low = b.Min
	}
	if b.HasMax {
		high = b.Max
	}
	return low, high
}

// Order is a column that pages are sorted by; rows that are equal in the column go by their ids.
type Order uint8

// The orders. ByName is the question of a market, the title of an event or a series, the label of
// a tag.
const (
	ByID Order = iota
	BySlug
	ByName
	ByStart
	ByEnd
	ByCreated
	ByUpdated
	ByVolume
	ByLiquidity
	ByVolumeDay
	ByVolumeWeek
	ByVolumeMonth
	ByVolumeYear
	ByClosed
	ByCompetitive
	ByFeatured // by the place among the featured events
	orderCount // a cursor has four bits for the order

	liveOrders = ByVolumeYear - ByVolume + 1 // these change with the books
)

func (o Order) live() bool { return o >= ByVolume && o <= ByVolumeYear }

// orderNames are the columns by their names in lower case and without underscores.
var orderNames = map[string]Order{
	"": ByID, "id": ByID,
	"slug": BySlug, "ticker": BySlug,
	"title": ByName, "question": ByName, "label": ByName, "name": ByName,
	"startdate": ByStart,
	"enddate":   ByEnd,
	"createdat": ByCreated, "creationdate": ByCreated,
	"updatedat": ByUpdated,
	"volume":    ByVolume, "volumenum": ByVolume,
	"liquidity": ByLiquidity, "liquiditynum": ByLiquidity,
	"volume24hr": ByVolumeDay,
	"volume1wk":  ByVolumeWeek,
	"volume1mo":  ByVolumeMonth,
	"volume1yr":  ByVolumeYear,

	"closedtime":    ByClosed,
	"competitive":   ByCompetitive,
	"featuredorder": ByFeatured,
}

// ParseOrder reads the name of a column, in camel or in snake case; an empty name is ByID. The
// names of figures may end in clob.
func ParseOrder(name string) (Order, bool) {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	order, ok := orderNames[name]
	if figure := orderNames[strings.TrimSuffix(name, "clob")]; !ok && figure.live() {
		return figure, true
	}
	return order, ok
}

// PageQuery says which rows a page has. A list matches any of its values; a value that names no row
// matches nothing. A query of a kind ignores the fields of other kinds.
type PageQuery struct {
	IDs, Slugs             []string
	Conditions             []engine.Condition // of markets
	Tokens                 []engine.Token     // of markets
	EventIDs, EventSlugs   []string           // of markets
	SeriesIDs, SeriesSlugs []string           // of events
	TagIDs, TagSlugs       []string           // of markets and events
	ExcludeTagIDs          []string           // of markets and events
	QuestionIDs, GameIDs   []string           // of markets, in any letter case, as those below
	SportsTypes            []string           // of markets
	Resolutions            []string           // of markets: what an oracle says
	MarketMakers           []string           // of markets: addresses
	AllTags                bool               // all of the tags instead of any
	Recurrence             string             // of series, and of events by their series
	Active, Closed         Flag               // Closed: by the engine or by the source
	Archived               Flag
	Featured, Live         Flag   // of events
	CYOM                   Flag   // of markets and events: made by a user
	EventDate              string // of events: the day of a game, as its record has it
	LeastRewarded          int64  // bounds the least size that earns rewards, of markets; 0: any
	Creator                string // who made a market, in any letter case; an event by its markets
	Volume, Liquidity      Bounds
	Start, End             Bounds
	Order                  Order
	Descending             bool
	Offset, Limit          int    // a Limit of 0 or less is a page without rows
	After                  string // the Next of the page before
	Count                  bool   // count all rows
}

// Page is a part of a list.
type Page[T any] struct {
	Rows []*T
	// Next is the After of the following page; empty on the last page.
	Next string
	// Total is how many rows the list has with those of other pages, if the query asks for a count.
	Total int
}

// ErrCursor is the error of an After that is no Next of a page with the same order.
var ErrCursor = errors.New("the cursor is none of this list")

// rowCursor is the place behind a row in a list of a kind: its number, and its value at that time.
type rowCursor struct {
	kind  uint8
	order Order
	no    int32
	value int64 // of a column of numbers
}

func (c rowCursor) String() string {
	b := []byte{c.kind<<4 | byte(c.order)}
	b = binary.AppendUvarint(b, uint64(c.no))
	b = binary.AppendVarint(b, c.value)
	return base64.RawURLEncoding.EncodeToString(b)
}

// parse reads a cursor of the same kind and order, in a list of so many rows.
func (c *rowCursor) parse(text string, rows int) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < 3 || b[0] != c.kind<<4|byte(c.order) {
		return false
	}
	no, n := binary.Uvarint(b[1:])
	if n <= 0 || no >= uint64(rows) {
		return false
	}
	value, m := binary.Varint(b[1+n:])
	c.no, c.value = int32(no), value
	return m > 0 && 1+n+m == len(b)
}

// filterPart lets the rows of a set pass, or the others.
type filterPart struct {
	set    bitset
	absent bool
}

// filter is what a PageQuery asks of rows.
type filter struct {
	kind  uint8 // of the rows
	parts []filterPart
	// few, if known, are all rows that can pass, in any order.
	few     []int32
	fewOnly bool
	// key names the filter for the cache of lists; timely filters depend on live values.
	key    []byte
	timely bool
	found  *foundCache
	total  int // rows that pass, if counted
}

func (f *filter) passes(no int32) bool {
	for i := range f.parts {
		if f.parts[i].set.has(no) == f.parts[i].absent {
			return false
		}
	}
	return true
}

// need keeps the rows of a set, or with No the others.
func (f *filter) need(want Flag, set bitset, name string) {
	if want == Any {
		return
	}
	f.parts = append(f.parts, filterPart{set: set, absent: want == No})
	f.key = append(append(f.key, name...), '0'+byte(want))
}

// narrow keeps some few rows.
func (f *filter) narrow(rows []int32) {
	if !f.fewOnly {
		f.few, f.fewOnly = rows, true
		return
	}
	among := setOf(rows)
	f.few = slices.DeleteFunc(f.few, func(no int32) bool { return !among.has(no) })
}

// note adds a text to the key.
func (f *filter) note(text string) { f.key = append(strconv.AppendQuote(f.key, text), ',') }

// only keeps the rows of the set of a word; "" keeps all.
func (f *filter) only(name, word string, set func(word string) bitset) {
	if word != "" {
		f.need(Yes, set(word), name)
		f.note(word)
	}
}

// maxWalk is how many rows a page steps over before it makes and keeps the whole filtered list.
const maxWalk = 4096

// piece is the part of a list that a page shows: want rows, after those skipped behind a place.
type piece struct {
	descending bool
	at         rowCursor
	skip, want int
}

// page returns the rows that a query asks for, and the cursor behind them. The error is ErrCursor.
func (s *sorted) page(q *PageQuery, f *filter) (list []int32, next string, err error) {
	p := piece{q.Descending, rowCursor{f.kind, q.Order, None, 0}, max(q.Offset, 0), q.Limit + 1}
	if q.After != "" && !p.at.parse(q.After, s.count) {
		return nil, "", ErrCursor
	}
	if q.Limit <= 0 {
		return nil, "", nil
	}
	switch {
	case len(f.few) > maxWalk: // to look through all rows costs less than to sort these
		f.parts = append(f.parts, filterPart{set: setOf(f.few)})
		list = s.cut(f.counted(s.filtered(f)), &p)
	case f.fewOnly:
		f.few = slices.DeleteFunc(f.few, func(no int32) bool { return !f.passes(no) })
		slices.SortFunc(f.few, s.compare)
		list = s.cut(f.counted(slices.Compact(f.few)), &p)
	case len(f.parts) == 0:
		list = s.cut(f.counted(s.list()), &p)
	default:
		f.key = append(f.key, byte(q.Order))
		if whole, ok := f.found.get(f.key); ok {
			list = s.cut(f.counted(whole), &p)
			break
		}
		var done bool
		if !q.Count {
			list, done = s.walk(f, &p)
		}
		if !done {
			whole := s.filtered(f)
			f.found.put(f.key, whole)
			list = s.cut(f.counted(whole), &p)
		}
	}
	if len(list) > q.Limit {
		list = list[:q.Limit]
		last := list[q.Limit-1]
		next = rowCursor{f.kind, q.Order, last, s.value(last)}.String()
	}
	return list, next, nil
}

// counted notes how many rows a whole list has.
func (f *filter) counted(whole []int32) []int32 {
	f.total = len(whole)
	return whole
}

// place returns where the rows of a piece begin in a sorted list; descending, where they end.
func (s *sorted) place(list []int32, p *piece) int {
	if p.at.no == None {
		if p.descending {
			return len(list)
		}
		return 0
	}
	i, found := slices.BinarySearchFunc(list, p.at, s.compareAt)
	if found && !p.descending {
		i++
	}
	return i
}

// cut copies a piece of a sorted list, in the direction of the piece.
func (s *sorted) cut(list []int32, p *piece) []int32 {
	i := s.place(list, p)
	if !p.descending {
		list = list[min(i+p.skip, len(list)):]
		return slices.Clone(list[:min(p.want, len(list))])
	}
	list = list[:max(i-p.skip, 0)]
	list = slices.Clone(list[max(len(list)-p.want, 0):])
	slices.Reverse(list)
	return list
}

// walk finds the rows that pass by stepping through the list. It gives up after maxWalk rows.
func (s *sorted) walk(f *filter, p *piece) (list []int32, done bool) {
	all := s.list()
	i, step := s.place(all, p), 1
	if p.descending {
		i, step = i-1, -1
	}
	skip := p.skip
	for n := 0; i >= 0 && i < len(all) && len(list) < p.want; i += step {
		if n++; n > maxWalk {
			return nil, false
		}
		if f.passes(all[i]) {
			if skip--; skip < 0 {
				list = append(list, all[i])
			}
		}
	}
	return list, true
}

// filtered returns all rows that pass.
func (s *sorted) filtered(f *filter) []int32 {
	var list []int32
	for _, no := range s.list() {
		if f.passes(no) {
			list = append(list, no)
		}
	}
	return list
}

// compareIDs orders ids: numbers by value, then the others as texts.
func compareIDs(an, bn uint64, a, b string) int {
	return cmp.Or(cmp.Compare(an, bn), cmp.Compare(a, b))
}
