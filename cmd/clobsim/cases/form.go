package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// scenario is one item of a file of scenarios. Names and remarks that nothing depends on are not
// read; what is in steps and expect must be known in full.
type scenario struct {
	ID       string            `json:"id"`
	Kind     string            `json:"kind"`
	PriceMap priceMap          `json:"price_map"`
	SizeMul  int64             `json:"size_mul"`
	Steps    []json.RawMessage `json:"steps"`
	settlement
}

// priceMap says how to make probabilities of a file's prices.
type priceMap struct {
	Kind    string            `json:"kind"`
	Decimal string            `json:"decimal"`
	Map     map[string]string `json:"map"`
}

// step is one operation of a book scenario. Which fields it has depends on Op.
type step struct {
	Op      string `json:"op"`
	ID      string `json:"id"`
	Account string `json:"account"`
	Symbol  string `json:"symbol"`
	Note    string `json:"note"`

	Side   string `json:"side"`
	Type   string `json:"type"`
	TIF    string `json:"tif"`
	Price  *int64 `json:"price"`
	Size   *int64 `json:"size"`
	Budget int64  `json:"budget"`
	Versus int64  `json:"budget_vs_exact"`
	Delta  int64  `json:"size_delta"`

	Bids      json.RawMessage `json:"bids"` // levels, or their number
	Asks      json.RawMessage `json:"asks"`
	Complete  bool            `json:"complete"`
	BidsEnd   bool            `json:"bids_end"`
	AsksEnd   bool            `json:"asks_end"`
	Head      []string        `json:"head"`
	Remaining *int64          `json:"remaining"`
	Exists    *bool           `json:"exists"`

	Balances map[string]int64 `json:"balances"`
	Orders   *[]openOrder     `json:"orders"`

	Expect *expect `json:"expect"`
}

// openOrder is a line of an account's list of orders.
type openOrder struct {
	ID      string `json:"id"`
	Price   int64  `json:"price,string"`
	Size    int64  `json:"size,string"`
	Filled  int64  `json:"filled,string"`
	Reserve int64  `json:"reservePrice,string"`
	Side    string `json:"side"`
}

// expect is what a place, cancel or replace must come to.
type expect struct {
	State     string           `json:"state"`
	Or        string           `json:"or"`
	Reason    string           `json:"reason"`
	Matched   *bool            `json:"matched"`
	Traded    *int64           `json:"matched_size"`
	Filled    *int64           `json:"filled"`
	Unfilled  *int64           `json:"unfilled"`
	Remaining *int64           `json:"remaining"`
	Trades    []trade          `json:"trades"` // nil: not stated
	Fills     map[string]taken `json:"fills"`
}

// trade is one fill, named by its maker, in source units.
type trade struct {
	Maker string `json:"maker"`
	Price int64  `json:"price"`
	Size  int64  `json:"size"`
	State string `json:"maker_state"`
}

// taken is what one order got in one step, in source units.
type taken struct {
	Size int64 `json:"size"`
	Cost int64 `json:"cost"`
}

// strict reads one JSON value into v and refuses names that v does not have.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// Scenarios replays a JSON array of scenarios, gzipped or not, and calls report with one line for
// each that disagrees or is skipped, after name. An error means that the file is malformed: what
// was counted before it is returned with it.
func Scenarios(name string, r io.Reader, report func(line string)) (Tally, error) {
	var t Tally
	plain, err := inflate(r)
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	b, err := io.ReadAll(plain)
	if err != nil {
		return t, fmt.Errorf("%s: %w", name, err)
	}
	var list []scenario
	if err := json.Unmarshal(b, &list); err != nil {
		return t, fmt.Errorf("%s: not an array of scenarios: %w", name, err)
	}
	if len(list) == 0 {
		return t, fmt.Errorf("%s: no scenario in it", name)
	}
	for i := range list {
		s := &list[i]
		if s.ID == "" {
			return t, fmt.Errorf("%s: scenario %d has no id", name, i+1)
		}
		if err := t.count(name+": "+s.ID, s.run(), report); err != nil {
			return t, err
		}
	}
	return t, nil
}

// run replays one scenario.
func (s *scenario) run() error {
	switch s.Kind {
	case "book", "book+balance":
		return s.runBook()
	case "settlement":
		return s.settlement.run()
	}
	return fmt.Errorf("unknown kind %q", s.Kind)
}

// read are the steps of a book scenario.
func (s *scenario) read() ([]step, error) {
	if len(s.Steps) == 0 {
		return nil, errors.New("no steps")
	}
	steps := make([]step, len(s.Steps))
	for i, raw := range s.Steps {
		if err := strict(raw, &steps[i]); err != nil {
			return nil, fmt.Errorf("operation %d: %w", i+1, err)
		}
	}
	return steps, nil
}
