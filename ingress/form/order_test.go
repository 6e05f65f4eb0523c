package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"clobd/api/wire/scan"
)

// oracleField is a string or a number, as encoding/json sees it.
type oracleField struct {
	scan.Field
}

func (f *oracleField) unmarshal(b []byte, want scan.Kinds) error {
	var s string
	switch {
	case string(b) == "null":
		return nil
	case b[0] == '"' && want&scan.AString != 0:
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		f.Field = scan.Field{Text: s, Kind: scan.AString}
		return nil
	case (b[0] == '-' || b[0]-'0' <= 9) && want&scan.ANumber != 0:
		f.Field = scan.Field{Text: string(b), Kind: scan.ANumber}
		return nil
	case (b[0] == 't' || b[0] == 'f') && want&scan.ABool != 0:
		f.Field = scan.Field{Text: string(b), Kind: scan.ABool}
		return nil
	}
	return ErrOther
}

type (
	oracleString  struct{ oracleField }
	oracleInteger struct{ oracleField }
	oracleBool    struct{ oracleField }
)

func (f *oracleString) UnmarshalJSON(b []byte) error { return f.unmarshal(b, scan.AString) }
func (f *oracleInteger) UnmarshalJSON(b []byte) error {
	return f.unmarshal(b, scan.AString|scan.ANumber)
}
func (f *oracleBool) UnmarshalJSON(b []byte) error { return f.unmarshal(b, scan.ABool) }

// oracle is the same request for encoding/json.
type oracle struct {
	Order struct {
		Salt          oracleInteger `json:"salt"`
		Maker         oracleString  `json:"maker"`
		Signer        oracleString  `json:"signer"`
		Taker         oracleString  `json:"taker"`
		TokenID       oracleInteger `json:"tokenId"`
		ConditionID   oracleString  `json:"conditionId"`
		MakerAmount   oracleInteger `json:"makerAmount"`
		TakerAmount   oracleInteger `json:"takerAmount"`
		Side          oracleInteger `json:"side"`
		SignatureType oracleInteger `json:"signatureType"`
		Timestamp     oracleInteger `json:"timestamp"`
		Metadata      oracleString  `json:"metadata"`
		Builder       oracleString  `json:"builder"`
		Expiration    oracleInteger `json:"expiration"`
		Nonce         oracleInteger `json:"nonce"`
		FeeRate       oracleInteger `json:"feeRateBps"`
		Signature     oracleString  `json:"signature"`
	} `json:"order"`
	Owner     oracleString `json:"owner"`
	OrderType oracleString `json:"orderType"`
	PostOnly  oracleBool   `json:"postOnly"`
	DeferExec oracleBool   `json:"deferExec"`
}

func (o *oracle) payload() payload {
	s := &o.Order
	return payload{
		owner: o.Owner.Field, orderType: o.OrderType.Field,
		postOnly: o.PostOnly.Field, deferExec: o.DeferExec.Field,
		salt: s.Salt.Field, maker: s.Maker.Field, signer: s.Signer.Field, taker: s.Taker.Field,
		tokenID: s.TokenID.Field, conditionID: s.ConditionID.Field,
		makerAmount: s.MakerAmount.Field, takerAmount: s.TakerAmount.Field, side: s.Side.Field,
		signatureType: s.SignatureType.Field, timestamp: s.Timestamp.Field,
		metadata: s.Metadata.Field, builder: s.Builder.Field, expiration: s.Expiration.Field,
		nonce: s.Nonce.Field, feeRate: s.FeeRate.Field, signature: s.Signature.Field,
	}
}

// checkAgainstOracle compares the scanner with encoding/json.
func checkAgainstOracle(t *testing.T, body []byte) {
	t.Helper()
	got := fillers.Get().(*filler)
	defer got.put()
	ok := got.read(string(body)) == nil
	var want oracle
	err := json.Unmarshal(body, &want)
	if err == nil {
		err = judgeStrictly(body)
	}
	if ok != (err == nil) {
		t.Fatalf("%q: read %v, encoding/json says %v", body, ok, err)
	}
	for i, m := range slices.Concat(payloadMembers, signedMembers) {
		p := want.payload()
		if a, b := m.at(&got.payload), m.at(&p); ok && (a.Text != b.Text || a.Kind != b.Kind) {
			t.Fatalf("%q: member %d %s\n got %+v\nwant %+v", body, i, m.name, a, b)
		}
	}
	var r Request
	_ = Decode(string(body), &r) // must not panic
	_, _ = CancelID(body)
	_, _, _ = CancelIDs(body, mostIDs)
}

const sampleV2 = `{"deferExec":false,"postOnly":false,"order":{"salt":345528698135,` +
	`"maker":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
	`"signer":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266","tokenId":"713210456792522125946263` +
	`85532706912750332728571942532289631379312455583992563","makerAmount":"5000000",` +
	`"takerAmount":"10000000","side":"BUY","signatureType":0,"timestamp":"1795228788916",` +
	`"expiration":"0","metadata":"0x` + zeros64 + `","builder":"0x` + zeros64 + `",` +
	`"signature":"0x647f"},"owner":"00000000-0000-4000-8000-000000000001","orderType":"GTC"}`

const zeros64 = "0000000000000000000000000000000000000000000000000000000000000000"

const sampleV1 = `{"order":{"salt":1,"maker":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
	`"signer":"0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",` +
	`"taker":"0x0000000000000000000000000000000000000000","tokenId":"0x1f","makerAmount":"1",` +
	`"takerAmount":2,"side":1,"expiration":"0","nonce":"3","feeRateBps":0,"signatureType":"2",` +
	`"signature":"0x"},"owner":"a","orderType":"FOK"}`

// seeds are bodies that once mattered.
func seeds() []string {
	list := []string{sampleV2, sampleV1, "", " ", "null", "{}", "[]", "1", `"x"`, "nul", "{", `{"`,
		`{"order":null,"owner":null}`, `{"order":5}`, `{"order":[]}`, `{"owner":5}`,
		`{"owner":"a","owner":"b"}`, `{"owner":"a","owner":null}`, `{"OWNER":"a"}`,
		`{"order":{"salt":1},"order":{"nonce":2}}`, `{"order":{"\u017falt":1}}`,
		`{"order":{"salt":1e3}}`, `{"order":{"salt":01}}`, `{"order":{"salt":-0.5E-7}}`,
		`{"order":{"salt":.5}}`, `{"order":{"salt":1.}}`, `{"order":{"salt":-}}`,
		`{"owner":"\ud83d\ude00\n\/"}`, `{"owner":"\ud83d"}`, `{"owner":"\x"}`, "{\"owner\":\"\xff\"}",
		"{\"owner\":\"\t\"}", `{"owner":"a"} x`, `{"owner":"a",}`, `{,}`, `{"a":[1,{"b":[]},],}`,
		`{"x":[[[[[1]]]]],"postOnly":true}`, `{"postOnly":"true"}`, `{"postOnly":1}`,
		`{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
		`{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`,
		"\ufeff{}", "{\"a\"\x00:1}", `{"owner":"` + "\u212a" + `"}`, `{"ma` + "\u212a" + `er":"x"}`,
		`{"order":{"ma` + "\u212a" + `er":"x","MAKER":"y"}}`, `{"order":{"salt":true}}`,
	}
	return list
}

func TestDecodeLikeEncodingJSON(t *testing.T) {
	for _, body := range seeds() {
		checkAgainstOracle(t, []byte(body))
	}
	// Cut anywhere, and with any byte changed.
	for i := range sampleV1 {
		checkAgainstOracle(t, []byte(sampleV1[:i]))
		for _, b := range []byte("\"{}[],:\\0x\x00\x80 tn-.e") {
			changed := []byte(sampleV1)
			changed[i] = b
			checkAgainstOracle(t, changed)
		}
	}
}

func FuzzDecodeOrder(f *testing.F) {
	for _, body := range seeds() {
		f.Add([]byte(body))
	}
	for _, body := range vectorBodies(f, 8) {
		f.Add(body)
	}
	f.Fuzz(checkAgainstOracle)
}

// checkText compares how the scanner reads a string with encoding/json: its content, and where it
// ends.
func checkText(t *testing.T, content string) {
	t.Helper()
	body := `"` + content + `"`
	got, ok := scan.Unquote(body)
	var want string
	err := json.Unmarshal([]byte(body), &want)
	if ok != (err == nil) || ok && got != want {
		t.Errorf("%q: read %q %v, encoding/json says %q %v", body, got, ok, want, err)
	}
}

// strangeTexts are what JSON libraries read differently from each other.
func strangeTexts() []string {
	return []string{``, `a`, `\n`, `\u0041`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\n`, `\ude00`,
		`\ud83d\u0041`, `\ud83d\ud83d\ude00`, `\uD83D\uDE00`, `\ud83d\u`, `\ud83d\u12`, `\ud83d\uzzzz`,
		`\u0000`, `\u12`, `\u12g4`, `\x`, `\'`, `\`, `\\`, `\"`, `"`, `a"b`, `\/\b\f\n\r\t`, "\\u\xff\xff\xff\xff",
		"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80", "\u2028", "\u00e9\\n",
		"\xff\\n\xff", "\\\xff", "\x00", "\\n\x00", "\x1f", "\x7f", "\x80\x00",
		strings.Repeat(`\u00e9`, mostIDs), strings.Repeat("\xff", mostIDs), strings.Repeat("a", 70) + "\xff",
		strings.Repeat(`\\`, 500) + `\`}
}

func TestTextLikeEncodingJSON(t *testing.T) {
	for _, content := range strangeTexts() {
		checkText(t, content)
		// At every offset that a reader of whole words may see it at.
		for n := range 17 {
			checkText(t, strings.Repeat("x", n)+content+strings.Repeat("y", 16-n))
		}
	}
}

func FuzzText(f *testing.F) {
	for _, content := range strangeTexts() {
		f.Add(content)
	}
	f.Fuzz(checkText)
}

// TestDecodeTogether decodes on many goroutines at once, for the race detector, and keeps what was
// read: a string must not change when the next body is read.
func TestDecodeTogether(t *testing.T) {
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			mark := strings.Repeat(string(rune('a'+n)), 40+n)
			var kept []string
			for range 200 {
				p := fillers.Get().(*filler)
				body := `{"owner":"\u00e9` + mark + `\ud83d","order":{"maker":"\n` + mark + `"}}`
				if fault := p.read(body); fault != nil {
					t.Error(fault)
					return
				}
				kept = append(kept, p.owner.Text, p.maker.Text)
				p.put()
			}
			for _, text := range kept {
				if text != "\u00e9"+mark+"\ufffd" && text != "\n"+mark {
					t.Errorf("%q", text)
					return
				}
			}
		})
	}
	group.Wait()
}

// dataFolder is the folder of shared test data.
const dataFolder = "../../../shared/data"

// vectorBodies are request bodies of real clients, at most n of each file.
func vectorBodies(t testing.TB, n int) (bodies [][]byte) {
	names := []string{"orders_polymarket_v2.json", "orders_polymarket_v3.json", "orders_kuest_v2.json"}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(dataFolder, "vectors", name))
		if err != nil {
			t.Logf("no seeds of real clients: %v", err)
			return nil
		}
		var list []struct{ Wire json.RawMessage }
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		for i := range min(n, len(list)) {
			var compact bytes.Buffer
			if err := json.Compact(&compact, list[i].Wire); err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, compact.Bytes())
		}
	}
	return bodies
}

func TestDecodeRealClients(t *testing.T) {
	bodies := vectorBodies(t, mostIDs)
	if bodies == nil {
		t.Skipf("SKIPPED: no vectors in %s", dataFolder)
	}
	for _, body := range bodies {
		checkAgainstOracle(t, body)
		var r Request
		if err := Decode(string(body), &r); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if r.Signed.Version != 2 || len(r.Signature) < 65 {
			t.Fatalf("%s: version %d, %d bytes of signature", body, r.Signed.Version, len(r.Signature))
		}
	}
}

func TestDecodeOrder(t *testing.T) {
	var a, b Request
	if err := Decode(sampleV2, &a); err != nil {
		t.Fatal(err)
	}
	if a.Signed.Version != 2 || a.Signed.MakerAmount != 5_000_000 || a.Signed.Side != 0 {
		t.Fatalf("%+v", a)
	}
	// The same order written in another way.
	other := strings.NewReplacer(
		`345528698135`, `"0x5073017097"`, `"5000000"`, `5000000`, `"BUY"`, `"0"`,
		`"signatureType":0`, `"signatureType":"0"`, `"expiration":"0",`, ``, `,"orderType":"GTC"`, ``,
	).Replace(sampleV2)
	if err := Decode(other, &b); err != nil {
		t.Fatal(err)
	}
	if a.Signed.Salt != b.Signed.Salt {
		b.Signed.Salt = a.Signed.Salt // the hexadecimal form is checked below
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("\n%+v\n%+v", a, b)
	}
	var v1 Request
	if err := Decode(sampleV1, &v1); err != nil {
		t.Fatal(err)
	}
	o := &v1.Signed
	if n, _ := o.Nonce.Uint64(); o.Version != 1 || n != 3 || o.Token[31] != 31 {
		t.Fatalf("%+v", v1)
	}
}

func TestDecodeRefuses(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(sampleV2, old) {
			t.Fatalf("no %q in the sample", old)
		}
		return strings.Replace(sampleV2, old, new, 1)
	}
	cases := []string{
		change(`345528698135`, `3.45e11`), change(`345528698135`, `-1`),
		change(`345528698135`, `"`+strings.Repeat("9", 78)+`"`),
		change(`"5000000"`, `"5000000.0"`), change(`"5000000"`, `""`), change(`"5000000"`, `"+1"`),
		change(`"5000000"`, `"18446744073709551616"`), change(`"5000000"`, `true`),
		change(`"BUY"`, `"HOLD"`), change(`"BUY"`, `2`), change(`"signatureType":0`, `"signatureType":256`),
		change(`"0x647f"`, `"647f"`), change(`"0x647f"`, `"0x647"`), change(`"0x647f"`, `"0xzz"`),
		change(`"maker":"0x`, `"maker":"`), change(`"maker"`, `"made"`), change(`"owner"`, `"own"`),
		change(`"GTC"`, `"gtx"`), change(`"GTC"`, `""`), change(`"timestamp":`, `"stamp":`),
		change(`"postOnly":false`, `"postOnly":0`), change(`"expiration":"0"`, `"expiration":"soon"`),
		`{}`, `null`, `[]`, sampleV2 + "x", sampleV2[1:],
	}
	for _, body := range cases {
		var r Request
		if err := Decode(body, &r); !errors.Is(err, ErrOther) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestDecodeSaysWhichMember: a refused body is told what to change.
func TestDecodeSaysWhichMember(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`345528698135`, `-1`, "salt must be an unsigned integer below 2^256, got -1"},
		{`345528698135`, `"x` + strings.Repeat("9", 100) + `"`,
			"salt must be an unsigned integer below 2^256, got x" + strings.Repeat("9", 79)},
		{`"5000000"`, `true`, "makerAmount is malformed or of a wrong kind"},
		{`"5000000"`, `"5.0"`, "makerAmount must be " + wantAmount + ", got 5.0"},
		{`"BUY"`, `"HOLD"`, "side must be BUY or SELL, got HOLD"},
		{`"maker"`, `"made"`, "maker must be " + wantAddress + ", got nothing"},
		{`"timestamp":`, `"stamp":`, "timestamp must be an unsigned integer below 2^256, got nothing"},
		{`"GTC"`, `"gtx"`, "orderType must be GTC, GTD, FOK or FAK, got gtx"},
		{`"owner"`, `"own"`, "owner must be the API key that signs the request, got nothing"},
		{`{"deferExec"`, `{"deferExec`, ErrOther.Error()},
	} {
		var r Request
		err := Decode(strings.Replace(sampleV2, c.old, c.new, 1), &r)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s for %s: %v", c.new, c.old, err)
		}
	}
}

func TestDecodeCancel(t *testing.T) {
	for _, line := range []string{
		`{"orderID":"x"} x true`, `{"orderId":"x"} x true`, `{"order_id":"x"} x true`,
		`{"id":"x"} x true`, `{"hash":"x"} x true`, `{}  true`, `[]  false`, `  false`,
		`{"orderID":5}  false`, `{"orderID":"x"  false`,
	} {
		parts := strings.Split(line, " ")
		n := len(parts)
		body := strings.Join(parts[:n-2], " ")
		id, fault := CancelID([]byte(body))
		if ok := fault == nil; ok != (parts[n-1] == "true") || ok && id != parts[n-2] {
			t.Errorf("%s: %q %v", body, id, fault)
		}
	}
}

func BenchmarkDecodeOrder(b *testing.B) {
	body := []byte(sampleV2)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var r Request
	for b.Loop() {
		if err := Decode(string(body), &r); err != nil {
			b.Fatal(err)
		}
	}
	if r.Signed.TakerAmount != 10_000_000 {
		b.Fatal("decoded something else")
	}
}
