package asyncapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// promise loads the document of this module once.
var promise = sync.OnceValues(Load)

// Check returns an error that says how a message of the node on a channel, such as "/ws/user",
// differs from what the document of this module promises.
func Check(address string, text []byte) error {
	d, err := promise()
	if err != nil {
		return err
	}
	return d.Check(address, text)
}

// CheckSent returns an error that says how a message of a client differs from what the document of
// this module allows.
func CheckSent(address string, text []byte) error {
	d, err := promise()
	if err != nil {
		return err
	}
	return d.CheckSent(address, text)
}

// CheckAnswer is Check for the answer to a request with a method, such as "order.place".
func CheckAnswer(address, method string, text []byte) error {
	d, err := promise()
	if err != nil {
		return err
	}
	return d.CheckAnswer(address, method, text)
}

// Check returns an error that says how a message of the node on a channel differs from what the
// document promises.
func (d *Protocol) Check(address string, text []byte) error {
	return d.on(address, text, func(c *channel) []*utterance { return c.said })
}

// CheckSent returns an error that says how a message of a client on a channel differs from what the
// document allows.
func (d *Protocol) CheckSent(address string, text []byte) error {
	return d.on(address, text, func(c *channel) []*utterance { return c.sent })
}

// CheckAnswer is Check for the answer to a request with a method.
func (d *Protocol) CheckAnswer(address, method string, text []byte) error {
	return d.on(address, text, func(c *channel) []*utterance { return c.answers[method] })
}

func (d *Protocol) on(address string, text []byte, of func(*channel) []*utterance) error {
	c := d.channels[strings.TrimPrefix(address, "/clob")]
	if c == nil {
		return fmt.Errorf("no channel %s is documented", address)
	}
	if err := check(of(c), text); err != nil {
		return fmt.Errorf("on %s: %.600s: %w", address, text, err)
	}
	return nil
}

// check returns an error if text is none of the given messages. The error names the first
// difference from each message that it could be.
func check(all []*utterance, text []byte) error {
	bare := func(m *utterance) bool { return m.bare != "" && m.bare == string(text) }
	if slices.ContainsFunc(all, bare) {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("neither a bare text of the channel nor JSON: %w", err)
	}
	problems := errors.New("no such message is documented")
	for i, m := range candidates(all, value) {
		err := m.schema.Validate(value)
		if err == nil {
			return m.ends(text)
		}
		err = fmt.Errorf("%s: %w", m.name, err)
		if problems = errors.Join(problems, err); i == 0 {
			problems = err
		}
	}
	return problems
}

// candidates returns the messages that a value could be. If the value has event_type or method,
// these are the messages with the same word there.
func candidates(all []*utterance, value any) []*utterance {
	_, list := value.([]any)
	object, _ := value.(map[string]any)
	var some []*utterance
	for _, m := range all {
		if m.bare == "" && m.list == list {
			some = append(some, m)
		}
	}
	kind, has := object["event_type"]
	if !has {
		kind, has = object["method"]
	}
	if !has {
		return some
	}
	return slices.DeleteFunc(some, func(m *utterance) bool { return m.kind != kind })
}

// ends checks what a schema cannot express: which members come last, and that no name comes twice.
func (m *utterance) ends(text []byte) error {
	var objects []json.RawMessage
	if !m.list {
		objects = append(objects, text)
	} else if err := json.Unmarshal(text, &objects); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	for _, o := range objects {
		names, err := keys(o)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if from := len(names) - len(m.last); from < 0 || !slices.Equal(names[from:], m.last) {
			return fmt.Errorf("%s: the last members are not %v, but those of %v", m.name, m.last, names)
		}
	}
	return nil
}

// keys returns the names of an object's members in their order. It returns an error if the text is
// not an object, or a name comes twice.
func keys(object []byte) (names []string, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, fmt.Errorf("begins with %v, not as an object: %w", start, err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("read a name: %w", err)
		}
		name := fmt.Sprint(token)
		if slices.Contains(names, name) {
			return nil, fmt.Errorf("%s comes twice", name)
		}
		names = append(names, name)
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("read the end: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return names, nil
}
