package process

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"
)

// TestColumns asks a terminal and a file how wide they are.
func TestColumns(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	defer terminal.Close()
	want := winsize{rows: 24, columns: 97}
	if _, _, wrong := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), syscall.TIOCSWINSZ,
		uintptr(unsafe.Pointer(&want))); wrong != 0 {
		t.Fatal(wrong)
	}
	if n := Columns(terminal); n != 97 {
		t.Errorf("a terminal of 97 columns has %d", n)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if n := Columns(file); n != 0 {
		t.Errorf("a file has %d columns", n)
	}
}
