package catalog

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"clobd/api/wire/scan"
)

// traits are what few filters ask of a market, in lower case. Equal ones are kept once: nearly all
// markets have the same few.
type traits struct {
	game, sport, resolution, maker string
	cyom                           bool
}

// maxTraits bounds the traits that a parser remembers.
const maxTraits = 1 << 12

// traits reads the traits of a market; nil if it has none.
func (p *parser) traits() *traits {
	t := traits{game: p.word(fieldGame), sport: p.word(fieldSport),
		resolution: p.word(fieldResolution), maker: p.word(fieldMaker), cyom: p.flag(fieldCYOM)}
	if t == (traits{}) {
		return nil
	}
	known := p.known[t]
	if known == nil {
		if known = &t; len(p.known) < maxTraits {
			p.known[t] = known
		}
	}
	return known
}

// word reads a member that is compared without letter case; empty if it is no text and no number.
func (p *parser) word(f recordKey) string {
	text, _ := scan.Text(p.values[f])
	return lower(text)
}

// unfeatured is the place of events without one: behind all that have one.
const unfeatured = math.MaxInt32

// place reads a whole number from 0.
func (p *parser) place(f recordKey) int64 {
	if text, _ := scan.Text(p.values[f]); text != "" {
		return min(max(p.money(f)/1e6, 0), unfeatured)
	}
	return unfeatured
}

// filterTraits keeps the markets whose traits a query names.
func filterTraits(c *Catalog, f *filter, q *PageQuery) {
	of := func(read func(*traits) string) func(*Market) string {
		return func(m *Market) string {
			if m.traits == nil {
				return ""
			}
			return read(m.traits)
		}
	}
	for _, by := range [...]struct {
		name   string
		values []string
		of     func(*Market) string
	}{
		{"question", q.QuestionIDs, func(m *Market) string { return m.question }},
		{"game", q.GameIDs, of(func(t *traits) string { return t.game })},
		{"sport", q.SportsTypes, of(func(t *traits) string { return t.sport })},
		{"uma", q.Resolutions, of(func(t *traits) string { return t.resolution })},
		{"maker", q.MarketMakers, of(func(t *traits) string { return t.maker })},
	} {
		f.among(c, by.name, by.values, by.of)
	}
	if q.CYOM != Any {
		f.need(q.CYOM, c.found.set("m cyom", func() bitset {
			return chosen(&c.Markets, func(m *Market) bool { return m.traits != nil && m.traits.cyom })
		}), "y")
	}
	if least := q.LeastRewarded; least != 0 {
		f.only("rewards", strconv.FormatInt(least, 10), func(text string) bitset {
			return c.found.set("m rewards "+text, func() bitset {
				return chosen(&c.Markets, func(m *Market) bool { return m.rewards >= least })
			})
		})
	}
}

// among keeps the markets of which a text is one of some values, in any letter case.
func (f *filter) among(c *Catalog, name string, values []string, of func(*Market) string) {
	if len(values) == 0 {
		return
	}
	wanted := map[string]bool{}
	for _, v := range values {
		wanted[lower(v)] = true
	}
	words := make([]string, 0, len(wanted))
	for w := range wanted {
		words = append(words, w)
	}
	slices.Sort(words)
	f.only(name, strings.Join(words, "\x00"), func(all string) bitset {
		return c.found.set("m "+name+" "+all, func() bitset {
			return chosen(&c.Markets, func(m *Market) bool {
				text := of(m)
				return text != "" && wanted[text]
			})
		})
	})
}

// chosen returns the rows that pass a test.
func chosen[T any](rows *Rows[T], test func(*T) bool) (set bitset) {
	for no := range int32(rows.Len()) {
		if test(rows.At(no)) {
			set.set(no)
		}
	}
	return set
}

// filterEventTraits keeps the events that are live, or user-made, or of one day.
func filterEventTraits(c *Catalog, f *filter, q *PageQuery) {
	for _, by := range [...]struct {
		name string
		want Flag
		of   func(*Event) bool
	}{
		{"live", q.Live, func(e *Event) bool { return e.live }},
		{"cyom", q.CYOM, func(e *Event) bool { return e.cyom }},
	} {
		if by.want != Any {
			set := c.found.set("e "+by.name, func() bitset { return chosen(&c.Events, by.of) })
			f.need(by.want, set, by.name)
		}
	}
	f.only("day", q.EventDate, func(day string) bitset {
		return c.found.set("e day "+day, func() bitset {
			return chosen(&c.Events, func(e *Event) bool { return e.date == day })
		})
	})
}
