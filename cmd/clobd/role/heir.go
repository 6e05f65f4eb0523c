package role

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"clobd/engine"
	"clobd/engine/sequencer"
	"clobd/journal/raft"
)

// heir is the voter that should lead if this member does not: of those that are well the one with
// the highest priority, and then with most of the log. Who is well has its spare Exchange, room on
// its disk, and a clock that is right. If nobody is, well is false. Those that are unfit would not
// take over at all.
func (m fellow) heir() (id uint64, well bool, unfit map[uint64]bool) {
	unfit = map[uint64]bool{}
	var voters []uint64
	match, last := map[uint64]uint64{}, uint64(0)
	_ = m.peer.Ask(func(c *raft.Core) {
		voters, last = c.Standing().Voters, c.Match(m.cluster.ID)
		for _, v := range voters {
			match[v] = c.Match(v)
		}
	})
	var mutex sync.Mutex
	var good []contender
	var asked sync.WaitGroup
	for _, v := range voters {
		if v == m.cluster.ID || match[v] == 0 || match[v]+mostBehind < last {
			continue // one that lacks much would not have it before the hand-over is given up
		}
		asked.Go(func() {
			w, err := m.ask(v)
			mutex.Lock()
			defer mutex.Unlock()
			if unfit[v] = err == nil && w.Unfit; err == nil && w.well() {
				good = append(good, contender{v, w.Priority, match[v]})
			}
		})
	}
	all := make(chan struct{})
	go func() {
		asked.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(greetTime): // a voter that does not answer is not well
	}
	mutex.Lock()
	defer mutex.Unlock()
	unfit = maps.Clone(unfit) // the late ones may still write theirs
	if len(good) == 0 {
		return 0, false, unfit
	}
	return slices.MaxFunc(good, better).id, true, unfit
}

// passGap is the pause between two attempts to let somebody else lead.
const passGap = 500 * time.Millisecond

// passOn lets another voter lead while the spare Exchange of this one is still being made, because
// nothing is written meanwhile. If none is well this member waits for its own.
func (m fellow) passOn(l *raft.Lead, ended func() bool) {
	for !ended() && !m.spare.isReady(l.Head.Frame) {
		if to, well, _ := m.heir(); well {
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
