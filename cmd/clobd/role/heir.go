package role

import (
	"context"
	"slices"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal/raft"
)

// heir is the voter that should lead if this member does not: of those that answer, and would take
// over, one that is well, with the highest priority, and then with most of the log. Who is well has
// its spare Exchange, room on its disk, and a clock that is right. 0: there is none.
func (m fellow) heir() (id uint64, well bool) {
	var ids []uint64
	match := map[uint64]uint64{}
	_ = m.peer.Ask(func(c *raft.Core) {
		last := c.Match(m.cluster.ID)
		for _, v := range c.Standing().Voters {
			// One that lacks much would not have it before the hand-over is given up.
			if match[v] = c.Match(v); match[v] > 0 && match[v]+mostBehind >= last {
				ids = append(ids, v)
			}
		}
	})
	all := []contender{{}} // nobody is worse
	for id, w := range canvass(m, ids, greetTime) {
		if !w.Unfit {
			all = append(all, contender{id, w.well(), w.Priority, match[id]})
		}
	}
	best := slices.MaxFunc(all, better)
	return best.id, best.well
}

// passGap is the pause between two attempts to let somebody else lead.
const passGap = 500 * time.Millisecond

// passOn lets another voter lead while the spare Exchange of this one is still being made, because
// nothing is written meanwhile. If none is well this member waits for its own.
func (m fellow) passOn(l *raft.Lead, ended func() bool) {
	for !ended() && !m.spare.isReady(l.Head.Frame) {
		if to, well := m.heir(); well {
			m.options.Log.Info("another node may lead at once, this one not yet", "node", m.called(to))
			_ = m.peer.Ask(func(c *raft.Core) { c.Transfer(to) })
		}
		for end := time.Now().Add(passGap); time.Now().Before(end) && !ended() &&
			!m.spare.isReady(l.Head.Frame); {
			time.Sleep(glance)
		}
	}
}

// watchDisk hands the lead over while this member's disk is full, if another voter is well.
func (m fellow) watchDisk() {
	for told := false; ; {
		if full := m.Leads() && m.options.Full(); full {
			err := m.stepDown(context.Background(), true)
			if !told {
				m.options.Log.Warn("the disk is full: another node is to lead", "error", err)
			}
			told = err != nil
		} else {
			told = false
		}
		select {
		case <-time.After(passGap):
		case <-m.closing:
			return
		}
	}
}

// grows reports whether a Command makes the journal longer for the sake of its sender: a full disk
// takes no such one, and the door of a node neither.
func grows(c *engine.Command) bool {
	switch c.Kind {
	case engine.Place, engine.SplitTokens, engine.MergeTokens, engine.RedeemTokens:
		return true
	case engine.SetKey:
		return !c.Revoke
	}
	return false
}

// enterForwarded is enterHere for Commands that another node's door has taken: that one does not
// know how full this disk is.
func (m fellow) enterForwarded(c *engine.Command) (*sequencer.Call, error) {
	if grows(c) && m.options.Full() {
		return nil, sequencer.ErrBusy
	}
	return m.enterHere(c)
}

func (m fellow) enterAllForwarded(commands []engine.Command, calls []*sequencer.Call) error {
	if m.options.Full() && slices.ContainsFunc(commands, func(c engine.Command) bool {
		return grows(&c)
	}) {
		return sequencer.ErrBusy
	}
	return m.enterAllHere(commands, calls)
}
