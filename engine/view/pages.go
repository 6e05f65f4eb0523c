package view

import "sync/atomic"

const pageRows = 512

// pages is an array that one writer grows while others read: rows never move. Row 0 is unused.
type pages[T any] struct {
	spine atomic.Pointer[[]*[pageRows]T]
}

// at returns row i, nil if the array is shorter.
func (p *pages[T]) at(i uint32) *T {
	spine := p.spine.Load()
	if spine == nil || int(i/pageRows) >= len(*spine) {
		return nil
	}
	return &(*spine)[i/pageRows][i%pageRows]
}

// grow returns row i and makes missing rows. No reader looks beyond the length of its old spine.
func (p *pages[T]) grow(i uint32) *T {
	var spine []*[pageRows]T
	if old := p.spine.Load(); old != nil {
		spine = *old
	}
	if int(i/pageRows) >= len(spine) {
		for int(i/pageRows) >= len(spine) {
			spine = append(spine, new([pageRows]T))
		}
		p.spine.Store(&spine)
	}
	return &spine[i/pageRows][i%pageRows]
}
