//go:build !race

// The race detector allocates on its own.

package auth

import "testing"

// TestListsAllocate nothing when all signers are hot.
func TestListsAllocate(t *testing.T) {
	for _, v := range verifiers(Domains(ChainTest)) {
		list := hotList(t, v, 15, 3)
		if got := allocs(func() { v.VerifyAll(list) }); got != 0 {
			t.Errorf("lanes %v: %v allocations", v.lanes, got)
		}
		for i := range list {
			if list[i].Err != nil {
				t.Errorf("lanes %v: %v", v.lanes, list[i].Err)
			}
		}
	}
}
