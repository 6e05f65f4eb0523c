package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"clobd/bench/process"
)

// child is another process of a run: the node, a baseline, or the hiccup meter.
type child struct {
	cmd    *exec.Cmd
	addr   string // HOST:PORT of what is measured
	desk   desk   // of a node
	dir    string
	output bytes.Buffer
	ended  chan error // holds how it ended, then is closed
}

// freePort asks the kernel for a loopback port that nobody listens on.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// again starts a process up to three times, in case another program has taken the port that was
// free a moment before.
func again(start func() (*child, error)) (*child, error) {
	for try := 1; ; try++ {
		c, err := start()
		if err == nil || try == 3 || !strings.Contains(err.Error(), "address already in use") {
			return c, err
		}
	}
}

// startNode starts the node's binary on an empty data folder below dir and waits until it is ready.
func startNode(ctx context.Context, binary, dir string, more ...string) (*child, error) {
	return again(func() (*child, error) { return tryNode(ctx, binary, dir, more) })
}

func tryNode(ctx context.Context, binary, dir string, more []string) (*child, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &child{addr: addr, desk: desk{addr: admin}, dir: filepath.Join(dir, "node")}
	args := append([]string{"serve", "--data", c.dir, "--listen", addr, "--admin", admin,
		"--limits", "off", "--log-level", "error"}, more...)
	c.cmd = process.Command(ctx, binary, args...)
	if err := c.launch(ctx, "http://"+admin+"/readyz"); err != nil {
		return nil, err
	}
	if c.desk.token, err = ReadToken(filepath.Join(c.dir, "admin.token")); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// startPeer starts a baseline of the program self: what it is and the path it needs.
func startPeer(ctx context.Context, self, what, path string) (*child, error) {
	return again(func() (*child, error) { return tryPeer(ctx, self, what, path) })
}

func tryPeer(ctx context.Context, self, what, path string) (*child, error) {
	addr, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &child{addr: addr,
		cmd: process.Command(ctx, self, "peer", what, "--listen", addr, "--path", path)}
	if err := c.launch(ctx, "http://"+addr+peerReady); err != nil {
		return nil, err
	}
	return c, nil
}

// ReadToken reads an admin token from its file.
func ReadToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// launch starts the process and waits until the URL ready answers 200. If that fails, it ends the
// process.
func (c *child) launch(ctx context.Context, ready string) error {
	c.cmd.Stdout = &c.output
	if err := c.start(); err != nil {
		return err
	}
	if err := c.wait(ctx, ready); err != nil {
		c.end()
		return err
	}
	return nil
}

// start runs the command; what it prints is kept for the error of a failed start.
func (c *child) start() error {
	c.cmd.Stderr = &c.output
	if err := process.Launch(c.cmd); err != nil {
		return fmt.Errorf("start %s (make build builds it): %w", c.cmd.Path, err)
	}
	c.ended = make(chan error, 1)
	go func() {
		c.ended <- c.cmd.Wait()
		close(c.ended)
	}()
	return nil
}

// wait polls url until it answers 200, at most 60 s.
func (c *child) wait(ctx context.Context, url string) error {
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		select {
		case err := <-c.ended:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("%s ended while starting: %v\n%s", c.cmd.Path, err, c.output.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if status, _, err := get(ctx, url); err == nil && status == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s was not ready after a minute", c.cmd.Path)
}

// end makes sure that the process is gone, whatever failed before.
func (c *child) end() {
	_ = c.cmd.Process.Kill() // it may be gone already
	<-c.ended
}

// stop asks the process to end and waits for it.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", c.cmd.Path, err)
	}
	select {
	case err := <-c.ended:
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", c.cmd.Path, err, c.output.String())
		}
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("%s did not end a minute after SIGTERM", c.cmd.Path)
	}
}

// cpu is user plus system time of the process so far.
func (c *child) cpu() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	// The name in parentheses may hold spaces: count the fields after it. utime and stime are the
	// 14th and 15th of all, in ticks of 10 ms.
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %d fields after the name", len(fields))
	}
	user, userErr := strconv.ParseInt(fields[11], 10, 64)
	system, systemErr := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(userErr, systemErr)
}
