package auth

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// TestVault: a secret is moved, and the memory that it is moved to is locked and in no dump.
func TestVault(t *testing.T) {
	v, err := NewVault()
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	given, text := [32]byte{1, 2, 3}, []byte("correct horse")
	kept, told := v.Keep(&given), v.KeepText(text)
	if *kept != [32]byte{1, 2, 3} || given != [32]byte{} {
		t.Errorf("kept %x, left %x", *kept, given)
	}
	if string(told) != "correct horse" || text[0] != 0 {
		t.Errorf("kept %q, left %q", told, text)
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	at := uint64(uintptr(unsafe.Pointer(kept)))
	flags := ""
	within := false
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			within = from <= at && at < to
		} else if within && strings.HasPrefix(line, "VmFlags:") {
			flags = line
		}
	}
	for _, want := range []string{" lo", " dd"} { // locked; do not dump
		if !strings.Contains(flags, want) {
			t.Errorf("memory has flags %q, not %s", flags, want)
		}
	}
	for range 2 * vaultSize / 32 { // more than there is room for
		if s := v.Keep(&[32]byte{9}); s[0] != 9 {
			t.Fatal("not kept")
		}
	}
}
