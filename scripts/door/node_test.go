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
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
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
		if err = build(folder); err == nil {
			var n *server
			if n, err = start(folder, "--limits", "off"); err == nil {
				defer n.stop()
				*address, binary = n.public, n.binary
				return m.Run()
			}
		}
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}

// binary is the program that the tests built, or empty if they attack a node of somebody else.
var binary string

// build compiles the node into folder.
func build(folder string) error {
	out, err := exec.Command("go", "build", "-o", filepath.Join(folder, "clobd"),
		"clobd/cmd/clobd").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build the node: %w\n%s", err, out)
	}
	return nil
}

// server is a running node.
type server struct {
	binary, public, admin string
	process               *exec.Cmd
}

// start starts a node with its data in folder and waits until it takes orders.
func start(folder string, flags ...string) (*server, error) {
	n := &server{binary: binary}
	if n.binary == "" {
		n.binary = filepath.Join(folder, "clobd")
	}
	for _, a := range []*string{&n.public, &n.admin} {
		var err error
		if *a, err = freePort(); err != nil {
			return nil, err
		}
	}
	n.process = exec.Command(n.binary, append([]string{"serve", "--listen", n.public,
		"--data", filepath.Join(folder, "data"), "--admin", n.admin}, flags...)...)
	n.process.Env = append(os.Environ(), "GOMEMLIMIT=1GiB")
	n.process.Stderr = os.Stderr
	if err := n.process.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(startTime); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ready(n.admin) {
			return n, nil
		}
	}
	n.stop()
	return nil, fmt.Errorf("the node at %s did not answer within %v", n.public, startTime)
}

func (n *server) stop() {
	_ = n.process.Process.Signal(syscall.SIGTERM)
	_ = n.process.Wait()
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

// freePort returns an address that nobody listens at.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}
