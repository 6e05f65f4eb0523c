package memory

import (
	"fmt"
	"slices"
	"sync"

	"clobd/engine"
)

// Journal is a sequencer.Journal without a disk. Its zero value is ready. Set the exported fields
// before the first use.
type Journal struct {
	// Drop makes it forget the frames instead of keeping them.
	Drop bool
	// OnAppend and OnWait, if set, run before Append and Wait of a frame with its number. They may
	// sleep, block, or fail; the first failure is final.
	OnAppend, OnWait func(frame uint64) error

	mutex  sync.Mutex
	frames [][]byte
	last   uint64 // number of the last frame
	err    error
}

// Append keeps the next frame.
func (m *Journal) Append(f *engine.Frame) error {
	if err := m.call(m.OnAppend, f.No); err != nil {
		return err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.last != 0 && f.No != m.last+1 {
		panic(fmt.Sprintf("BUG: frame %d appended after %d", f.No, m.last))
	}
	m.last = f.No
	if !m.Drop {
		m.frames = append(m.frames, f.Bytes)
	}
	return nil
}

// Wait returns at once, unless OnWait waits or fails.
func (m *Journal) Wait(frame uint64) error { return m.call(m.OnWait, frame) }

// Frames returns the encoded frames appended so far, in order, durable or not.
func (m *Journal) Frames() [][]byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.frames)
}

// call runs hook and keeps the first failure for good.
func (m *Journal) call(hook func(uint64) error, frame uint64) error {
	m.mutex.Lock()
	err := m.err
	m.mutex.Unlock()
	if err != nil || hook == nil {
		return err
	}
	if err = hook(frame); err != nil {
		m.mutex.Lock()
		m.err = err
		m.mutex.Unlock()
	}
	return err
}
