package raft

import "testing"

// TestCommon: nothing is in common before all members, learners as well, have said something.
func TestCommon(t *testing.T) {
	s := Standing{Voters: []uint64{1, 2, 3}, Learners: []uint64{4}}
	for _, c := range []struct {
		said map[uint64]uint16
		want uint16
	}{
		{map[uint64]uint16{1: 7, 2: 7, 3: 7, 4: 7, 5: 1}, 7}, // 5 is no member any more
		{map[uint64]uint16{1: 8, 2: 7, 3: 8, 4: 9}, 7},
		{map[uint64]uint16{1: 7, 2: 7, 3: 7}, 0},
		{map[uint64]uint16{1: 7, 2: 7, 4: 7}, 0},
		{map[uint64]uint16{2: 7, 3: 7, 4: 7}, 0},
		{nil, 0},
	} {
		if got := s.Common(c.said); got != c.want {
			t.Errorf("%v: %d, not %d", c.said, got, c.want)
		}
	}
	if got := new(Standing).Common(map[uint64]uint16{1: 7}); got != 0 {
		t.Errorf("nobody: %d", got)
	}
}
