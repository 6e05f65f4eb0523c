package role

import (
	"strings"
	"testing"

	"clobd/engine"
)

// TestMisfit: a member has a place where its program knows the rules in force. A program that does
// not say what it knows is of before there were two versions.
func TestMisfit(t *testing.T) {
	const v = 6
	for _, c := range []struct {
		knows   knows
		inForce uint16
		want    string
	}{
		{known(), v, ""},
		{known(), engine.Version, ""},
		{knows{v, v + 1}, v, ""},
		{knows{v, v + 1}, v + 1, ""},
		{knows{v, v}, v + 1, "start a later clobd"},
		{knows{v + 1, v + 2}, v, "start one that knows both"},
		{knows{}, v, ""},
		{knows{}, v + 1, "start a later clobd"},
	} {
		got := c.knows.misfit(c.inForce)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v where %d is in force: %q", c.knows, c.inForce, got)
		}
	}
}
