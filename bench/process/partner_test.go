package process

import (
	"strings"
	"testing"
)

// TestPartner asks a process, which then complains and ends.
func TestPartner(t *testing.T) {
	p, err := Start(t.Context(), "/bin/sh", "-c",
		`read line; nice; read line; echo "[$line]"; echo "no more" >&2`)
	if err != nil {
		t.Fatal(err)
	}
	defer p.End()
	if err := p.Lower(); err != nil {
		t.Fatal(err)
	}
	nice, list := 0, []string(nil)
	if err := p.Ask("nice", &nice); err != nil || nice != max(Low, Niceness()) {
		t.Errorf("nice %d, %v", nice, err)
	}
	if err := p.Ask("list", &list); err != nil || len(list) != 1 || list[0] != "list" {
		t.Errorf("list %v, %v", list, err)
	}
	if err := p.Hear(&list); err == nil || !strings.Contains(err.Error(), "without an answer") {
		t.Errorf("after the end: %v", err)
	}
	if said := p.End(); said != "no more\n" {
		t.Errorf("it complains of %q", said)
	}
}
