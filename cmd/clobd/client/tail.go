package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fasthttp/websocket"

	"clobd/cmd/cli"
	"clobd/ingress/auth"
)

// Tail is clobd tail: the changes of markets, or of the orders of a key, as they come.
type Tail struct {
	URL    string   `name:"url" default:"http://127.0.0.1:8080" help:"The node's public listener."`
	Market []string `help:"A market by its condition id, 0x and 64 hex digits, or one outcome by its token id. May be repeated."`
	User   string   `type:"existingfile" help:"Print what happens to the orders of an API key, in the markets named or in all. The file is what POST /auth/api-key answered."`
	From   uint64   `help:"Go on from this Sequence: with --user from any, else if the node still has in memory what came then."`
}

// Times of a tail.
const (
	tailFirst  = 100 * time.Millisecond // until the first new try, then twice as long each time
	tailLast   = 5 * time.Second
	tailBeat   = 2 * time.Second // without a message; a node with heartbeats sends one each second
	tailAnswer = 10 * time.Second
)

// tail is what a tail knows of the stream.
type tail struct {
	*Tail
	tokens  []string
	key     auth.Trio // with --user
	seen    uint64    // the highest Sequence that was printed
	part    int       // the part of it that was printed last, with --user
	missing int       // how often the node no longer had what came between two connections
	beats   bool      // a heartbeat has come on the connection
}

// gapError is a message that never came: the node or something between has lost it.
type gapError struct{ want, got uint64 }

func (e *gapError) Error() string {
	return fmt.Sprintf("message %d of the connection came where %d was due", e.got, e.want)
}

var (
	errKey     = errors.New("the node does not take the key")
	errUnknown = errors.New("the node does not know a market")
)

// Run prints each message as a line until it is interrupted, and connects again when a connection
// ends. The error says that a message is missing.
func (c *Tail) Run(ctx context.Context) error {
	t := &tail{Tail: c, seen: c.From}
	if err := t.begin(ctx); err != nil {
		return err
	}
	pause := tailFirst
	for ctx.Err() == nil {
		before := t.seen
		err := t.follow(ctx)
		var gap *gapError
		if errors.Is(err, errKey) {
			return cli.Hint(err, "--user names what POST /auth/api-key answered; is the clock right?")
		}
		if errors.Is(err, errUnknown) {
			return cli.Hint(err, "--market names a condition id or a token id of a listed market")
		}
		if errors.As(err, &gap) {
			return cli.Hint(err, "--from %d prints what came since", t.seen)
		}
		if ctx.Err() != nil {
			break
		}
		if t.seen > before {
			pause = tailFirst
		}
		fmt.Fprintf(os.Stderr, "the stream ended: %v; connecting again\n", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, tailLast)
	}
	if t.missing == 0 {
		return nil
	}
	hint := "the books that followed are whole"
	if t.User != "" {
		hint = "ask for your orders and trades over HTTP"
	}
	return cli.Hint(fmt.Errorf("%d times the node no longer had what came between two connections",
		t.missing), "%s", hint)
}

// begin reads the key, or looks up the markets.
func (t *tail) begin(ctx context.Context) error {
	switch {
	case t.User == "" && len(t.Market) == 0:
		return cli.Hint(errors.New("nothing to print"), "name a market by --market, or a key by --user")
	case t.User == "":
		return t.find(ctx)
	}
	if err := t.findConditions(ctx); err != nil {
		return err
	}
	b, err := os.ReadFile(t.User)
	if err != nil {
		return err
	}
	var told struct {
		Key        string `json:"apiKey"`
		Secret     string `json:"secret"`
		Passphrase string `json:"passphrase"`
	}
	if err := json.Unmarshal(b, &told); err != nil {
		return cli.Hint(fmt.Errorf("read the key in %s: %w", t.User, err),
			"the file is what POST /auth/api-key answered")
	}
	t.key = auth.Trio{Key: told.Key, Secret: told.Secret, Passphrase: told.Passphrase}
	return nil
}

// find looks up the tokens of the markets.
func (t *tail) find(ctx context.Context) error {
	for _, id := range t.Market {
		if !strings.HasPrefix(id, "0x") {
			t.tokens = append(t.tokens, id)
			continue
		}
		var market struct {
			Tokens []struct {
				ID string `json:"token_id"`
			} `json:"tokens"`
		}
		if err := t.ask(ctx, "/clob/markets/"+id, &market); err != nil {
			return fmt.Errorf("find market %s: %w", id, err)
		}
		for _, token := range market.Tokens {
			t.tokens = append(t.tokens, token.ID)
		}
	}
	return nil
}

// findConditions replaces token ids by the conditions of their markets: the user channel takes
// those.
func (t *tail) findConditions(ctx context.Context) error {
	for i, id := range t.Market {
		if strings.HasPrefix(id, "0x") {
			continue
		}
		var market struct {
			Condition string `json:"condition_id"`
		}
		if err := t.ask(ctx, "/markets-by-token/"+url.PathEscape(id), &market); err != nil {
			return fmt.Errorf("find the market of token %s: %w", id, err)
		}
		t.Market[i] = market.Condition
	}
	return nil
}

// ask reads an answer of the node.
func (t *tail) ask(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, tailAnswer)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.URL, "/")+path, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return cli.Hint(err, "--url names the node's public listener")
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return fmt.Errorf("the node answers %s", a.Status)
	}
	return json.NewDecoder(a.Body).Decode(into)
}

// follow prints what one connection brings.
func (t *tail) follow(ctx context.Context) error {
	dialer := websocket.Dialer{HandshakeTimeout: tailAnswer}
	path, wish, err := t.wish()
	if err != nil {
		return err
	}
	address := "ws" + strings.TrimPrefix(strings.TrimSuffix(t.URL, "/"), "http") + path
	c, a, err := dialer.DialContext(ctx, address, nil)
	if a != nil && a.Body != nil {
		defer a.Body.Close()
	}
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	if err := c.WriteJSON(wish); err != nil {
		return err
	}
	sequence, wait := uint64(0), tailAnswer
	for t.beats = false; ; {
		if t.beats {
			wait = tailBeat
		}
		_ = c.SetReadDeadline(time.Now().Add(wait))
		_, text, err := c.ReadMessage()
		if err != nil {
			return err
		}
		if err := t.print(text, &sequence); err != nil {
			return err
		}
	}
}

// wish returns the path of the stream, and what asks for it.
func (t *tail) wish() (path string, wish map[string]any, err error) {
	wish = map[string]any{"heartbeat": true}
	if t.seen > 0 {
		wish["resume"] = map[string]any{"seq": t.seen, "part": t.part}
	}
	if t.User == "" {
		wish["type"], wish["assets_ids"] = "market", t.tokens
		return "/ws/market", wish, nil
	}
	r := auth.Request{Timestamp: strconv.FormatInt(time.Now().Unix(), 10), Method: http.MethodGet,
		Path: "/ws/user"}
	if err := t.key.Sign(&r); err != nil {
		return "", nil, err
	}
	wish["type"], wish["markets"] = "user", t.Market
	wish["auth"] = map[string]string{"apiKey": r.Key, "passphrase": r.Passphrase,
		"timestamp": r.Timestamp, "signature": r.Signature}
	return r.Path, wish, nil
}

// print prints the messages of a text, but for heartbeats.
func (t *tail) print(text []byte, sequence *uint64) error {
	all := []json.RawMessage{text}
	if bytes.HasPrefix(text, []byte("[")) {
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
	}
	for _, one := range all {
		var m struct {
			Kind     string `json:"event_type"`
			Sequence uint64 `json:"sequence"`
			Shows    uint64 `json:"seq"`
			Part     int    `json:"part"`
			Code     string `json:"code"`
		}
		if err := json.Unmarshal(one, &m); err != nil {
			return fmt.Errorf("read %.80q: %w", one, err)
		}
		if *sequence++; m.Sequence != *sequence {
			return &gapError{*sequence, m.Sequence}
		}
		if m.Shows > t.seen || m.Shows == t.seen && m.Part > t.part {
			t.seen, t.part = m.Shows, m.Part
		}
		switch m.Kind + m.Code {
		case "heartbeat":
			t.beats = true
			continue
		case "resync", "error" + "unknown_seq": // the node cannot go on from t.seen
			t.missing++
			t.seen, t.part = m.Shows, 0
		case "error" + "unauthorized":
			return fmt.Errorf("%w: %s", errKey, one)
		case "error" + "unknown_asset", "error" + "unknown_market":
			return fmt.Errorf("%w: %s", errUnknown, one)
		}
		if _, err := fmt.Printf("%s\n", one); err != nil {
			return err
		}
	}
	return nil
}
