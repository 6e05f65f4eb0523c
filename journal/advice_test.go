package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"clobd/journal/disk"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestAdvice: what to do can be told apart from what happened, however the error was wrapped.
func TestAdvice(t *testing.T) {
	damaged := vfs.NewMem()
	j, err := Open(Options{Dir: "d", FS: damaged})
	if err != nil {
		t.Fatal(err)
	}
	_, inUse := Open(Options{Dir: "d", FS: damaged})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := damaged.List("d/journal")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST") {
			if err := damaged.Remove("d/journal/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, torn := Open(Options{Dir: "d", FS: damaged})
	newer := meta{format: Version + 1, id: 1}
	never, nameless := meta{id: 1}, meta{format: Version}
	for _, c := range []struct {
		err         error
		what, wants string
	}{
		{inUse, "is in use by this process", "stop that one, or give this one another folder"},
		{torn, "open journal d/journal: ", "if another version of clobd wrote it"},
		{newer.judge("p"), "of a newer version", "start it with the version of clobd that wrote it"},
		{never.judge("p"), "unknown layout version", disk.HintDamaged},
		{nameless.judge("p"), "has no ID", disk.HintDamaged},
		{&Break{What: "damaged"}, "damaged", "nothing was changed: clobd recover"},
		{&Break{What: "odd", Hint: "report it"}, "odd", "report it"},
		{errors.New("plain; text"), "plain; text", ""},
	} {
		err := fmt.Errorf("outer: %w", c.err)
		advice := Advice(err)
		if !strings.HasPrefix(advice, c.wants) || (advice == "") != (c.wants == "") {
			t.Errorf("%v: advice %q", err, advice)
		}
		what, _, found := strings.Cut(err.Error(), "; "+advice)
		if advice != "" && !found || !strings.Contains(what, c.what) && c.wants != "" {
			t.Errorf("%v: %q is not advice behind %q", err, advice, c.what)
		}
	}
}
