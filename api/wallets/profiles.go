package wallets

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"clobd/api/wire"
	"clobd/engine"
)

// Profile is what the operator says of a wallet. Any field may be empty.
type Profile struct {
	Name      string `json:"name"`
	Pseudonym string `json:"pseudonym"`
	Bio       string `json:"bio"`
	Image     string `json:"profileImage"`
	Thumbnail string `json:"profileImageOptimized"`
	Public    bool   `json:"displayUsernamePublic"`
}

// Profiles are read from a file: a JSON array of objects with proxyWallet, the address of a wallet,
// and any members of Profile. Any number of goroutines may call Of.
type Profiles struct {
	path string
	log  *slog.Logger
	seen os.FileInfo // of the file that all was read from; only Run uses it
	all  atomic.Pointer[map[engine.Address]Profile]
}

const (
	profileBytes = 64 << 20 // of the file: a mistaken path must not fill the memory
	profileText  = 2000     // characters of one text
	profileEvery = 2 * time.Second
)

// OpenProfiles reads the file. The error names the file and the mistake. Run writes to log.
func OpenProfiles(path string, log *slog.Logger) (*Profiles, error) {
	p := &Profiles{path: path, log: log}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// Run reads the file again whenever it changes, until ctx is done. A file with a mistake is logged
// once and changes nothing.
func (p *Profiles) Run(ctx context.Context) {
	every := time.NewTicker(profileEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			p.refresh()
		}
	}
}

func (p *Profiles) refresh() {
	now, err := os.Stat(p.path)
	if err == nil && p.seen != nil && os.SameFile(now, p.seen) &&
		now.ModTime().Equal(p.seen.ModTime()) && now.Size() == p.seen.Size() {
		return
	}
	if err == nil {
		err = p.read()
	} else if p.seen == nil {
		return // logged before
	}
	if err != nil {
		p.log.Error("the profiles stay as they were", "path", p.path, "err", err)
		p.seen = now
		return
	}
	p.log.Info("profiles", "path", p.path, "wallets", len(*p.all.Load()))
}

func (p *Profiles) read() error {
	f, err := os.Open(p.path)
	if err != nil {
		return fmt.Errorf("open profiles: %w", err)
	}
	defer f.Close()
	seen, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open profiles: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(f, profileBytes+1))
	if err == nil && len(b) > profileBytes {
		err = fmt.Errorf("more than %d bytes", profileBytes)
	}
	var all map[engine.Address]Profile
	if err == nil {
		all, err = parseProfiles(b)
	}
	if err != nil {
		return fmt.Errorf("read profiles %s: %w", p.path, err)
	}
	p.seen = seen
	p.all.Store(&all)
	return nil
}

func parseProfiles(b []byte) (map[engine.Address]Profile, error) {
	var entries []struct {
		Wallet string `json:"proxyWallet"`
		Profile
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&entries); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the array")
	}
	all := make(map[engine.Address]Profile, len(entries))
	for i := range entries {
		var a engine.Address
		e := &entries[i]
		if !engine.ParseHex(a[:], e.Wallet) {
			return nil, fmt.Errorf("entry %d: proxyWallet %.50q is no address", i+1, e.Wallet)
		}
		if _, twice := all[a]; twice {
			return nil, fmt.Errorf("entry %d: %s is there twice", i+1, e.Wallet)
		}
		for _, s := range []string{e.Name, e.Pseudonym, e.Bio, e.Image, e.Thumbnail} {
			if utf8.RuneCountInString(s) > profileText {
				return nil, fmt.Errorf("entry %d: a text has more than %d characters", i+1, profileText)
			}
		}
		all[a] = e.Profile
	}
	return all, nil
}

// Of is the profile of a wallet, empty if there is none. A nil Profiles is empty.
func (p *Profiles) Of(a engine.Address) Profile {
	if p == nil {
		return Profile{}
	}
	return (*p.all.Load())[a]
}

// append appends what these routes tell of a wallet beside its address. A text that is not set is
// empty rather than absent: a public client refuses a holder without a name.
func (p *Profile) append(b []byte) []byte {
	b = wire.AppendField(b, "name", p.Name)
	b = wire.AppendField(b, "pseudonym", p.Pseudonym)
	b = wire.AppendField(b, "bio", p.Bio)
	b = wire.AppendField(b, "profileImage", p.Image)
	return wire.AppendField(b, "profileImageOptimized", p.Thumbnail)
}
