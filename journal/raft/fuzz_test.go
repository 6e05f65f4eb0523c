package raft

import (
	"testing"

	"clobd/engine"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// script makes messages of bytes: small numbers, so that many of them nearly fit.
type script struct{ rest []byte }

func (s *script) byte() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// number is small, or very large.
func (s *script) number() *uint64 {
	switch b := s.byte(); {
	case b < 240:
		return new(uint64(b % 24))
	case b < 244:
		return nil
	default:
		return new(1<<64 - 1 - uint64(b-244)<<58)
	}
}

// message is the next one.
func (s *script) message(frames [][]byte) *pb.Message {
	if s.byte()%16 == 15 { // any bytes
		n := min(int(s.byte()), len(s.rest))
		m := new(pb.Message)
		if proto.Unmarshal(s.rest[:n], m) != nil {
			m = nil
		}
		s.rest = s.rest[n:]
		return m
	}
	m := &pb.Message{Type: pb.MessageType(s.byte() % 25).Enum(), To: new(uint64(2)),
		From: new([]uint64{1, 1, 1, 3, 3, 4, 9, 0}[s.byte()%8]), Term: s.number(), Index: s.number(),
		LogTerm: s.number(), Commit: s.number(), RejectHint: s.number(), Vote: s.number()}
	flags := s.byte()
	m.Reject = new(flags&1 != 0)
	if flags&2 != 0 {
		m.Context = make([]byte, s.byte()%17)
	}
	if flags&4 != 0 {
		m.Snapshot = &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: s.number(),
			ConfState: &pb.ConfState{Voters: []uint64{uint64(s.byte())}}}}
	}
	index := m.GetIndex()
	for range s.byte() % 5 {
		index++
		e := &pb.Entry{Index: new(index), Term: s.number(), Type: pb.EntryNormal.Enum()}
		switch kind := s.byte(); {
		case kind < 100:
			e.Data = frames[int(kind)%len(frames)]
		case kind < 140:
			e.Data = s.rest[:min(len(s.rest), int(kind)-100)]
		case kind < 200:
			e.Type = pb.EntryConfChange.Enum()
			e.Data, _ = proto.Marshal(&pb.ConfChange{
				Type: pb.ConfChangeType(s.byte() % 4).Enum(), NodeId: s.number(), Id: s.number()})
		case kind < 210:
			e.Type, e.Data = pb.EntryType(kind%3).Enum(), s.rest[:min(len(s.rest), 9)]
		case kind < 220:
			e = nil
		case kind < 230:
			e.Index = s.number()
		}
		m.Entries = append(m.Entries, e)
	}
	return m
}

// FuzzStep: whatever other members say, in whatever state this one is, it neither panics nor ends.
func FuzzStep(f *testing.F) {
	maker := &scribe{Lead: &Lead{Term: 2}, x: engine.NewExchange(7)}
	var frames [][]byte
	for range 3 {
		frames = append(frames, maker.frame().Bytes)
	}
	// A leader of term 2 appends a frame, and speaks of it; the member campaigns.
	head := []byte{0, byte(pb.MsgApp), 0, 2, 4, 1, 4, 0, 0, 0, 1, 2, 0}
	f.Add(append(append([]byte{1}, head...), 0, 0, byte(pb.MsgHeartbeat), 0, 2, 0, 0, 5, 0, 0, 0, 0))
	f.Add([]byte{4, 255, 255, 255, 1, 0, byte(pb.MsgPreVoteResp), 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 255,
		1, 0, byte(pb.MsgVoteResp), 0, 2, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := newStill(t, []Founder{{ID: 2}, {ID: 1}, {ID: 3}, {ID: 4, Learns: true}})
		c, in := s.cores[2], &script{b}
		s.down[1], s.down[3], s.down[4] = true, true, true
		for range 64 {
			if len(in.rest) == 0 {
				break
			}
			switch op := in.byte(); {
			case op < 160:
				c.Step(in.message(frames))
			case op < 200:
				s.settle()
			case op < 220:
				c.Confirm(func(engine.Head, error) {})
			default:
				for range int(op) - 219 {
					c.Tick()
				}
			}
		}
		s.settle()
	})
}
