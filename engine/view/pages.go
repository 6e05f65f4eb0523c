package view

import "sync/atomic"

const pageRows = 512

// pages is an array that one writer grows while anybody reads: rows never move. Row 0 is never
// used.
type pages[T any] struct {
	spine atomic.Pointer[[]*[pageRows]T]
}

// at is row i, nil if the array is not that long.
func (p *pages[T]) at(i uint32) *T {
	spine := p.spine.Load()
	if spine == nil || int(i/pageRows) >= len(*spine) {
		return nil
	}
	return &(*spine)[i/pageRows][i%pageRows]
}

// grow is row i, made if need be. Readers that hold the old spine never look beyond its length, so
// that both may share their memory.
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
