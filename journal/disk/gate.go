package disk

import (
	"errors"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// Gate lets readers into a database until it is shut. Shut waits for those inside.
type Gate struct {
	mu   sync.RWMutex
	shut bool
}

// Enter lets a reader in, who must call Leave; false if the gate is shut.
func (g *Gate) Enter() bool {
	g.mu.RLock()
	if g.shut {
		g.mu.RUnlock()
		return false
	}
	return true
}

// Leave lets a reader out.
func (g *Gate) Leave() { g.mu.RUnlock() }

// Shut lets no more readers in and waits until all have left; false if the gate was shut already.
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
