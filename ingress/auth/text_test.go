package auth

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"clobd/engine"
)

func TestChecksum(t *testing.T) {
	for _, want := range []string{ // the examples of EIP-55, and ours
		"0x52908400098527886E0F7030069857D2E4169EE7",
		"0x8617E340B3D01FA5F11F306F4090FD50E238070D",
		"0xde709f2102306220921060314715629080e2fb77",
		"0x27b1fdb04752bbc536007a920d24acb045561c26",
		"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
		"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
		"0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
		"0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
		anvilAddress,
	} {
		a, ok := ParseAddress(strings.ToLower(want))
		if !ok || Checksum(a) != want {
			t.Errorf("Checksum = %s, want %s", Checksum(a), want)
		}
		upper, ok := ParseAddress("0X" + strings.ToUpper(want[2:]))
		if !ok || upper != a {
			t.Errorf("%s in upper case is %v, %v", want, upper, ok)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, s := range []string{
		"", "0x", anvilAddress[2:], anvilAddress[:41], anvilAddress + "0", " " + anvilAddress,
		"0y" + anvilAddress[2:], anvilAddress[:41] + "g", "1x" + anvilAddress[2:],
		anvilAddress[2:] + "00", "0x" + strings.Repeat("é", 20),
	} {
		if a, ok := ParseAddress(s); ok {
			t.Errorf("ParseAddress(%q) = %x", s, a)
		}
	}
}

func TestParseWord(t *testing.T) {
	limit := new(big.Int).Lsh(big.NewInt(1), 256)
	top := new(big.Int).Sub(limit, big.NewInt(1))
	check := func(v *big.Int) {
		t.Helper()
		w, ok := ParseWord(v.String())
		if !ok || new(big.Int).SetBytes(w[:]).Cmp(v) != 0 {
			t.Errorf("ParseWord(%s) = %x, %v", v, w, ok)
		}
	}
	check(new(big.Int))
	check(top)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		v := new(big.Int)
		for range 4 {
			v.Or(v.Lsh(v, 64), new(big.Int).SetUint64(r.Uint64()))
		}
		check(v.Rsh(v, uint(i%256)))
	}
	for _, s := range []string{
		"", "-1", "+1", " 1", "1 ", "0x1", "1e3", "1.0", "१", limit.String(),
		top.String() + "0", strings.Repeat("9", 78), strings.Repeat("0", 79),
	} {
		if w, ok := ParseWord(s); ok {
			t.Errorf("ParseWord(%q) = %x", s, w)
		}
	}
	if w, ok := ParseWord("007"); !ok || w != WordOf(7) {
		t.Errorf("ParseWord(007) = %x, %v", w, ok)
	}
}

func TestWordUint64(t *testing.T) {
	w := WordOf(1<<64 - 1)
	if v, ok := w.Uint64(); !ok || v != 1<<64-1 {
		t.Errorf("Uint64 = %d, %v", v, ok)
	}
	w[23] = 1
	if v, ok := w.Uint64(); ok {
		t.Errorf("Uint64 of 2^64 and more = %d", v)
	}
}

func TestParseHex(t *testing.T) {
	for s, want := range map[string]bool{
		"00ff": true, "0x00ff": true, "0X00FF": true, "00fF": true,
		"": false, "0x": false, "0x00f": false, "00ff0": false, "00fg": false, "1x00ff": false,
		"0x00ff00": false, "0x0x00": false,
	} {
		var b [2]byte
		if got := ParseHex(b[:], s); got != want || want && b != [2]byte{0, 255} {
			t.Errorf("ParseHex(%q) = %v %x, want %v", s, got, b, want)
		}
	}
}

func TestDomainTables(t *testing.T) {
	count := map[uint64]int{ChainMain: 11, ChainTest: 13, ChainLocal: 1, 1: 0}
	for chain, want := range count {
		table := Domains(chain)
		if len(table) != want {
			t.Errorf("chain %d has %d rows, want %d", chain, len(table), want)
		}
		seen := map[[32]byte]bool{}
		for _, d := range table {
			if d.Chain != chain || seen[d.Separator()] {
				t.Errorf("row %s: wrong chain, or twice", d.String())
			}
			seen[d.Separator()] = true
		}
	}
}

// TestDomainRows holds the whole table against its publication, written out again.
func TestDomainRows(t *testing.T) {
	const pm, k1, k2 = "Polymarket CTF Exchange", "Kuest CTF Exchange", "CTF Exchange"
	rows := []struct {
		chain         uint64
		name, version string
		normal, neg   string
	}{
		{137, pm, "1", "4bfb41d5b3570defd03c39a9a4d8de6bd8b8982e", "c5d563a36ae78145c45a50134d48a1215220f80a"},
		{80002, pm, "1", "dfe02eb6733538f8ea35d585af8de5958ad99e40", "c5d563a36ae78145c45a50134d48a1215220f80a"},
		{137, pm, "2", "e111180000d2663c0091e4f400237545b87b996b", "e2222d279d744050d28e00520010520000310f59"},
		{80002, pm, "2", "e111180000d2663c0091e4f400237545b87b996b", "e2222d279d744050d28e00520010520000310f59"},
		{137, pm, "3", "e3333700ca9d93003f00f0f71f8515005f6c00aa", "e3333700ca9d93003f00f0f71f8515005f6c00aa"},
		{80002, pm, "3", "9fe6e61422adb6f610d8597f9684b16912d50c3d", "9fe6e61422adb6f610d8597f9684b16912d50c3d"},
		{137, k1, "1", "e79717fe8456c620cfde6156b6aead79c4875ca2", "ccbe425a0aa24dcef81f2e6ede3568a1683e7cbe"},
		{80002, k1, "1", "e79717fe8456c620cfde6156b6aead79c4875ca2", "ccbe425a0aa24dcef81f2e6ede3568a1683e7cbe"},
		{137, k2, "2", "acd95f4f42322c7be215c170362eec57ef4e78c2", "961d3230b3bbdb2592d20fa34dbd12fa19240603"},
		{80002, k2, "2", "acd95f4f42322c7be215c170362eec57ef4e78c2", "961d3230b3bbdb2592d20fa34dbd12fa19240603"},
		{137, k2, "2", "aa1b8de834e16ec69c044f5300041673c968c9ef", "e7fa09ca716fdf498d74aff618d32afeacc310ab"},
		{80002, k2, "2", "aa1b8de834e16ec69c044f5300041673c968c9ef", "e7fa09ca716fdf498d74aff618d32afeacc310ab"},
		{80002, k2, "2", "4bb1871fdae80331ce5ff87547b8ff886d1695a5", "db1e374a05130d7de3f16677066553f225d2ee53"},
		{31337, k2, "2", "e111180000d2663c0091e4f400237545b87b996b", "e111180000d2663c0091e4f400237545b87b996b"},
	}
	for _, r := range rows {
		for kind, contract := range []string{r.normal, r.neg} {
			want := Domain{Name: r.name, Version: r.version, Chain: r.chain,
				Contract: mustAddress("0x" + contract), Both: r.normal == r.neg}
			want.NegRisk = kind == 1 && !want.Both
			found := false
			for _, d := range Domains(r.chain) {
				found = found || d == want
			}
			if !found {
				t.Errorf("no row %s, neg-risk %v", want.String(), kind == 1)
			}
		}
	}
}

func TestParseDomain(t *testing.T) {
	const contract = "0xE111180000d2663C0091e4f400237545B87B996B"
	want := Domain{Name: "My Exchange", Version: "2", Chain: 5, Contract: mustAddress(contract)}
	for s, change := range map[string]func(*Domain){
		"My Exchange,2," + contract:                  func(*Domain) {},
		" My Exchange , 2 , " + contract:             func(*Domain) {},
		"My Exchange,2," + contract + ",neg-risk":    func(d *Domain) { d.NegRisk = true },
		"My Exchange,1," + contract + ", both":       func(d *Domain) { d.Both, d.Version = true, "1" },
		"My Exchange,2," + strings.ToLower(contract): func(*Domain) {},
	} {
		expect := want
		change(&expect)
		if d, err := ParseDomain(s, 5); err != nil || d != expect {
			t.Errorf("ParseDomain(%q) = %v, %v", s, d, err)
		}
	}
	for _, s := range []string{
		"", "a,2", ",2," + contract, "a,," + contract, "a,2,0x12", "a,2," + contract + ",yes",
		"a,2," + contract + ",both,both",
	} {
		if d, err := ParseDomain(s, 5); err == nil {
			t.Errorf("ParseDomain(%q) = %v", s, d)
		}
	}
}

func TestSeparators(t *testing.T) {
	var file struct {
		Rows []struct {
			Name, Version string
			ChainID       uint64 `json:"chainId"`
			Contract      string `json:"verifyingContract"`
			Separator     string `json:"domain_separator"`
		} `json:"domain_separators"`
	}
	readJSON(t, shared(t, "vectors.json"), &file)
	inTable := 0
	for _, r := range file.Rows {
		d := Domain{Name: r.Name, Version: r.Version, Chain: r.ChainID, Contract: mustAddress(r.Contract)}
		sep := d.Separator()
		if string(sep[:]) != string(unhex(t, r.Separator)) {
			t.Errorf("%s: separator %x, want %s", d.String(), sep, r.Separator)
		}
		if _, ok := NewVerifier(Domains(r.ChainID)).Find(sep); ok {
			inTable++
		} else if d.Contract != (engine.Address{}) {
			t.Errorf("%s is not in the table", d.String())
		}
	}
	if len(file.Rows) != 20 || inTable != 16 {
		t.Errorf("%d separators, %d in the table; want 20 and 16", len(file.Rows), inTable)
	}
}
