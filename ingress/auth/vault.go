package auth

import "sync"

// vaultSize is one page of the system: room for more secrets than a node has.
const vaultSize = 4096

// Vault keeps secrets in one place of memory that the system neither swaps out nor writes into a
// core dump, where it can do that. A secret in it stays until the process ends. Any goroutine may
// use it.
type Vault struct {
	mutex sync.Mutex
	page  []byte // what is left of it
}

// NewVault makes a Vault. The error says why its memory is not locked; it works all the same.
func NewVault() (*Vault, error) {
	page, err := lockedPage(vaultSize)
	if page == nil {
		page = make([]byte, vaultSize)
	}
	return &Vault{page: page}, err
}

// Keep moves a secret into the Vault: the caller's copy is zero afterwards.
func (v *Vault) Keep(secret *[32]byte) *[32]byte {
	kept := (*[32]byte)(v.room(len(secret)))
	copy(kept[:], secret[:])
	clear(secret[:])
	return kept
}

// KeepText moves a text into the Vault: the caller's copy is zero afterwards.
func (v *Vault) KeepText(text []byte) []byte {
	kept := v.room(len(text))
	copy(kept, text)
	clear(text)
	return kept
}

// room returns n bytes that nobody else has.
func (v *Vault) room(n int) []byte {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if len(v.page) < n {
		v.page = make([]byte, max(vaultSize, n)) // not locked: better than no node
	}
	kept := v.page[:n:n]
	v.page = v.page[n:]
	return kept
}
