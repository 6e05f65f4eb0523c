package door

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var (
	address = flag.String("address", "", "public address of a node; one is built and started if empty")
	chain   = flag.Uint64("chain", 80002, "chain of the node")
	limited = flag.Bool("limited", false, "the node has limits, so it may answer 429 to any request")
)

// startTime is how long a node may take until it answers.
const startTime = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run starts a node if none is named, runs the tests and stops it.
func run(m *testing.M) int {
	if *address != "" {
		return m.Run()
	}
	folder, err := os.MkdirTemp("", "door")
	if err == nil {
		defer os.RemoveAll(folder)
		var node *exec.Cmd
		if node, err = start(folder); err == nil {
			defer stop(node)
			return m.Run()
		}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}

// start builds a node, starts it without limits and waits until it answers.
func start(folder string) (*exec.Cmd, error) {
	binary := filepath.Join(folder, "clobd")
	build := exec.Command("go", "build", "-o", binary, "clobd/cmd/clobd")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the node: %w\n%s", err, out)
	}
	public, err := freePort()
	if err != nil {
		return nil, err
	}
	admin, err := freePort()
	if err != nil {
		return nil, err
	}
	*address = public
	node := exec.Command(binary, "serve", "--data", filepath.Join(folder, "data"),
		"--listen", public, "--admin", admin, "--limits", "off")
	node.Stderr = os.Stderr
	if err := node.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(startTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if r, err := http.Get("http://" + public + "/time"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK && ready(admin) {
				return node, nil
			}
		}
	}
	stop(node)
	return nil, fmt.Errorf("the node at %s did not answer within %v", public, startTime)
}

// ready reports whether the node takes orders.
func ready(admin string) bool {
	r, err := http.Get("http://" + admin + "/readyz")
	if err != nil {
		return false
	}
	_ = r.Body.Close()
	return r.StatusCode == http.StatusOK
}

func stop(node *exec.Cmd) {
	_ = node.Process.Signal(syscall.SIGTERM)
	_ = node.Wait()
}

// freePort returns an address that nobody listens at.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}
