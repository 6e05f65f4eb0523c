package asyncapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"clobd/scripts/openapi"
)

// Protocol is the parsed document, with its references resolved. Any number of goroutines may use
// it.
type Protocol struct {
	channels map[string]*channel // by address
}

// channel lists the messages that either side may send on a socket.
type channel struct {
	said, sent []*utterance            // messages of the node, and of clients
	answers    map[string][]*utterance // messages that answer a request, by method
}

// utterance is one documented message.
type utterance struct {
	name   string
	bare   string // the whole message, if it is not JSON
	kind   string // the only value of event_type or method, "" if there is neither
	list   bool   // the message is an array
	last   []string
	schema *jsonschema.Schema
}

// written is the JSON of a document. The document must not have members that are missing here.
type written struct {
	Version     string                    `json:"asyncapi"`
	Info        map[string]string         `json:"info"`
	ContentType string                    `json:"defaultContentType"`
	Servers     json.RawMessage           `json:"servers"`
	Channels    map[string]writtenChannel `json:"channels"`
	Operations  map[string]writtenAction  `json:"operations"`
	Components  struct {
		Messages map[string]writtenMessage `json:"messages"`
		Schemas  map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

type writtenChannel struct {
	Address     string               `json:"address"`
	Title       string               `json:"title"`
	Description string               `json:"description"`
	Messages    map[string]reference `json:"messages"`
	Bindings    json.RawMessage      `json:"bindings"`
	CloseCodes  map[string]string    `json:"x-close-codes"`
}

type writtenAction struct {
	Action   string      `json:"action"`
	Channel  reference   `json:"channel"`
	Summary  string      `json:"summary"`
	Messages []reference `json:"messages"`
	Reply    *struct {
		Channel  reference   `json:"channel"`
		Messages []reference `json:"messages"`
	} `json:"reply"`
}

type writtenMessage struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	ContentType string          `json:"contentType"`
	Payload     map[string]any  `json:"payload"`
	Correlation json.RawMessage `json:"correlationId"`
	Examples    []struct {
		Payload json.RawMessage `json:"payload"`
	} `json:"examples"`
}

type reference struct {
	To string `json:"$ref"`
}

// Load reads the document of the module that contains the working folder. The error says what is
// wrong with the document.
func Load() (*Protocol, error) {
	root, err := openapi.Module()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(root, "api", "asyncapi.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Parse parses and validates a document.
func Parse(text []byte) (*Protocol, error) {
	var f written
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&f); err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
	}
	if f.Version != "3.0.0" {
		return nil, fmt.Errorf("version %q of AsyncAPI, want 3.0.0", f.Version)
	}
	messages, err := f.compile(text)
	if err != nil {
		return nil, err
	}
	d := &Protocol{channels: map[string]*channel{}}
	for _, c := range f.Channels {
		d.channels[c.Address] = &channel{answers: map[string][]*utterance{}}
	}
	for name, o := range f.Operations {
		if err := d.link(&f, &o, messages); err != nil {
			return nil, fmt.Errorf("operation %s: %w", name, err)
		}
	}
	return d, nil
}

// compile compiles the schemas of the messages, and checks each message's examples.
func (f *written) compile(text []byte) (map[string]*utterance, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
	}
	const url = "file:///asyncapi.json"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft7)
	if err := c.AddResource(url, root); err != nil {
		return nil, fmt.Errorf("parse the document: %w", err)
	}
	all := map[string]*utterance{}
	for key, m := range f.Components.Messages {
		schema, err := c.Compile(url + "#/components/messages/" + key + "/payload")
		if err != nil {
			return nil, fmt.Errorf("message %s: %w", key, err)
		}
		one := f.describe(key, &m)
		one.schema, all[key] = schema, one
		for _, e := range m.Examples {
			said := []byte(e.Payload)
			if one.bare != "" {
				said = bytes.Trim(said, `"`)
			}
			if err := check([]*utterance{one}, said); err != nil {
				return nil, fmt.Errorf("example of %s: %w", key, err)
			}
		}
	}
	return all, nil
}

// describe finds the features by which a message is told from others.
func (f *written) describe(key string, m *writtenMessage) *utterance {
	one := &utterance{name: key}
	payload := f.resolve(m.Payload)
	last, _ := payload["x-last"].([]any)
	if items, is := payload["items"].(map[string]any); is {
		one.list, payload = true, f.resolve(items)
	}
	if m.ContentType == "text/plain" {
		one.bare = word(payload)
		return one
	}
	if last == nil {
		last, _ = payload["x-last"].([]any)
	}
	for _, name := range last {
		one.last = append(one.last, fmt.Sprint(name))
	}
	members, _ := payload["properties"].(map[string]any)
	for _, name := range []string{"event_type", "method"} {
		if member, is := members[name].(map[string]any); is {
			one.kind = word(member)
		}
	}
	return one
}

// resolve returns the schema that a reference names, or the schema itself if it is no reference.
func (f *written) resolve(schema map[string]any) map[string]any {
	to, _ := schema["$ref"].(string)
	if name, is := strings.CutPrefix(to, "#/components/schemas/"); is {
		return f.Components.Schemas[name]
	}
	return schema
}

// word returns the only string that a schema allows, "" if it allows more.
func word(schema map[string]any) string {
	if words, _ := schema["enum"].([]any); len(words) == 1 {
		text, _ := words[0].(string)
		return text
	}
	return ""
}

// link adds the messages of an operation to its channel.
func (d *Protocol) link(f *written, o *writtenAction, messages map[string]*utterance) error {
	key := strings.TrimPrefix(o.Channel.To, "#/channels/")
	at, known := f.Channels[key]
	if !known {
		return fmt.Errorf("no channel %s", o.Channel.To)
	}
	find := func(list []reference) (found []*utterance, err error) {
		for _, r := range list {
			name, of := strings.CutPrefix(r.To, "#/channels/"+key+"/messages/")
			target, listed := at.Messages[name]
			m := messages[strings.TrimPrefix(target.To, "#/components/messages/")]
			if !of || !listed || m == nil {
				return nil, fmt.Errorf("%s is no message of the channel", r.To)
			}
			found = append(found, m)
		}
		return found, nil
	}
	c := d.channels[at.Address]
	own, err := find(o.Messages)
	if err != nil {
		return err
	}
	switch o.Action {
	case "send":
		c.said = append(c.said, own...)
	case "receive":
		c.sent = append(c.sent, own...)
	default:
		return fmt.Errorf("action %q", o.Action)
	}
	if o.Reply == nil {
		return nil
	}
	if o.Reply.Channel != o.Channel {
		return errors.New("the answer comes on another channel")
	}
	answers, err := find(o.Reply.Messages)
	if err != nil {
		return err
	}
	c.said = append(c.said, answers...)
	for _, m := range own {
		c.answers[m.kind] = append(c.answers[m.kind], answers...)
	}
	return nil
}
