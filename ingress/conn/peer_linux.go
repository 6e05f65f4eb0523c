package conn

import (
	"net"
	"syscall"
)

// peerOf returns who connected, as the system noted it at that moment.
func peerOf(c *net.UnixConn) (who neighbour, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return who, false
	}
	err = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET,
			syscall.SO_PEERCRED); err == nil {
			who, ok = neighbour{cred.Uid, cred.Gid, cred.Pid}, true
		}
	})
	return who, ok && err == nil
}
