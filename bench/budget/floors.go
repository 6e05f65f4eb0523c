package budget

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/crypto/sha3"
)

// Floor is what a stage's work costs where nothing else is done: CPU time of one operation, the
// least of several series.
type Floor struct {
	Stage  Stage   `json:"stage"`
	Micros float64 `json:"micros"`
	What   string  `json:"what"`
}

// A floor is the least of so many series, each at least so long: the kernel's CPU clock of a thread
// that runs moves in ticks of 1 to 10 ms.
const (
	series = 5
	lasts  = 60 * time.Millisecond
)

// spent is the CPU time of a call in µs on one thread.
func spent(call func()) (micros float64, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range series {
		before, beforeErr := threadTime()
		n := 0
		for began := time.Now(); time.Since(began) < lasts; n += 16 {
			for range 16 {
				call()
			}
		}
		after, afterErr := threadTime()
		if err := errors.Join(beforeErr, afterErr); err != nil {
			return 0, err
		}
		each := float64((after - before).Nanoseconds()) / 1e3 / float64(n)
		if micros == 0 || each < micros {
			micros = each
		}
	}
	return micros, nil
}

// threadTime is user plus system time of the calling thread.
func threadTime() (time.Duration, error) {
	const thread = 1 // RUSAGE_THREAD, which package syscall has no name for
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// Crypto measures the floors of a request's cryptography: the HMAC of a body of so many bytes, the
// hashes of an order, and, where there is cgo, the check of a signature by libsecp256k1, which has
// no table of its signer.
func Crypto(body int) ([]Floor, error) {
	key, message := make([]byte, 32), make([]byte, body)
	key[31] = 1
	mac := hmac.New(sha256.New, key)
	sum := make([]byte, 0, sha256.Size)
	macs, err := spent(func() {
		mac.Reset()
		mac.Write(message)
		sum = mac.Sum(sum[:0])
	})
	if err != nil {
		return nil, err
	}
	// The words of an order of the second struct and its type, then the 66 bytes of the typed text.
	order, typed := make([]byte, 12*32), make([]byte, 66)
	hash := sha3.NewLegacyKeccak256()
	hashes, err := spent(func() {
		for _, text := range [][]byte{order, typed} {
			hash.Reset()
			hash.Write(text)
			sum = hash.Sum(sum[:0])
		}
	})
	if err != nil {
		return nil, err
	}
	floors := []Floor{{Authenticate, macs, "HMAC-SHA256 of the body"},
		{Hash, hashes, "Keccak-256 of 384 and of 66 bytes"}}
	checks, err := check(sum, key)
	if checks > 0 {
		floors = append(floors, Floor{Signature, checks,
			"libsecp256k1, a check without a table of the signer"})
	}
	return floors, err
}

// Disk measures what a frame of so many bytes costs that is written to a file in a folder, and what
// its sync costs. Both are of one frame.
func Disk(dir string, frame int) (floors []Floor, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "floor"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a file: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}()
	text := make([]byte, frame)
	var failed error
	put := func() {
		_, err := f.WriteAt(text, 0)
		failed = errors.Join(failed, err)
	}
	writes, err := spent(put)
	if err != nil {
		return nil, err
	}
	both, err := spent(func() {
		put()
		failed = errors.Join(failed, syscall.Fdatasync(int(f.Fd())))
	})
	return []Floor{{Write, writes, "pwrite of a frame's bytes"},
		{Sync, max(both-writes, 0), "fdatasync after that"}}, errors.Join(err, failed)
}
