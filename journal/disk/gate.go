package disk

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Gate counts the readers of a database, so that closing waits for them and none comes later.
type Gate struct {
	mu   sync.RWMutex
	shut bool
}

// Enter lets a reader in, who must Leave, and says true, unless the gate is shut.
func (g *Gate) Enter() bool {
	g.mu.RLock()
	if g.shut {
		g.mu.RUnlock()
		return false
	}
	return true
}

// Leave ends what Enter began.
func (g *Gate) Leave() { g.mu.RUnlock() }

// Shut waits until all readers have left and lets none in any more; false if it was shut already.
func (g *Gate) Shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := g.shut
	g.shut = true
	return !was
}

// Get copies the value of key into buf; false if there is none.
func Get(db *pebble.DB, key, buf []byte) ([]byte, bool, error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return buf[:0], false, nil
	}
	if err != nil {
		return nil, false, err
	}
	buf = append(buf[:0], v...)
	return buf, true, closer.Close()
}
