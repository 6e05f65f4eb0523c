package raft

import (
	"crypto/sha256"

	"clobd/engine"
	"clobd/journal"
)

// supplied is about how many bytes of the log are read for one answer to a member that heals.
const supplied = 2 << 20

// Supply reads committed entries from low on, at least one if there is one, without the frames in
// omit, which are in order: the other member has them. An error that is damage is one of this
// journal.
func Supply(j *journal.Journal, low uint64, omit []journal.Frames) (*journal.Supply, error) {
	a := journal.Member(j)
	commit, _ := a.Committed()
	entries, err := a.Entries(max(low, 1), commit+1, supplied)
	if err != nil {
		return nil, err
	}
	s := &journal.Supply{Entries: entries, Commit: commit}
	var f engine.Frame
	for i := range entries {
		e := &entries[i]
		if e.Kind != 0 || len(e.Data) == 0 {
			continue
		}
		if err := engine.DecodeUnhashed(e.Data, &f); err != nil {
			return nil, &journal.Break{Frame: f.No, Path: j.Path, What: "damaged", Err: err}
		}
		s.Frame, s.Hash = f.No, sha256.Sum256(e.Data)
		for len(omit) > 0 && f.No > omit[0].Last {
			omit = omit[1:]
		}
		if len(omit) > 0 && f.No >= omit[0].First {
			e.Data, e.Head.Frame = nil, f.No
		}
	}
	return s, nil
}
