package live

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

const key = "dGhlIHNhbXBsZSBub25jZQ==" // of RFC 6455, section 1.3

// TestCheck: the answer to a request that cannot become a socket says what the client must send.
func TestCheck(t *testing.T) {
	good := map[string]string{"Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket",
		"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
	for name, c := range map[string]struct {
		header, value string
		status        int
		hint          string // header of the refusal
	}{
		"good":         {"X", "y", 0, ""},
		"plain":        {"Upgrade", "", 426, "Upgrade"},
		"h2c":          {"Upgrade", "h2c", 426, "Upgrade"},
		"keep-alive":   {"Connection", "keep-alive", 426, "Upgrade"},
		"version 8":    {"Sec-WebSocket-Version", "8", 426, "Sec-Websocket-Version"},
		"no version":   {"Sec-WebSocket-Version", "", 426, "Sec-Websocket-Version"},
		"no key":       {"Sec-WebSocket-Key", "", 400, ""},
		"short key":    {"Sec-WebSocket-Key", "dGhlIHNhbXBsZQ==", 400, ""},
		"no base64":    {"Sec-WebSocket-Key", "????????????????????????", 400, ""},
		"unpadded key": {"Sec-WebSocket-Key", strings.TrimRight(key, "="), 400, ""},
	} {
		var ctx fasthttp.RequestCtx
		for header, value := range good {
			ctx.Request.Header.Set(header, value)
		}
		if ctx.Request.Header.Set(c.header, c.value); c.value == "" {
			ctx.Request.Header.Del(c.header)
		}
		got, refused := Check(&ctx)
		switch {
		case c.status == 0:
			if refused != nil || got != key {
				t.Errorf("%s: %q, %v", name, got, refused)
			}
		case refused == nil || refused.Status != c.status:
			t.Errorf("%s: %v, want %d", name, refused, c.status)
		case c.hint != "" && len(ctx.Response.Header.Peek(c.hint)) == 0:
			t.Errorf("%s: no header %s", name, c.hint)
		}
	}
}

// pair returns an open socket, its client's connection, and a reader of that connection. early is
// what the client has sent right after its request.
func pair(t *testing.T, early []byte) (*Socket, *net.TCPConn, *bufio.Reader) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	_ = client.SetReadDeadline(time.Now().Add(patience))
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	line := NewLine(nc)
	s, err := Open(line, line, early, Asked{key, http.Header{"X-Node-Version": {"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(client)
	a, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != 101 || a.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" ||
		a.Header.Get("X-Node-Version") != "7" || a.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Fatalf("%d %v", a.StatusCode, a.Header)
	}
	return s, client.(*net.TCPConn), r
}

// frame returns a frame of a client, with the given first byte.
func frame(first byte, payload string) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	mask := [4]byte{0x12, 0xf3, 0x56, 0x78}
	b = append(b, mask[:]...)
	for i := range len(payload) {
		b = append(b, payload[i]^mask[i%4])
	}
	return b
}

func join(frames ...[]byte) []byte { return bytes.Join(frames, nil) }

// The first bytes of whole frames; fin is the bit that a fragment lacks.
const (
	fin                                = 0x80
	text, binaryData, bye, ping, reply = fin | 1, fin | 2, fin | 8, fin | 9, fin | 10
)

// readFrame reads a frame of the node.
func readFrame(r *bufio.Reader) (first byte, payload []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := uint64(head[1])
	switch n {
	case 126:
		var long [2]byte
		_, err = io.ReadFull(r, long[:])
		n = uint64(binary.BigEndian.Uint16(long[:]))
	case 127:
		var long [8]byte
		_, err = io.ReadFull(r, long[:])
		n = binary.BigEndian.Uint64(long[:])
	}
	if err != nil {
		return 0, nil, err
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(r, payload)
	return head[0], payload, err
}

// conversation holds what a client sends, and what the node must make of it.
type conversation struct {
	sent  []byte
	early int      // bytes of sent that come with the request
	texts []string // the texts that Read must return
	pongs []string // payloads of the pongs
	code  uint16   // of the close frame; 0: there is none
}

// conversations returns all conversations, by name.
func conversations() map[string]conversation {
	all := broken()
	for _, some := range []map[string]conversation{kept(), fragments(), controls(), runes()} {
		maps.Copy(all, some)
	}
	for code := range uint16(5) { // each kind of frame that the protocol does not define
		kind := byte(3 + code)
		all[fmt.Sprintf("kind %d", kind)] = conversation{
			sent:  join(frame(text, "a"), frame(fin|kind, "b"), frame(ping, "c")),
			texts: []string{"a"}, code: 1002}
		all[fmt.Sprintf("kind %d in a text", kind+8)] = conversation{
			sent: join(frame(1, "a"), frame(fin|kind+8, ""), frame(fin, "b")), code: 1002}
	}
	for bits := byte(1); bits < 8; bits++ {
		for name, first := range map[string]byte{"text": text, "ping": ping, "pong": reply, "bye": bye} {
			all[fmt.Sprintf("reserved bits %03b of a %s", bits, name)] = conversation{
				sent:  join(frame(text, "a"), frame(first|bits<<4, ""), frame(ping, "b")),
				texts: []string{"a"}, code: 1002}
		}
		all[fmt.Sprintf("reserved bits %03b of a fragment", bits)] = conversation{
			sent: join(frame(1, "a"), frame(fin|bits<<4, "b")), code: 1002}
	}
	return all
}

// kept returns conversations that keep the rules of the protocol.
func kept() map[string]conversation {
	long := strings.Repeat("é", 40_000)
	normal := frame(bye, "\x03\xe8")
	return map[string]conversation{
		"text": {
			sent:  join(frame(text, "a"), frame(text, ""), normal),
			texts: []string{"a", ""}, code: 1000},
		"early": {
			sent:  join(frame(text, "abc"), normal),
			early: 5, texts: []string{"abc"}, code: 1000},
		"all early": {
			sent:  join(frame(text, "abc"), normal),
			early: 17, texts: []string{"abc"}, code: 1000},
		"long": {
			sent:  join(frame(text, long), normal),
			texts: []string{long}, code: 1000},
		"fragments": {
			sent:  join(frame(1, "a\xc3"), frame(0, ""), frame(fin, "\xa9b"), normal),
			texts: []string{"aéb"}, code: 1000},
		"ping inside": {
			sent:  join(frame(1, "a"), frame(ping, "x"), frame(fin, "b"), frame(bye, "")),
			texts: []string{"ab"}, pongs: []string{"x"}, code: 1005},
		"unasked pong": {
			sent: join(frame(reply, "x"), frame(bye, "\x03\xe9")),
			code: 1001},
		"own code": {sent: frame(bye, "\x0f\xa0done"), code: 4000},
		"hangs up": {sent: frame(text, "a"), texts: []string{"a"}},
	}
}

// broken returns conversations that break a rule of the protocol.
func broken() map[string]conversation {
	long := strings.Repeat("é", 40_000)
	unmasked := func(first byte, payload string) []byte {
		b := append([]byte{first, byte(len(payload))}, payload...)
		return b
	}
	return map[string]conversation{
		"binary":   {sent: frame(binaryData, "a"), code: 1003},
		"no UTF-8": {sent: frame(text, "a\xff"), code: 1007},
		"half a rune": {
			sent: join(frame(1, "a\xc3"), frame(fin, "b")),
			code: 1007},
		"surrogate":         {sent: frame(text, "\xed\xa0\x80"), code: 1007},
		"reserved bit":      {sent: frame(text|0x40, "a"), code: 1002},
		"reserved bit 3":    {sent: frame(text|0x10, "a"), code: 1002},
		"unknown kind":      {sent: frame(fin|3, "a"), code: 1002},
		"unknown control":   {sent: frame(fin|11, "a"), code: 1002},
		"unmasked":          {sent: unmasked(text, "a"), code: 1002},
		"unmasked, empty":   {sent: unmasked(text, ""), code: 1002},
		"unmasked ping":     {sent: unmasked(ping, "a"), code: 1002},
		"unmasked bye":      {sent: unmasked(bye, "\x03\xe8"), code: 1002},
		"unmasked fragment": {sent: join(frame(1, "a"), unmasked(fin, "b")), code: 1002},
		"fragmented ping":   {sent: frame(9, "a"), code: 1002},
		"long ping":         {sent: frame(ping, strings.Repeat("x", 126)), code: 1002},
		"lone continuation": {sent: frame(fin, "a"), code: 1002},
		"text in a text": {
			sent: join(frame(1, "a"), frame(text, "b")),
			code: 1002},
		"code of nobody": {sent: frame(bye, "\x03\xed"), code: 1002},
		"code below all": {sent: frame(bye, "\x00\x01"), code: 1002},
		"half a code":    {sent: frame(bye, "\x03"), code: 1002},
		"half a code later": {
			sent: join(frame(1, "a"), frame(ping, "x"), frame(fin, long), frame(text, "b"),
				frame(bye, "\x03")),
			texts: []string{"a" + long, "b"}, pongs: []string{"x"}, code: 1002},
		"reason is no UTF-8": {sent: frame(bye, "\x03\xe8\xff"), code: 1002},
		"too long": {
			sent: frame(text, strings.Repeat("x", MaxText+1)),
			code: 1009},
		"too long in pieces": {
			sent: join(frame(1, strings.Repeat("x", MaxText)), frame(fin, "x")),
			code: 1009},
		"announced 2^63": {
			sent: []byte{text, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4},
			code: 1009},
		"announced, too long": {
			sent: []byte{text, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4},
			code: 1009},
	}
}

// fragments returns conversations about fragmented messages.
func fragments() map[string]conversation {
	normal, long := frame(bye, "\x03\xe8"), strings.Repeat("x", MaxText)
	pieces := []byte{}
	for i := range 1000 {
		pieces = append(pieces, frame(byte(1-min(i, 1)), "y")...)
	}
	pieces = append(pieces, frame(fin, "")...)
	return map[string]conversation{
		"many fragments": {
			sent: join(pieces, normal), texts: []string{strings.Repeat("y", 1000)}, code: 1000},
		"empty fragments": {
			sent:  join(frame(1, ""), frame(0, ""), frame(fin, ""), frame(text, "a"), normal),
			texts: []string{"", "a"}, code: 1000},
		"pings and pongs between fragments": {
			sent: join(frame(1, "a"), frame(ping, "1"), frame(reply, "?"), frame(0, "b"),
				frame(ping, "2"), frame(ping, ""), frame(fin, "c"), frame(ping, "3"), normal),
			texts: []string{"abc"}, pongs: []string{"1", "2", "", "3"}, code: 1000},
		"as long as may be, in pieces": {
			sent:  join(frame(1, long[:MaxText/2]), frame(ping, "x"), frame(fin, long[MaxText/2:]), normal),
			texts: []string{long}, pongs: []string{"x"}, code: 1000},
		"two long ones": {
			sent:  join(frame(text, long), frame(text, long), normal),
			texts: []string{long, long}, code: 1000},
		"bye between fragments": {sent: join(frame(1, "a"), normal, frame(fin, "b")), code: 1000},
		"hangs up between fragments": {
			sent: join(frame(text, "a"), frame(1, "b")), texts: []string{"a"}},
		"fragment after the last": {
			sent:  join(frame(1, "a"), frame(fin, "b"), frame(fin, "c")),
			texts: []string{"ab"}, code: 1002},
		"fragment after a whole text": {
			sent: join(frame(text, "a"), frame(0, "b")), texts: []string{"a"}, code: 1002},
		"second first fragment":  {sent: join(frame(1, "a"), frame(1, "b")), code: 1002},
		"binary in a text":       {sent: join(frame(1, "a"), frame(binaryData, "b")), code: 1002},
		"binary in pieces":       {sent: join(frame(2, "a"), frame(fin, "b")), code: 1003},
		"text in a binary":       {sent: join(frame(2, "a"), frame(text, "b")), code: 1002},
		"ping within a fragment": {sent: join(frame(1, "a"), frame(9, "b")), code: 1002},
		"too long in many pieces": {
			sent: join(frame(1, long[:MaxText/2]), frame(0, long[MaxText/2:]), frame(0, ""),
				frame(0, "x")),
			code: 1009},
	}
}

// controls returns conversations about pings, pongs and close frames.
func controls() map[string]conversation {
	normal, most := frame(bye, "\x03\xe8"), strings.Repeat("\x00\xff\xfe.;", 25)
	flood, pongs := []byte{}, []string{}
	for i := range 2000 {
		pongs = append(pongs, fmt.Sprint(i))
		flood = append(flood, frame(ping, fmt.Sprint(i))...)
	}
	return map[string]conversation{
		"flood of pings": {
			sent:  join(flood, frame(text, "a"), normal),
			texts: []string{"a"}, pongs: pongs, code: 1000},
		"longest ping": {
			sent: join(frame(ping, most), frame(ping, ""), normal), pongs: []string{most, ""}, code: 1000},
		"longest pong":     {sent: join(frame(reply, most), frame(reply, ""), normal), code: 1000},
		"long pong":        {sent: frame(reply, most+"x"), code: 1002},
		"very long ping":   {sent: frame(ping, strings.Repeat("x", 70_000)), code: 1002},
		"fragmented pong":  {sent: join(frame(10, "a"), frame(fin, "b")), code: 1002},
		"fragmented bye":   {sent: join(frame(8, "\x03"), frame(fin, "\xe8")), code: 1002},
		"longest reason":   {sent: frame(bye, "\x03\xe8"+strings.Repeat("é", 61)+"x"), code: 1000},
		"long reason":      {sent: frame(bye, "\x03\xe8"+strings.Repeat("é", 62)), code: 1002},
		"text after bye":   {sent: join(normal, frame(text, "a")), code: 1000},
		"ping after bye":   {sent: join(normal, frame(ping, "a")), code: 1000},
		"bye after bye":    {sent: join(normal, frame(bye, "\x03\xe9")), code: 1000},
		"rubbish and then": {sent: join(frame(fin|3, "a"), frame(text, "b"), normal), code: 1002},
	}
}

// runes returns conversations about valid and invalid UTF-8: each text comes as a whole, and cut at
// each byte into two fragments.
func runes() map[string]conversation {
	all := make(map[string]conversation)
	add := func(s string, code uint16) {
		c := conversation{sent: join(frame(text, s), frame(bye, "\x03\xe8")), code: code}
		if code == 1000 {
			c.texts = []string{s}
		}
		all[fmt.Sprintf("%+q", s)] = c
		for i := range len(s) {
			c.sent = join(frame(1, s[:i]), frame(ping, "?"), frame(fin, s[i:]), frame(bye, "\x03\xe8"))
			c.pongs = []string{"?"}
			all[fmt.Sprintf("%+q, cut at %d", s, i)] = c
		}
	}
	for _, s := range []string{"\x00", "κόσμε", "\u0080\u07ff\u0800\ud7ff\ue000\ufffd", "\ufeffa",
		"\ufffe\uffff", "\U00010000\U0010ffff\U0001fffe"} {
		add(s, 1000)
	}
	for _, s := range []string{"\x80", "a\xbf", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf",
		"\xf0\x80\x80\xaf", "\xf0\x8f\xbf\xbf", "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\x80\xed\xb0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"\xfe", "\xff", "κόσμ\xce", "a\xe2\x82", "\xf0\x9f\x98", "\xe2\x82é"} {
		add(s, 1007)
	}
	return all
}

// byEach, in place of a number of bytes, makes converse read the socket with Each.
const byEach = -1

// converse plays a conversation, checks the result, and returns the error that ended the reading.
// The client writes some bytes at a time, and the socket reads up to ahead bytes ahead.
func (c *conversation) converse(t *testing.T, some, ahead int) (why error) {
	t.Helper()
	s, client, r := pair(t, c.sent[:c.early])
	if ahead > 0 {
		s.ReadAhead(ahead)
	}
	go func() {
		for part := range slices.Chunk(c.sent[c.early:], some) {
			if _, err := client.Write(part); err != nil {
				return // the node has closed the socket
			}
		}
		if c.code == 0 {
			_ = client.CloseWrite()
		}
	}()
	var texts []string
	if ahead == byEach {
		why = s.Each(patience, func(b []byte) { texts = append(texts, string(b)) })
	}
	for why == nil {
		var b []byte
		if b, why = s.Read(patience); why == nil {
			texts = append(texts, string(b))
		}
	}
	if !slices.Equal(texts, c.texts) {
		t.Errorf("%d texts: %.100q, want %.100q", len(texts), texts, c.texts)
	}
	var pongs []string
	code := uint16(0)
	for {
		first, payload, err := readFrame(r)
		if err != nil {
			break
		}
		switch {
		case code != 0:
			t.Errorf("behind the end: frame %x: %q", first, payload)
		case first == reply:
			pongs = append(pongs, string(payload))
		case first == bye:
			if code = 1005; len(payload) >= 2 {
				code = binary.BigEndian.Uint16(payload)
			}
		default:
			t.Errorf("frame %x: %q", first, payload)
		}
	}
	if !slices.Equal(pongs, c.pongs) || code != c.code {
		t.Errorf("pongs %.100q and code %d, want %.100q and %d", pongs, code, c.pongs, c.code)
	}
	return why
}

// TestProtocol: the node reads messages that keep the rules, and closes the socket with the right
// code when a frame breaks one, however the bytes arrive and whether Read or Each reads them. If
// the node closes the socket, the error says why.
func TestProtocol(t *testing.T) {
	ours := map[uint16]Ended{1002: Unruly, 1003: Binary, 1007: Garbled, 1009: Oversize}
	for name, c := range conversations() {
		t.Run(name, func(t *testing.T) {
			for _, ahead := range []int{0, 64, byEach} {
				all := []error{c.converse(t, len(c.sent), ahead)}
				if len(c.sent) < 200 {
					all = append(all, c.converse(t, 1, ahead))
				}
				for _, err := range all {
					var why Ended
					if errors.As(err, &why); why != ours[c.code] {
						t.Errorf("%v, want %q", err, ours[c.code])
					}
				}
			}
		})
	}
}

// TestMore: More tells whether another whole text message was read ahead.
func TestMore(t *testing.T) {
	s, client, _ := pair(t, nil)
	s.ReadAhead(1 << 10)
	long := strings.Repeat("x", 300)
	all := join(frame(text, "a"), frame(text, long), frame(text, "b"), frame(ping, ""),
		frame(text, "c"), frame(text, "d")[:6])
	if _, err := client.Write(all); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // until everything has arrived
	for _, want := range []struct {
		text string
		more bool
	}{{"a", true}, {long, true}, {"b", false}, {"c", false}, {"d", false}} {
		if want.text == "d" {
			if _, err := client.Write(frame(text, "d")[6:]); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Read(patience)
		if err != nil || string(got) != want.text || s.More() != want.more {
			t.Fatalf("%.20q, %v, more: %v, want %.20q and %v", got, err, s.More(), want.text, want.more)
		}
	}
}

// TestCloseCodes: a client that closes with a code of the protocol, or with a private one (3000 to
// 4999), gets the same code back. Any other code breaks the rules. The test skips 1014, which only
// some clients know.
func TestCloseCodes(t *testing.T) {
	step := uint16(1)
	if testing.Short() {
		step = 37
	}
	try := func(code uint16) {
		c := conversation{sent: frame(bye, string(binary.BigEndian.AppendUint16(nil, code))), code: 1002}
		if code >= 1000 && code <= 1003 || code >= 1007 && code <= 1013 || code >= 3000 && code <= 4999 {
			c.code = code
		}
		var why Ended
		if err := c.converse(t, len(c.sent), 0); t.Failed() || errors.As(err, &why) != (c.code != code) {
			t.Fatalf("code %d: %v", code, err)
		}
	}
	for code := uint16(0); code < 5100; code += step {
		if code != 1014 {
			try(code)
		}
	}
	for _, code := range []uint16{999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009,
		1010, 1011, 1012, 1013, 1015, 1016, 1100, 2000, 2999, 3000, 3999, 4000, 4999, 5000, 65535} {
		try(code)
	}
}

// TestPongsUnread: a client that sends pings and reads no pongs is closed when too many bytes wait.
func TestPongsUnread(t *testing.T) {
	s, client, _ := pair(t, nil)
	go func() {
		for many := bytes.Repeat(frame(ping, strings.Repeat("x", 125)), 1000); ; {
			if _, err := client.Write(many); err != nil {
				return
			}
		}
	}()
	_, err := s.Read(patience)
	if !errors.Is(err, Unread) {
		t.Errorf("a flood without an end: %v", err)
	}
	if rest := s.Rest(); rest > maxRest {
		t.Errorf("%d bytes wait", rest)
	}
}

// TestSilence: Read closes the socket of a client without a sign of life. A pong is a sign of life.
func TestSilence(t *testing.T) {
	s, client, r := pair(t, nil)
	const rest = time.Second
	begun := time.Now()
	go func() {
		for range 6 {
			time.Sleep(rest / 4)
			_ = s.Ping()
		}
	}()
	told := make(chan string, 1)
	go func() { told <- lastWords(client, r) }()
	_, err := s.Read(rest)
	if took := time.Since(begun); !errors.Is(err, Silent) || took < 2*rest || took > patience {
		t.Errorf("%v after %v", err, took)
	}
	if got, want := <-told, "\x03\xf0no sign of life"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// lastWords answers pings until the node closes the socket, and returns the payload of the close
// frame.
func lastWords(client net.Conn, r *bufio.Reader) string {
	for {
		switch first, payload, err := readFrame(r); {
		case err != nil:
			return err.Error()
		case first == bye:
			return string(payload)
		case first == ping:
			_, _ = client.Write(frame(reply, ""))
		}
	}
}

// TestEachSilence: Each closes the socket of a client without a sign of life, as Read does.
func TestEachSilence(t *testing.T) {
	s, client, r := pair(t, nil)
	const rest = time.Second
	begun := time.Now()
	go func() {
		for i := range 6 {
			time.Sleep(rest / 4)
			_ = s.Ping()
			if first, _, err := readFrame(r); err != nil || first != ping {
				return
			}
			_, _ = client.Write(frame(reply, strings.Repeat("x", 25*i)))
		}
	}()
	err := s.Each(rest, func(b []byte) { t.Errorf("heard %q", b) })
	if took := time.Since(begun); err == nil || took < 2*rest || took > patience {
		t.Errorf("%v after %v", err, took)
	}
}

// TestEachPanic: a panic of the function that Each calls reaches the caller of Each, with the stack
// of that function.
func TestEachPanic(t *testing.T) {
	s, client, _ := pair(t, nil)
	if _, err := client.Write(frame(text, "a")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		said, _ := recover().(string)
		if !strings.Contains(said, "wrong a") || !strings.Contains(said, "TestEachPanic") {
			t.Errorf("panic: %.300s", said)
		}
	}()
	_ = s.Each(patience, func(b []byte) { panic("wrong " + string(b)) })
	t.Error("the panic is lost")
}

// TestUntil: the bound on the wait for a text holds, although the client sends pings.
func TestUntil(t *testing.T) {
	s, client, r := pair(t, nil)
	told := make(chan string, 1)
	go func() { told <- lastWords(client, r) }()
	go func() {
		begun := time.Now() // the pings stop early: unread ones would reset the connection
		for time.Since(begun) < 200*time.Millisecond {
			if _, err := client.Write(frame(0x89, "")); err != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	began := time.Now()
	s.Until(began.Add(400 * time.Millisecond))
	_, err := s.Read(patience)
	if took := time.Since(began); !errors.Is(err, Late) || took < 400*time.Millisecond ||
		took > patience/2 {
		t.Errorf("%v after %v", err, took)
	}
	if got, want := <-told, "\x03\xf0no subscription or login in time"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSlowClient: bytes that a client does not read wait, and arrive in full when it reads. Beyond
// the bound the node ends the connection, and no frame arrives incomplete.
func TestSlowClient(t *testing.T) {
	for name, reads := range map[string]bool{"reads later": true, "never reads": false} {
		t.Run(name, func(t *testing.T) {
			s, client, r := pair(t, nil)
			one := AppendFrame(nil, bytes.Repeat([]byte("x"), 70_000), []byte("tail"))
			sent, err := 0, error(nil)
			for all := true; all && err == nil; sent++ {
				if all, err = s.Send(one); sent > 10_000 {
					t.Fatal("there is no end of room")
				}
			}
			if !reads {
				for range 10_000 { // the kernel may find more room meanwhile
					if _, err = s.Send(one); err != nil {
						break
					}
				}
				if err == nil {
					t.Error("the rest has no bound")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Tell(TryLater, "slow consumer") // after the bytes that wait
			go func() {
				for all, err := false, error(nil); !all && err == nil; time.Sleep(time.Millisecond) {
					all, err = s.Flush()
				}
				s.End()
			}()
			for range sent {
				first, payload, err := readFrame(r)
				if err != nil || first != text || len(payload) != 70_004 || payload[70_003] != 'l' {
					t.Fatalf("%x, %d bytes, %v", first, len(payload), err)
				}
			}
			first, payload, err := readFrame(r)
			if err != nil || first != bye || string(payload) != "\x03\xf5slow consumer" {
				t.Errorf("%x %q %v", first, payload, err)
			}
			_ = client.Close()
		})
	}
}

// TestAppendFrame: a client reads a frame of any length as the parts from which it was made.
func TestAppendFrame(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 127, 65_535, 65_536, 200_000} {
		body := bytes.Repeat([]byte("b"), n)
		b := AppendFrame([]byte{}, body[:n/2], body[n/2:])
		first, payload, err := readFrame(bufio.NewReader(bytes.NewReader(b)))
		if err != nil || first != text || !bytes.Equal(payload, body) {
			t.Errorf("%d bytes: %x, %d bytes, %v", n, first, len(payload), err)
		}
	}
}

// TestAppendFragments: a client reads a message of any length from its fragments, and none of them
// is too long. Cut finds where they end.
func TestAppendFragments(t *testing.T) {
	for _, most := range []int{1, 125, 126, 65_536, 70_000} {
		for _, n := range []int{0, 1, most - 1, most, most + 1, 3 * most, 3*most + 1} {
			body := bytes.Repeat([]byte("bcdefgh"), n/7+1)[:n]
			b := AppendFragments(nil, body, most)
			in := bytes.NewReader(b)
			r, kind, last := bufio.NewReader(in), byte(text&^fin), false
			var ends []int
			var read []byte
			for ; !last; kind = 0 {
				first, payload, err := readFrame(r)
				if last = first&fin != 0; err != nil || first&^fin != kind || len(payload) > most {
					t.Fatalf("%d of %d bytes: %x, %d bytes, %v", n, most, first, len(payload), err)
				}
				ends = append(ends, len(b)-in.Len()-r.Buffered())
				read = append(read, payload...)
			}
			if !bytes.Equal(read, body) || ends[len(ends)-1] != len(b) {
				t.Errorf("%d bytes in fragments of %d: other bytes arrive", n, most)
			}
			testCut(t, b, ends)
		}
	}
}

// testCut compares what Cut finds in b with the ends of the frames.
func testCut(t *testing.T, b []byte, ends []int) {
	t.Helper()
	for _, end := range ends {
		for most := end - 1; most <= end+1; most++ {
			want := ends[0]
			for _, e := range ends {
				if e <= most {
					want = max(want, e)
				}
			}
			if got := Cut(b, most); got != want {
				t.Errorf("Cut at most %d of frames that end at %v: %d, want %d", most, ends, got, want)
			}
		}
	}
	if got := Cut(nil, 1); got != 0 {
		t.Errorf("Cut of nothing: %d", got)
	}
}
