package head

import (
	"github.com/valyala/fasthttp"

	"clobd/api/wire"
)

// Families are the prefixes of the headers. A request is read in one family only: the first of
// these that any of its headers has.
var Families = [...]wire.Dialect{wire.SVC, wire.POLY, wire.KUEST}

// Credentials are what the headers of a request say about who sends it. The texts are good as long
// as the request.
type Credentials struct {
	Dialect wire.Dialect
	Address, Key, Passphrase, Timestamp,
	Signature, Nonce string
	MaxAge, ReadOnly string
	// Builder are the headers of a builder key.
	Builder struct{ Key, Passphrase, Timestamp, Signature string }
	// Doubled is a header that came twice, in whatever family, so that nobody knows which of the two
	// the client meant; "" if none did.
	Doubled string
}

// ReadCredentials reads the headers in any letter case, and with '-' for '_', which some proxies
// drop.
func ReadCredentials(h *fasthttp.RequestHeader) Credentials {
	var c Credentials
	var given [len(Families)]uint16 // the headers of each family, one bit each
	best, doubled := len(Families), ""
	for name, value := range h.All() {
		for i, family := range Families {
			if len(name) <= len(family) || !FoldEqual(name[:len(family)], string(family)) {
				continue
			}
			n := headerNumber(name[len(family):])
			if n < 0 {
				break
			}
			if given[i]&(1<<n) != 0 && doubled == "" {
				doubled = string(family) + Names[n]
			}
			given[i] |= 1 << n
			if i < best {
				c, best = Credentials{Dialect: family}, i
			}
			if i == best {
				*c.At(n) = wire.Text(value)
			}
			break
		}
	}
	if best == len(Families) {
		c.Dialect = wire.SVC
	}
	c.Doubled = doubled
	return c
}

// Names are the names of a family without its prefix.
var Names = [...]string{
	"ADDRESS", "API_KEY", "PASSPHRASE", "TIMESTAMP", "SIGNATURE", "NONCE", "MAX_AGE_MS",
	"READONLY_API_KEY", "BUILDER_API_KEY", "BUILDER_PASSPHRASE", "BUILDER_TIMESTAMP",
	"BUILDER_SIGNATURE",
}

func headerNumber(name []byte) int {
	for i := range Names {
		if FoldEqual(name, Names[i]) {
			return i
		}
	}
	return -1
}

// At returns where the value of the header Names[n] stands.
func (c *Credentials) At(n int) *string {
	return [len(Names)]*string{
		&c.Address, &c.Key, &c.Passphrase, &c.Timestamp, &c.Signature, &c.Nonce, &c.MaxAge,
		&c.ReadOnly, &c.Builder.Key, &c.Builder.Passphrase, &c.Builder.Timestamp, &c.Builder.Signature,
	}[n]
}

// Missing names the headers of these numbers that the request does not have.
func (c *Credentials) Missing(needs []int) (names []string) {
	for _, n := range needs {
		if *c.At(n) == "" {
			names = append(names, string(c.Dialect)+Names[n])
		}
	}
	return names
}
