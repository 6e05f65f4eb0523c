package catalog

import "clobd/engine"

// None is the number of no row.
const None int32 = -1

// Windows are the volumes of the last day, week, month (30 days) and year (365 days), in units of
// 10^-6; 0 is unknown.
type Windows [4]int64

// Identity is what rows of all kinds have in common. A newer record makes a new row.
type Identity struct {
	// No is the row's number among those of its kind. It stays the same for ever, also over restarts.
	No int32
	// ID is the catalog's own id; empty for a market of which only the order book's record is known.
	ID string
	// Created and Updated are unix milliseconds; 0 is absent.
	Created, Updated int64
	// Partial is known only from a record that names it, as an event from a market's.
	Partial bool

	number uint64 // the id as a number, for orders
	record location
	load   uint32 // that brought it
}

// Market describes one condition.
type Market struct {
	Identity
	// EventNo is the row of its event in Catalog.Events, or None.
	EventNo   int32
	Condition engine.Condition
	// Tokens are the tokens by outcome index; zero unless there are exactly two.
	Tokens   [2]engine.Token
	Question string
	Slug     string
	Icon     string // an address, may be empty
	// Outcomes are the labels by outcome index; two if the market is tradable.
	Outcomes []string
	// Start and End are unix milliseconds; 0 is absent.
	Start, End int64
	// Volume, Liquidity and Windows are the source's, in units of 10^-6.
	Volume, Liquidity int64
	Windows           Windows
	// Group is the event's number in the engine, Tick and MinSize the rules that the record asks for.
	Group   uint64
	Tick    engine.Price
	MinSize engine.Size
	// Active, Closed, Archived and Accepting are the source's.
	Active, Closed, Archived, Accepting bool
	NegRisk                             bool
	// BookOnly has no record of the catalog, HasBook has one of the order book.
	BookOnly, HasBook bool
	// Skipped says why the market is not tradable here; empty: it was listed.
	Skipped Reason

	question    string // its question's id, in lower case
	traits      *traits
	closedAt    int64 // unix milliseconds; 0 is absent
	rewards     int64 // the least size that earns any, in units of 10^-6
	competitive int64 // in units of 10^-6

	tags     []int32  // its own; nil: the tags of its event count
	makers   [2]int32 // who made it, as rows of names; None
	book     location
	line     int32
	bookLoad uint32
}

// Event is what a group of markets has in common.
type Event struct {
	Identity
	Ticker, Slug, Title string
	// Group is the event's number in the engine: the id itself if it is a decimal number below 2^63,
	// else a hash of it with the highest bit set.
	Group uint64
	// Start and End are unix milliseconds; 0 is absent.
	Start, End int64
	// Volume, Liquidity and Windows are the source's, in units of 10^-6.
	Volume, Liquidity                  int64
	Windows                            Windows
	Active, Closed, Archived, Featured bool
	NegRisk                            bool
	// Tagged reports whether the record has a list of tags, perhaps an empty one.
	Tagged bool

	live, cyom    bool
	date          string // the day of a game, such as 2026-01-31
	closedAt      int64  // unix milliseconds; 0 is absent
	competitive   int64  // in units of 10^-6
	featuredOrder int64  // among the featured events; unfeatured

	markets []int32
	tags    []int32
	series  []int32
}

// Series is what events that follow each other have in common.
type Series struct {
	Identity
	Ticker, Slug, Title string
	// Type and Recurrence are words of the source, such as single and daily.
	Type, Recurrence         string
	Start                    int64 // unix milliseconds; 0 is absent
	Volume, Liquidity        int64 // the source's, in units of 10^-6
	Windows                  Windows
	Active, Closed, Archived bool

	events []int32
}

// Tag is a word for a kind of event.
type Tag struct {
	Identity
	Label, Slug string

	events  []int32
	markets []int32 // that name the tag themselves
}

// location is where a record lies in the log, and the hash of its members.
type location struct {
	at   int64
	hash uint64
	size uint32 // with its head; 0: there is no record
}
