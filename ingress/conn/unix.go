package conn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// socketMode lets the node's user and group connect, and nobody else.
const socketMode = 0o660

// ListenUnix listens on a socket in the file system. It takes the place of a socket that nobody
// listens on; anything else at path is an error, and stays.
func ListenUnix(path string) (net.Listener, error) {
	switch state, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case state.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%s is no socket", path)
	default:
		c, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = c.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("somebody may listen on %s", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// The mode before bind keeps others out from the socket's first moment on; what the umask takes
	// away from it comes back afterwards.
	narrow := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), socketMode) })
		return errors.Join(err, failed)
	}}
	ln, err := narrow.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// noteNeighbour logs who is at the other end of a socket in the file system.
func (t *Turnstile) noteNeighbour(c net.Conn) {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return
	}
	if who, ok := peerOf(socket); ok {
		t.options.Log.Info("a neighbour connects", "uid", who.uid, "gid", who.gid, "pid", who.pid)
	}
}

// neighbour is a process of this machine as the system knows it.
type neighbour struct {
	uid, gid uint32
	pid      int32
}
