package limits

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clobd/engine"
)

// The bounds of a limits file.
const (
	FileMost = 4 << 20 // bytes: 50,000 wallets

	limitMost   = 100_000_000
	periodLeast = time.Second
	periodMost  = 24 * time.Hour
	factorMost  = 1000
	tiersMost   = 200
	wrongMost   = 10 // wrong lines that an error names
)

// Parse reads a limits file and returns the limits that it sets; all others are the standard ones.
// The error names each wrong line and what to write.
//
//	# requests / period, by the names in RateLimit headers
//	limit  book         400/10s
//	tier   maker        x4                  all windows of an account four times as large
//	tier   maker        order-burst 20000/10s
//	wallet 0x8ba1f1…72  maker
func Parse(text string) (*Policy, error) {
	f := &file{policy: Standard(), seen: make(map[string]int)}
	if len(text) > FileMost {
		return nil, fmt.Errorf("the file has %d bytes, at most %d are read", len(text), FileMost)
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := f.read(n, words); err != nil {
			f.wrong = append(f.wrong, fmt.Errorf("line %d: %w", n, err))
		}
		if len(f.wrong) == wrongMost {
			break
		}
	}
	f.finish()
	return f.policy, errors.Join(f.wrong...)
}

// file is a limits file that is being read.
type file struct {
	policy  *Policy
	seen    map[string]int // what a line has set, and which
	tiers   []wish
	wallets []holder
	wrong   []error
}

// wish is a tier as its lines say it.
type wish struct {
	name    string
	factor  float64
	windows map[int]Window // by row of accountTable
}

// holder is a wallet's line.
type holder struct {
	line   int
	wallet engine.Address
	tier   string
}

func (f *file) read(n int, words []string) error {
	switch {
	case words[0] == "limit" && len(words) == 3:
		return f.limit(n, words[1], words[2])
	case words[0] == "tier" && (len(words) == 3 || len(words) == 4):
		return f.tier(n, words[1], words[2:])
	case words[0] == "wallet" && len(words) == 3:
		return f.wallet(n, words[1], words[2])
	}
	return errors.New(`write "limit NAME REQUESTS/PERIOD", "tier NAME xFACTOR", "tier NAME LIMIT ` +
		`REQUESTS/PERIOD" or "wallet ADDRESS TIER"`)
}

// once notes what line n sets. It may be set once.
func (f *file) once(n int, what string) error {
	if before, ok := f.seen[what]; ok {
		return fmt.Errorf("%s is set in line %d already: delete one of the two", what, before)
	}
	f.seen[what] = n
	return nil
}

func (f *file) limit(n int, name, text string) error {
	if err := f.once(n, "limit "+name); err != nil {
		return err
	}
	w, err := parseWindow(text)
	if err != nil {
		return err
	}
	if i := find(addressTable[:], name); i >= 0 && i != gifts {
		f.policy.address[i] = w
	} else if i := find(accountTable[:], name); i >= 0 {
		f.policy.tiers[0].account[i] = w
	} else if i := find(pairTable[:], name); i >= 0 {
		f.policy.pair[i] = w
	} else {
		return fmt.Errorf("there is no limit %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

func (f *file) tier(n int, name string, words []string) error {
	if name == standard {
		return fmt.Errorf("%s is the tier of all who are in no other: set its limits with limit",
			standard)
	}
	i := slices.IndexFunc(f.tiers, func(d wish) bool { return d.name == name })
	if i < 0 {
		if err := checkName(name); err != nil {
			return err
		}
		if i = len(f.tiers); i == tiersMost {
			return fmt.Errorf("there are %d tiers already, which is the most", i)
		}
		f.tiers = append(f.tiers, wish{name: name, factor: 1, windows: make(map[int]Window)})
	}
	if len(words) == 1 {
		if err := f.once(n, "tier "+name+" x"); err != nil {
			return err
		}
		text, ok := strings.CutPrefix(words[0], "x")
		factor, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || !(factor > 0 && factor <= factorMost) {
			return fmt.Errorf("%q is no factor: write x and a number up to %d, such as x4 or x0.5",
				words[0], factorMost)
		}
		f.tiers[i].factor = factor
		return nil
	}
	row := find(accountTable[:], words[0])
	if row < 0 {
		return fmt.Errorf("an account has no limit %q: it has %s", words[0],
			strings.Join(namesOf(accountTable[:]), ", "))
	}
	if err := f.once(n, "tier "+name+" "+words[0]); err != nil {
		return err
	}
	w, err := parseWindow(words[1])
	f.tiers[i].windows[row] = w
	return err
}

// checkName refuses the names that a header could not carry.
func checkName(name string) error {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' || len(name) > 32 {
			return fmt.Errorf("%q is no name: write at most 32 of a to z, 0 to 9 and -", name)
		}
	}
	return nil
}

func (f *file) wallet(n int, text, tier string) error {
	var wallet engine.Address
	digits, ok := strings.CutPrefix(strings.ToLower(text), "0x")
	if _, err := hex.Decode(wallet[:], []byte(digits[:min(len(digits), 40)])); !ok || err != nil ||
		len(digits) != 40 {
		return fmt.Errorf("%q is no address: write 0x and 40 hex digits", text)
	}
	if err := f.once(n, "wallet "+strings.ToLower(text)); err != nil {
		return err
	}
	f.wallets = append(f.wallets, holder{n, wallet, tier})
	return nil
}

// finish makes the tiers, now that all standard limits are known, and puts wallets into them.
func (f *file) finish() {
	p := f.policy
	for _, d := range f.tiers {
		t := tier{name: d.name}
		for i, w := range p.tiers[0].account {
			most := math.Round(float64(w.Limit) * d.factor)
			t.account[i] = Window{uint32(max(1, min(most, limitMost))), w.Period}
		}
		for i, w := range d.windows {
			t.account[i] = w
		}
		p.tiers = append(p.tiers, t)
	}
	p.wallets = make(map[engine.Address]uint8, len(f.wallets))
	for _, h := range f.wallets {
		i := slices.IndexFunc(p.tiers, func(t tier) bool { return t.name == h.tier })
		if i < 0 && len(f.wrong) < wrongMost {
			f.wrong = append(f.wrong, fmt.Errorf("line %d: there is no tier %q: a line such as "+
				`"tier %s x2" makes it`, h.line, h.tier, h.tier))
		}
		p.wallets[h.wallet] = uint8(max(i, 0))
	}
	p.describe()
}

// parseWindow reads requests and a period: 400/10s.
func parseWindow(text string) (Window, error) {
	count, rest, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(count, 10, 32)
	period, bad := time.ParseDuration(rest)
	switch {
	case err != nil || bad != nil:
		return Window{}, fmt.Errorf("%q is no limit: write requests, a slash and a period, such as "+
			"400/10s or 24000/10m", text)
	case n < 1 || n > limitMost:
		return Window{}, fmt.Errorf("%d requests: write a number from 1 to %d", n, limitMost)
	case period < periodLeast || period > periodMost || period%time.Second != 0:
		return Window{}, fmt.Errorf("a period of %s: write whole seconds from %v to %v", rest,
			periodLeast, periodMost)
	}
	return Window{uint32(n), period}, nil
}

// find returns the row of a table with a name, -1 if there is none.
func find(table []limit, name string) int {
	return slices.IndexFunc(table, func(l limit) bool { return l.name == name })
}

func namesOf(table []limit) (names []string) {
	for i := range table {
		names = append(names, table[i].name)
	}
	return names
}

// Names returns the names of all limits that a file may set, in order.
func Names() []string {
	all := make(map[string]bool)
	for _, table := range [][]limit{addressTable[:], accountTable[:], pairTable[:]} {
		for _, name := range namesOf(table) {
			all[name] = name != addressTable[gifts].name
		}
	}
	maps.DeleteFunc(all, func(_ string, settable bool) bool { return !settable })
	return slices.Sorted(maps.Keys(all))
}

// Count returns how many tiers besides the standard one a Policy has, and how many wallets in them.
func (p *Policy) Count() (tiers, wallets int) { return len(p.tiers) - 1, len(p.wallets) }
