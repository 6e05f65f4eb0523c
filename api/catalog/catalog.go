package catalog

import (
	"hash/fnv"
	"log/slog"
	"strconv"

	"clobd/engine"
)

// Options say where a catalog's markets go.
type Options struct {
	// List makes conditions tradable and returns once they durably are. It is called with at most
	// listChunk listings at a time, in the order of the file, and must be idempotent by condition.
	// Single listings that are refused come back as a *RefusedError; any other error ends the load.
	// nil lists nothing and counts what would have been.
	List func([]engine.Listing) error
	// Log, if set, hears of each bad record as it is met (the first maxProblems of them).
	Log *slog.Logger
}

// RefusedError says which listings of a chunk were refused. The others of the chunk are listed.
type RefusedError struct {
	// Why is the reason by condition.
	Why map[engine.Condition]string
}

// Error counts the refused listings.
func (e *RefusedError) Error() string {
	return strconv.Itoa(len(e.Why)) + " listings refused"
}

// Catalog describes markets: what a condition asks, what its outcomes are called, which event it
// belongs to. It never changes once made; a newer one replaces it whole.
type Catalog struct {
	// Markets are all the described markets in the order of the file, tradable or not.
	Markets []*Market
	// Events are the events that were read, in the order of the file.
	Events []*Event

	byCondition map[engine.Condition]*Market
}

// Market is the description of one condition.
type Market struct {
	ID        string // the catalog's own id, may be empty
	Condition engine.Condition
	Question  string
	Slug      string
	// Outcomes are the labels by outcome index; two if the market is tradable.
	Outcomes []string
	Event    *Event
	// Skipped says why the market is not tradable here; empty: it was listed.
	Skipped Reason

	tokens [2]engine.Token
	line   int
}

// Event is what a group of markets has in common.
type Event struct {
	ID    string
	Slug  string
	Title string
	// Group is the event's number in the engine: the id itself if it is a decimal number below 2^63,
	// else a hash of it with the highest bit set.
	Group uint64
}

// Empty is a catalog that describes nothing.
func Empty() *Catalog { return &Catalog{byCondition: map[engine.Condition]*Market{}} }

// Market is the description of a condition, nil if there is none. A nil Catalog describes nothing.
func (c *Catalog) Market(cond engine.Condition) *Market {
	if c == nil {
		return nil
	}
	return c.byCondition[cond]
}

// Label is what an outcome is called: the catalog's word if there is one, else Yes for outcome 0
// and No for outcome 1.
func (c *Catalog) Label(cond engine.Condition, o engine.Outcome) string {
	if m := c.Market(cond); m != nil && int(o) < len(m.Outcomes) {
		return m.Outcomes[o]
	}
	if o == 0 {
		return "Yes"
	}
	return "No"
}

// group numbers an event for the engine.
func group(id string) uint64 {
	const high = 1 << 63
	if n, err := strconv.ParseUint(id, 10, 63); err == nil {
		return n
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() | high
}
