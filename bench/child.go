package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a server process of a run: the node, or a baseline.
type child struct {
	cmd    *exec.Cmd
	listen string // HOST:PORT of what is measured
	admin  string
	token  string
	dir    string
	output bytes.Buffer
	ended  chan error // closed when it is gone; holds how
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

// startNode starts the node's binary on an empty data folder below dir and waits until it is ready.
func startNode(ctx context.Context, binary, dir string, more ...string) (*child, error) {
	c := &child{dir: filepath.Join(dir, "node")}
	var err error
	if c.listen, err = freePort(); err != nil {
		return nil, err
	}
	if c.admin, err = freePort(); err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--data", c.dir, "--listen", c.listen, "--admin", c.admin},
		more...)
	if err := c.start(ctx, binary, args); err != nil {
		return nil, err
	}
	if err := c.wait(ctx, "http://"+c.admin+"/readyz"); err != nil {
		c.end()
		return nil, err
	}
	c.token, err = ReadToken(filepath.Join(c.dir, "admin.token"))
	return c, err
}

// ReadToken reads an admin token from its file.
func ReadToken(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// start runs the binary; what it prints is kept for the error of a failed start.
func (c *child) start(ctx context.Context, binary string, args []string) error {
	c.cmd = exec.CommandContext(ctx, binary, args...)
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.Cancel = func() error { return c.cmd.Process.Signal(syscall.SIGTERM) }
	c.cmd.WaitDelay = 15 * time.Second
	// Whatever becomes of this process, it leaves none behind.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start %s (make build builds it): %w", binary, err)
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
			return fmt.Errorf("%s ended while starting: %v\n%s", c.cmd.Path, err, c.output.String())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		answer, err := http.Get(url)
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
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
	case <-time.After(20 * time.Second):
		return fmt.Errorf("%s did not end 20 s after SIGTERM", c.cmd.Path)
	}
}

// cpu is user plus system time of the process so far.
func (c *child) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold spaces: count the fields after it. utime and stime are the
	// 14th and 15th of all, in ticks of 10 ms.
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// adminPost sends an operator's request to the node.
func adminPost(admin, token, path string, request map[string]string) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+admin+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("post %s: %w", path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("post %s: status %d: %s", path, answer.StatusCode, text)
	}
	return nil
}
