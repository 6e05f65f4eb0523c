package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestPrint: one error: line for each failure, and what to do behind it.
func TestPrint(t *testing.T) {
	plain, other := errors.New("a"), errors.New("b")
	hinted := Hint(plain, "do %d", 1)
	for _, c := range []struct {
		err  error
		want string
	}{
		{plain, "error: a\n"},
		{hinted, "error: a\nhint: do 1\n"},
		{fmt.Errorf("x: %w", hinted), "error: x: a\nhint: do 1\n"},
		{&BrokenError{hinted}, "error: a\nhint: do 1\n"},
		{fmt.Errorf("%w: %w", other, hinted), "error: b: a\nhint: do 1\n"},
		{errors.Join(hinted, other), "error: a\nhint: do 1\nerror: b\n"},
		{&UsageError{Hint(errors.Join(other, hinted), "all")}, "error: b\nerror: a\nhint: do 1\nhint: all\n"},
	} {
		var b strings.Builder
		if Print(&b, c.err); b.String() != c.want {
			t.Errorf("got %q, want %q", b.String(), c.want)
		}
	}
}

func TestCodes(t *testing.T) {
	plain := errors.New("a")
	for _, c := range []struct {
		err  error
		want int
	}{
		{plain, Failed}, {Hint(plain, "x"), Failed}, {&UsageError{plain}, Usage},
		{&BrokenError{plain}, Broken}, {fmt.Errorf("x: %w", &BrokenError{plain}), Broken},
		{errors.Join(plain, Hint(&BrokenError{plain}, "x")), Broken},
	} {
		if got := codeOf(c.err); got != c.want {
			t.Errorf("%v: code %d, want %d", c.err, got, c.want)
		}
	}
}

type served struct {
	Data string
	got  *string
}

func (c *served) Run() error { *c.got = "serve " + c.Data; return nil }

type acted struct {
	Data, From string
	Accept     bool
	got        *string
}

func (c *acted) Run() error { *c.got = fmt.Sprint("act ", c.Data, c.From, c.Accept); return nil }

// TestEnvironment: it holds what a server is set to, for all commands, and agrees to nothing.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"DATA": "d", "FROM": "f", "ACCEPT": "true"} {
		t.Setenv("PROGRAM_"+name, value)
	}
	var got string
	type both struct {
		Serve served `cmd:""`
		Act   acted  `cmd:""`
	}
	type alone struct {
		Act acted `cmd:""`
	}
	for _, c := range []struct {
		commands any
		args     []string
		want     string
	}{
		{&both{served{got: &got}, acted{got: &got}}, []string{"serve"}, "serve d"},
		{&both{served{got: &got}, acted{got: &got}}, []string{"act"}, "act dfalse"},
		{&both{served{got: &got}, acted{got: &got}}, []string{"act", "--accept"}, "act dtrue"},
		{&alone{acted{got: &got}}, []string{"act"}, "act dftrue"},
	} {
		if code := Run("program", "", c.commands, c.args); code != Done || got != c.want {
			t.Errorf("%v: code %d, %q, want %q", c.args, code, got, c.want)
		}
	}
}
