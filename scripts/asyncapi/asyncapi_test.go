package asyncapi

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clobd/scripts/openapi"
)

// tail is the end of each message on the channels of markets and users.
const tail = `"stream_id":"a-1","sequence":1,"server_ts_ms":1,"seq":1}`

// TestCheck: messages that the document describes pass, and no others.
func TestCheck(t *testing.T) {
	hash := "0x" + strings.Repeat("ab", 32)
	order := `{"event_type":"order","type":"CANCELLATION","id":"` + hash + `","owner":"` + uuid +
		`","order_owner":"` + uuid + `","market":"` + hash + `","asset_id":"1","side":"BUY",` +
		`"original_size":"1","size_matched":"0","price":"0.5","outcome":"Yes","status":"CANCELED",` +
		`"cancel_reason":"user","order_type":"GTC","expiration":"0","associate_trades":null,` +
		`"created_at":"1","maker_address":"0x` + strings.Repeat("1", 40) + `","timestamp":"1",` +
		`"part":1,"parts":1,`
	book := `{"event_type":"book","market":"` + hash + `","asset_id":"1","timestamp":"1","hash":"` +
		strings.Repeat("a", 40) + `","bids":[{"price":"0.5","size":"1"}],"asks":[],"tick_size":"0.01",` +
		`"min_order_size":"5","neg_risk":false,"last_trade_price":"",`
	for _, c := range []struct{ name, channel, text, want string }{
		{"a heartbeat", "/ws/market", `{"event_type":"heartbeat","timestamp":"1",` + tail, ""},
		{"under the prefix", "/clob/ws", `{"event_type":"heartbeat","timestamp":"1",` + tail, ""},
		{"of a user", "/ws/user", `{"event_type":"heartbeat","timestamp":"1",` + tail, ""},
		{"PONG", "/ws/user", "PONG", ""},
		{"no news", "/ws/market", "NO NEW ASSETS", ""},
		{"no news for users", "/ws/user", "NO NEW ASSETS", "neither a bare text"},
		{"PING of the node", "/ws/user", "PING", "neither a bare text"},
		{"an order", "/ws/user", order + tail, ""},
		{"an order on the market", "/ws/market", order + tail, "no such message"},
		{"without a reason", "/ws/user", strings.Replace(order, `"cancel_reason":"user",`, "", 1) + tail,
			"missing property 'cancel_reason'"},
		{"placed and canceled", "/ws/user", strings.Replace(order, "CANCELLATION", "PLACEMENT", 1) + tail,
			"orderPlacement"},
		{"another member", "/ws/market", `{"event_type":"heartbeat","timestamp":"1","x":1,` + tail,
			"additional properties 'x'"},
		{"a number", "/ws/market", `{"event_type":"heartbeat","timestamp":1,` + tail, "want string"},
		{"no tail", "/ws/market", `{"event_type":"heartbeat","timestamp":"1"}`, "missing properties"},
		{"a tail in front", "/ws/market", `{"event_type":"heartbeat",` + tail[:len(tail)-1] +
			`,"timestamp":"1"}`, "the last members are not"},
		{"twice", "/ws/market", `{"event_type":"heartbeat","timestamp":"1","timestamp":"1",` + tail,
			"timestamp comes twice"},
		{"two values", "/ws/market", `{"event_type":"heartbeat","timestamp":"1",` + tail + "{}",
			"neither a bare text"},
		{"no books", "/ws/market", "[]", "minItems"},
		{"books", "/ws/market", "[" + book + tail + "," + book + tail + "]", ""},
		{"a book without a tail", "/ws/market", "[" + book + tail + "," + book + `"x":1}]`, "/1"},
		{"one book", "/ws/market", book + tail, ""},
		{"what has waited", "/ws/market", "[" + book + tail + `,{"event_type":"resync",` + tail + "]", ""},
		{"an order that has waited", "/ws/market", "[" + book + tail + "," + order + tail + "]", "/1"},
		{"another type", "/ws/market", `{"event_type":"x",` + tail, "no such message"},
		{"another channel", "/ws/x", "PONG", "no channel"},
		{"an answer", "/ws/trade", `{"id":1,"status":200,"result":{"server_ts_ms":1}}`, ""},
		{"a refusal", "/ws/trade", `{"id":null,"status":400,"error":{"error":"x","code":"bad_request"}}`,
			""},
		{"a refusal that succeeds", "/ws/trade",
			`{"id":1,"status":200,"error":{"error":"x","code":"bad_request"}}`, "minimum"},
		{"another code", "/ws/trade", `{"id":1,"status":400,"error":{"error":"x","code":"oops"}}`,
			"/error/code"},
	} {
		text := []byte(c.text)
		fails(t, c.name, Check(c.channel, text), c.want)
		if string(text) != c.text {
			t.Errorf("%s: the text is %s after the check", c.name, text)
		}
	}
}

const uuid = "5a8f2c1e-0000-4000-8000-00000000000a"

// fails checks that an error contains want, or that there is no error if want is "".
func fails(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}

// TestCheckSent: messages that clients may send pass, and no others.
func TestCheckSent(t *testing.T) {
	for _, c := range []struct{ name, channel, text, want string }{
		{"a subscription", "/ws", `{"type":"MARKET","assets_ids":["1"],"resume":{"seq":1}}`, ""},
		{"of another type", "/ws", `{"type":"user"}`, "/type"},
		{"PING", "/ws/market", "PING", ""},
		{"conflate", "/ws/market", `{"assets_ids":[],"conflate":true}`, ""},
		{"misspelt", "/ws/market", `{"asset_ids":[]}`, "additional properties"},
		{"a login", "/ws/user", `{"type":"user","auth":{"apikey":"k","secret":"s","passphrase":"p"}}`, ""},
		{"a login beside", "/ws/user", `{"type":"user","key":"k","timestamp":1,"signature":"s"}`, ""},
		{"a login without a key", "/ws/user", `{"type":"user","auth":{"secret":"s"}}`, "/auth"},
		{"the first text", "/ws/trade", `{"id":1,"method":"login","params":{"apiKey":"k"}}`, ""},
		{"as a user", "/ws/trade", `{"type":"trade","auth":{"apiKey":"k"}}`, ""},
		{"a request", "/ws/trade", `{"id":"a","method":"order.cancel","params":{"orderID":"x"}}`, ""},
		{"none of params", "/ws/trade", `{"id":1,"method":"order.cancel_all"}`, ""},
		{"params missing", "/ws/trade", `{"id":1,"method":"order.place"}`, "params"},
		{"a long id", "/ws/trade", `{"id":"` + strings.Repeat("x", 65) + `","method":"ping"}`, "maxLength"},
		{"another method", "/ws/trade", `{"id":1,"method":"order.dance"}`, "no such message"},
	} {
		fails(t, c.name, CheckSent(c.channel, []byte(c.text)), c.want)
	}
}

// TestCheckAnswer: only the answers to a method pass for the method.
func TestCheckAnswer(t *testing.T) {
	const sign, canceled = `{"id":1,"status":200,"result":{"server_ts_ms":1}}`,
		`{"id":1,"status":200,"result":{"canceled":[],"not_canceled":{}},"seq":1}`
	const refused = `{"id":1,"status":429,"error":{"error":"x","code":"rate_limited"},"rate_limit":"x"}`
	for _, c := range []struct{ method, text, want string }{
		{"ping", sign, ""}, {"order.cancel_all", canceled, ""}, {"order.place", refused, ""},
		{"ping", canceled, "additional properties"}, {"order.cancel", sign, "missing properties"},
		{"order.dance", sign, "no such message"},
	} {
		fails(t, c.method, CheckAnswer("/ws/trade", c.method, []byte(c.text)), c.want)
	}
}

// TestParse: Parse refuses a document with errors or broken references.
func TestParse(t *testing.T) {
	text := string(document(t))
	for _, c := range []struct{ name, old, new, want string }{
		{"as it is", "", "", ""},
		{"another version", `"asyncapi": "3.0.0"`, `"asyncapi": "2.6.0"`, "version"},
		{"a member that nobody reads", `"info": {`, `"infos": {`, "unknown field"},
		{"an operation nowhere", `"$ref": "#/channels/trade"`, `"$ref": "#/channels/none"`, "no channel"},
		{"a message nowhere", `"$ref": "#/channels/user/messages/userTrade"`,
			`"$ref": "#/channels/user/messages/none"`, "no message of the channel"},
		{"a schema nowhere", `"$ref": "#/components/schemas/Heartbeat"`,
			`"$ref": "#/components/schemas/None"`, "None"},
		{"an action", `"action": "send"`, `"action": "shout"`, "action"},
		{"an example", `"winning_outcome": "Yes"`, `"winning_outcome": 1`, "example"},
	} {
		_, err := Parse([]byte(strings.ReplaceAll(text, c.old, c.new)))
		fails(t, c.name, err, c.want)
	}
}

// document returns the node's own document.
func document(t *testing.T) []byte {
	t.Helper()
	root, err := openapi.Module()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "api", "asyncapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDocument: the node's document has texts, uses all its messages and schemas, and describes
// every socket.
func TestDocument(t *testing.T) {
	var f written
	if err := json.Unmarshal(document(t), &f); err != nil {
		t.Fatal(err)
	}
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for name, c := range f.Channels {
		if c.Title == "" || c.Description == "" || len(c.CloseCodes) == 0 {
			t.Errorf("channel %s: no title, no description or no close codes", name)
		}
		for _, m := range c.Messages {
			used[strings.TrimPrefix(m.To, "#/components/messages/")] = true
		}
	}
	for name, o := range f.Operations {
		if o.Summary == "" || len(o.Messages) == 0 {
			t.Errorf("operation %s: no summary or no messages", name)
		}
	}
	for name, m := range f.Components.Messages {
		if !used[name] || m.Name != name || m.Title == "" {
			t.Errorf("message %s: in no channel, or called %q, %q", name, m.Name, m.Title)
		}
	}
	for name := range f.Components.Schemas {
		if !strings.Contains(string(document(t)), `"$ref": "#/components/schemas/`+name+`"`) {
			t.Errorf("schema %s is not used", name)
		}
	}
	routes, err := openapi.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, route := range routes.Routes("streams") {
		if path := strings.TrimPrefix(route, "GET "); d.channels[path] == nil {
			t.Errorf("%s opens a socket, which is not described", route)
		}
	}
	addresses := []string{"/ws", "/ws/market", "/ws/trade", "/ws/user"}
	if got := slices.Sorted(maps.Keys(d.channels)); !slices.Equal(got, addresses) {
		t.Errorf("channels %v, want %v", got, addresses)
	}
}

// TestSameSchemas: schemas with the same name are equal in both documents, except for two words
// that OpenAPI spells differently.
func TestSameSchemas(t *testing.T) {
	type schemas struct {
		Components struct{ Schemas map[string]any }
	}
	var ours, theirs schemas
	if err := json.Unmarshal(document(t), &ours); err != nil {
		t.Fatal(err)
	}
	root, err := openapi.Module()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	ours.Components.Schemas["Error"] = ours.Components.Schemas["TradeError"]
	codes, all := codesOf(theirs.Components.Schemas["Error"]), codesOf(ours.Components.Schemas["Error"])
	for _, code := range codes {
		if !slices.Contains(all, code) {
			t.Errorf("no TradeError has the code %v", code)
		}
	}
	both := 0
	for name, schema := range ours.Components.Schemas {
		other, has := theirs.Components.Schemas[name]
		if !has {
			continue
		}
		if both++; !reflect.DeepEqual(schema, translated(other)) {
			t.Errorf("%s is another schema in openapi.json", name)
		}
	}
	if both < 20 {
		t.Errorf("%d schemas are in both", both)
	}
}

// codesOf removes the list of codes from the schema of refusals and returns it: sockets have more
// codes.
func codesOf(schema any) []any {
	code := schema.(map[string]any)["properties"].(map[string]any)["code"].(map[string]any)
	all := code["enum"].([]any)
	delete(code, "enum")
	return all
}

// translated returns a schema of OpenAPI 3.0 as a JSON Schema.
func translated(schema any) any {
	switch s := schema.(type) {
	case []any:
		list := make([]any, len(s))
		for i := range s {
			list[i] = translated(s[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for key, value := range s {
			object[key] = translated(value)
		}
		if object["nullable"] == true {
			object["type"] = []any{object["type"], "null"}
			delete(object, "nullable")
		}
		if example, has := object["example"]; has {
			object["examples"] = []any{example}
			delete(object, "example")
		}
		return object
	}
	return schema
}
