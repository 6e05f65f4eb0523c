package auth

import (
	"fmt"
	"strings"

	"clobd/engine"
)

// Domain is one exchange contract that orders are signed for: the four fields of its EIP-712
// domain, and the markets it settles.
type Domain struct {
	Name     string
	Version  string // "1" signs the struct of V1; every other version the struct of V2
	Chain    uint64
	Contract engine.Address

	NegRisk bool // settles neg-risk markets; if not, the normal ones
	Both    bool // settles either kind, whatever NegRisk says
}

// Separator returns the EIP-712 domain separator of d.
func (d *Domain) Separator() [32]byte { return newHasher().separator(d) }

// String returns name, version, chain and contract, for logs.
func (d *Domain) String() string {
	return fmt.Sprintf("%s %s chain %d %s", d.Name, d.Version, d.Chain, Checksum(d.Contract))
}

func (d *Domain) structVersion() uint8 {
	if d.Version == "1" {
		return 1
	}
	return 2
}

func (d *Domain) serves(negRisk bool) bool { return d.Both || d.NegRisk == negRisk }

// The three chains that have a table.
const (
	ChainMain  = 137   // the public main chain
	ChainTest  = 80002 // its public test chain, the node's default
	ChainLocal = 31337 // a developer's own chain
)

// exchange is one row of the table of known exchanges: a Domain per contract and chain.
type exchange struct {
	name, version   string
	main, test      bool
	normal, negRisk string // equal: one contract serves both kinds
}

const (
	polymarket = "Polymarket CTF Exchange"
	kuestV1    = "Kuest CTF Exchange"
	kuestV2    = "CTF Exchange"
)

// exchanges are the exchanges that published clients sign for on the two public chains, the most
// used first: an unknown signer's order is tried in this order.
var exchanges = [...]exchange{
	{polymarket, "2", true, true,
		"0xE111180000d2663C0091e4f400237545B87B996B", "0xe2222d279d744050d28e00520010520000310F59"},
	{kuestV2, "2", true, true,
		"0xaCd95F4F42322c7bE215C170362EEc57Ef4E78c2", "0x961d3230B3BBdb2592D20fa34dBD12Fa19240603"},
	{kuestV2, "2", true, true,
		"0xaa1b8dE834E16eC69C044F5300041673C968c9eF", "0xe7FA09cA716FDf498d74AFF618d32AFeacc310aB"},
	{kuestV2, "2", false, true,
		"0x4bB1871fdaE80331ce5fF87547b8ff886D1695a5", "0xdb1E374a05130d7DE3F16677066553F225D2eE53"},
	{polymarket, "3", true, false,
		"0xe3333700cA9d93003F00f0F71f8515005F6c00Aa", "0xe3333700cA9d93003F00f0F71f8515005F6c00Aa"},
	{polymarket, "3", false, true,
		"0x9fE6e61422AdB6F610d8597F9684b16912D50C3D", "0x9fE6e61422AdB6F610d8597F9684b16912D50C3D"},
	{polymarket, "1", true, false,
		"0x4bFb41d5B3570DeFd03C39a9A4D8dE6Bd8B8982E", "0xC5d563A36AE78145C45a50134d48A1215220f80a"},
	{polymarket, "1", false, true,
		"0xdFE02Eb6733538f8Ea35D585af8DE5958AD99E40", "0xC5d563A36AE78145C45a50134d48A1215220f80a"},
	{kuestV1, "1", true, true,
		"0xE79717fE8456C620cFde6156b6AeAd79C4875Ca2", "0xccBe425A0Aa24DCEf81f2e6edE3568a1683e7cbe"},
}

// Domains returns the known exchanges of one chain, in the order in which they are tried; nil for
// none. The developer's chain has one of our own, for either kind of market.
func Domains(chain uint64) []Domain {
	if chain == ChainLocal {
		contract := mustAddress("0xE111180000d2663C0091e4f400237545B87B996B")
		return []Domain{{Name: kuestV2, Version: "2", Chain: chain, Contract: contract, Both: true}}
	}
	var table []Domain
	for _, e := range exchanges {
		if !(e.main && chain == ChainMain || e.test && chain == ChainTest) {
			continue
		}
		d := Domain{Name: e.name, Version: e.version, Chain: chain, Contract: mustAddress(e.normal)}
		if d.Both = e.normal == e.negRisk; d.Both {
			table = append(table, d)
			continue
		}
		neg := d
		neg.Contract, neg.NegRisk = mustAddress(e.negRisk), true
		table = append(table, d, neg)
	}
	return table
}

func mustAddress(s string) engine.Address {
	a, ok := ParseAddress(s)
	if !ok {
		panic("BUG: not an address: " + s)
	}
	return a
}

// ParseDomain reads NAME,VERSION,ADDRESS[,neg-risk|both]: an exchange of the given chain for normal
// markets, for neg-risk markets, or for either kind. The error says which part is wrong.
func ParseDomain(s string, chain uint64) (Domain, error) {
	parts := strings.Split(s, ",")
	if len(parts) != 3 && len(parts) != 4 {
		return Domain{}, fmt.Errorf("exchange %q: want NAME,VERSION,ADDRESS[,neg-risk|both]", s)
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	d := Domain{Name: parts[0], Version: parts[1], Chain: chain}
	if d.Name == "" || d.Version == "" {
		return Domain{}, fmt.Errorf("exchange %q: the name or the version is empty", s)
	}
	var ok bool
	if d.Contract, ok = ParseAddress(parts[2]); !ok {
		return Domain{}, fmt.Errorf("exchange %q: %q is not 0x and 40 hex digits", s, parts[2])
	}
	if len(parts) == 4 {
		d.NegRisk, d.Both = parts[3] == "neg-risk", parts[3] == "both"
		if !d.NegRisk && !d.Both {
			return Domain{}, fmt.Errorf("exchange %q: %q is not neg-risk or both", s, parts[3])
		}
	}
	return d, nil
}
