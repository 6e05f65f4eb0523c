package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"clobd/cmd/clobd/client"
)

// patience is how long a test waits for what must come: far longer than it takes, also where the
// machine is slow and stands still for seconds. What has not come by then never will.
const patience = 3 * time.Minute

// builtVariable names the folder of the one binary that all tests of a run share.
const builtVariable = "CLOBD_TEST_BUILT"

// TestMain makes room for the binary, and takes it away again. A test's own process has that of its
// parent.
func TestMain(m *testing.M) {
	if os.Getenv(builtVariable) != "" {
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp("", "clobd-built-")
	if err == nil {
		err = os.Setenv(builtVariable, folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// buildNode builds the node's binary, the first time, and returns its path. CLOBD_BINARY is one
// that is there already.
func buildNode(t *testing.T) string {
	t.Helper()
	binary, err := builtNode()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var builtNode = sync.OnceValues(func() (string, error) {
	if binary := os.Getenv("CLOBD_BINARY"); binary != "" {
		return binary, nil
	}
	binary := filepath.Join(os.Getenv(builtVariable), "clobd")
	if exists(binary) {
		return binary, nil
	}
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build: %w\n%s", err, output)
	}
	return binary, err
})

// process is the real node, running on two loopback ports of its own. A test starts, kills and
// starts it again on one data folder.
type process struct {
	binary string
	data   string
	flags  []string
	listen string // HOST:PORT of the public listener
	admin  string
	log    output // of the latest start
	cmd    *exec.Cmd
	ended  chan error
	wanted atomic.Bool         // its end was asked for
	lost   atomic.Bool         // it has ended by itself
	public *http.Client        // whose answers are as documented
	as     *syscall.Credential // who runs it; nil: who runs the test
}

// output is what a process says. It writes the file itself: what it said before it answered is
// there when the answer is, and nobody has to read a pipe in time.
type output struct{ file string }

func (o *output) String() string {
	text, err := os.ReadFile(o.file)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// newProcess picks the ports; nothing runs yet.
func newProcess(t *testing.T, binary, folder string, flags ...string) *process {
	t.Helper()
	p := &process{binary: binary, data: filepath.Join(folder, "data"), flags: flags,
		log:    output{filepath.Join(t.TempDir(), "log")},
		public: &http.Client{Transport: documented{t}}}
	p.listen, p.admin = freeAddress(t), freeAddress(t)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.kill(t)
		}
	})
	return p
}

// freeAddress is a loopback address that nobody listens on now, and nobody will meanwhile: the host
// is this test process's own, and no port of it is given twice. On 127.0.0.1 any connection of
// another process may get the port while a node is down.
func freeAddress(t *testing.T) string {
	t.Helper()
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	for {
		ln, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		if _, given := givenAddresses.LoadOrStore(ln.Addr().String(), true); !given {
			return ln.Addr().String()
		}
	}
}

// givenAddresses are those of freeAddress so far.
var givenAddresses sync.Map

// start starts the node and waits until it says that it is ready.
func (p *process) start(t *testing.T) {
	t.Helper()
	p.launch(t)
	p.await(t)
}

// launch starts the node.
func (p *process) launch(t *testing.T) {
	t.Helper()
	args := []string{"serve", "--data", p.data, "--listen", p.listen, "--admin", p.admin,
		"--disk-ballast", "0"}
	log, err := os.Create(p.log.file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.binary, append(args, p.flags...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// Should the test itself be killed, the node goes with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: p.as}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan error, 1)
	p.wanted.Store(false)
	p.lost.Store(false)
	go func(cmd *exec.Cmd, ended chan error) {
		err := cmd.Wait()
		p.lost.Store(!p.wanted.Load())
		ended <- err
	}(p.cmd, p.ended)
}

// await waits until the node says that it is ready.
func (p *process) await(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case err := <-p.ended:
			p.cmd = nil
			t.Fatalf("the node ended while starting: %v\n%s", err, p.log.String())
		case <-time.After(5 * time.Millisecond):
		}
		if answer, err := http.Get("http://" + p.admin + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
	}
	p.kill(t)
	t.Fatalf("the node was not ready after %v\n%s", patience, p.log.String())
}

// kill ends the node as a power cut would end the process: at once, wherever it is.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.wanted.Store(true)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-p.ended
	p.cmd = nil
}

// stop asks the node to end, and insists on exit status 0.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.wanted.Store(true)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		if err != nil {
			t.Fatalf("SIGTERM: %v\n%s", err, p.log.String())
		}
	case <-time.After(patience):
		p.kill(t)
		t.Fatalf("the node was still there %v after SIGTERM\n%s", patience, p.log.String())
	}
}

// leave is stop of a node whose last checkpoint and whole index are wanted: a stop that the disk
// keeps waiting goes without them, and says so.
func (p *process) leave(t *testing.T) {
	t.Helper()
	hasty := func() bool {
		log := p.log.String()
		return strings.Contains(log, "without a last checkpoint") ||
			strings.Contains(log, "the index was not made durable")
	}
	const tries = 5 // a disk that a stall held up is not so each time
	for end, try := time.Now().Add(patience), 1; ; try++ {
		p.stop(t)
		if !hasty() {
			return
		}
		if try == tries || time.Now().After(end) {
			t.Fatalf("stop %d went without the last checkpoint or the whole index, too:\n%s", try,
				p.log.String())
		}
		p.start(t)
	}
}

// fund credits a wallet with collateral, as the operator does.
func (p *process) fund(t *testing.T, wallet, amount string) {
	t.Helper()
	o := client.Operator{Admin: p.admin, Data: p.data}
	request := map[string]string{"wallet": wallet, "amount": amount}
	if _, err := o.Post("/admin/fund", request, time.Minute); err != nil {
		t.Fatalf("fund: %v", err)
	}
}

// outcome is a token of the test's catalog and the token of the other outcome.
type outcome struct{ token, other string }

// writeCatalog makes a catalog file with a few open markets and returns their tokens.
func writeCatalog(t *testing.T, file string, markets int) []outcome {
	t.Helper()
	var tokens []outcome
	var lines bytes.Buffer
	for i := 1; i <= markets; i++ {
		o := outcome{fmt.Sprintf("7000000000%03d", i), fmt.Sprintf("8000000000%03d", i)}
		tokens = append(tokens, o, outcome{o.other, o.token})
		event := map[string]any{
			"id": fmt.Sprint(i), "slug": fmt.Sprintf("event-%d", i), "title": fmt.Sprintf("Event %d", i),
			"active": true, "closed": false, "archived": false,
			"markets": []any{map[string]any{
				"id": fmt.Sprint(i), "slug": fmt.Sprintf("market-%d", i),
				"question": fmt.Sprintf("Question %d?", i), "conditionId": fmt.Sprintf("0x%064x", i),
				"outcomes":     `["Yes", "No"]`,
				"clobTokenIds": fmt.Sprintf(`["%s", "%s"]`, o.token, o.other),
				"active":       true, "closed": false, "archived": false, "negRisk": false,
				"enableOrderBook": true, "acceptingOrders": true,
				"orderPriceMinTickSize": 0.01, "orderMinSize": 5,
			}},
		}
		if err := json.NewEncoder(&lines).Encode(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return tokens
}
