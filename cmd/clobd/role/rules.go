package role

import (
	"cmp"
	"fmt"

	"clobd/engine"
)

// knows are the versions of the engine's rules that a program can apply: the oldest and the latest.
type knows [2]uint16

// known are those of this program.
func known() knows { return knows{engine.Oldest, engine.Version} }

// latest is the last of them. The programs of before said nothing, and knew version 6.
func (k knows) latest() uint16 { return cmp.Or(k[1], 6) }

// misfit says why a program has no place where a version is in force, "" if it has one.
func (k knows) misfit(inForce uint16) string {
	switch {
	case k.latest() < inForce:
		return fmt.Sprintf("its clobd knows the rules up to version %d, and version %d is in force: "+
			"start a later clobd", k.latest(), inForce)
	case k[0] > inForce:
		return fmt.Sprintf("its clobd knows the rules from version %d on, and version %d is in force: "+
			"start one that knows both on each member before", k[0], inForce)
	}
	return ""
}

// version is the version of the rules in force, as far as this node shows.
func (a *Common) version() uint16 { return uint16(a.Board.Version.Load()) }

// raising is how many times in a row all members must have known a later version of the rules: an
// operator may start a member with its old program again.
const raising = 3

// raise counts in how many looks in a row all members, gateways as well, knew a later version of
// the rules than the one in force, and at last puts the version in force that all know. Only the
// member that leads does. Who cannot be asked keeps all others from later rules, until he is there
// or removed.
func (m contest) raise(agreed int) int {
	m.look()
	said := map[uint64]uint16{m.cluster.ID: engine.Version}
	if found := m.surveyed.Load(); found != nil {
		for id, w := range *found {
			said[id] = w.Knows.latest()
		}
	}
	s := m.glimpse()
	to := s.Common(said)
	if !m.Leads() || to <= m.version() {
		return 0
	}
	if agreed++; agreed < raising {
		return agreed
	}
	call, err := m.enterHere(&engine.Command{Kind: engine.Raise, Seen: engine.Sequence(to)})
	if err == nil {
		_, err = call.Wait()
	}
	if err != nil {
		m.options.Log.Warn("later rules are not in force yet", "version", to, "error", err)
	} else {
		m.options.Log.Info("later rules are in force: all members know them", "version", to)
	}
	return 0
}
