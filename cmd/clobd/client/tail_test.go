package client

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/scripts/setting"
)

// TestTailUnknown: a tail of a market that the node does not know ends with an error that says so.
func TestTailUnknown(t *testing.T) {
	told := &tail{Tail: &Tail{}}
	for _, code := range []string{"unknown_asset", "unknown_market"} {
		at := uint64(0)
		text := `{"event_type":"error","code":"` + code + `","message":"no","sequence":1,"seq":1}`
		if err := told.print([]byte(text), &at); !errors.Is(err, errUnknown) {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestTailGone: if the node cannot resume from a Sequence, the tail goes on from the Sequence that
// the node names.
func TestTailGone(t *testing.T) {
	for _, kind := range []string{`"error","code":"unknown_seq"`, `"resync"`} {
		told := &tail{Tail: &Tail{}, seen: 1000, part: 3}
		at := uint64(0)
		text := `{"event_type":` + kind + `,"sequence":1,"seq":17}`
		if err := told.print([]byte(text), &at); err != nil || told.seen != 17 || told.part != 0 ||
			told.missing != 1 {
			t.Errorf("%v, %d, part %d, %d times", err, told.seen, told.part, told.missing)
		}
	}
}

// TestTailStalls: if the node sends nothing more after a heartbeat, the tail gives the connection
// up after tailBeat.
func TestTailStalls(t *testing.T) {
	setting.Full(t, "it waits for sockets to fill")
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err == nil {
			err = c.WriteMessage(websocket.TextMessage,
				[]byte(`{"event_type":"heartbeat","sequence":1,"seq":1}`))
		}
		if err != nil {
			t.Error(err)
		}
		<-ended
	}))
	defer server.Close()
	defer close(ended)
	for try := 1; ; try++ {
		told := &tail{Tail: &Tail{URL: server.URL}}
		begun := time.Now()
		err := told.follow(t.Context())
		took := time.Since(begun)
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() || took < tailBeat {
			t.Fatalf("%v after %v", err, took)
		}
		if took < tailAnswer { // the machine may have stood still
			return
		}
		if try == 3 {
			t.Fatalf("%v after %v, and never earlier", err, took)
		}
	}
}

// TestTailGap: a message that never came is an error that says which.
func TestTailGap(t *testing.T) {
	told := &tail{Tail: &Tail{}}
	at := uint64(0)
	beat := func(sequence, seq string) string {
		return `{"event_type":"heartbeat","sequence":` + sequence + `,"seq":` + seq + `}`
	}
	for text, want := range map[string]string{
		beat("2", "7"): "message 2 of the connection came where 1 was due",
		"[" + beat("1", "7") + "," + beat("3", "8") + "]": "message 3 of the connection came where 2",
		`nonsense`: "invalid character",
	} {
		at = 0
		if err := told.print([]byte(text), &at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	at = 0
	good := "[" + beat("1", "9") + "," + beat("2", "8") + "]"
	if err := told.print([]byte(good), &at); err != nil || at != 2 || told.seen != 9 {
		t.Errorf("%v, %d messages, seen %d", err, at, told.seen)
	}
}
