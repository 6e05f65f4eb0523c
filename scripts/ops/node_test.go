package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	startTime  = time.Minute
	answerTime = 15 * time.Second
)

// observed is a node that Prometheus looks at: as built, with bots that trade.
type observed struct {
	binary, data  string
	public, admin string // HOST:PORT
	stall         string // the file whose presence stops the matcher, if the binary looks for it
}

// build compiles the node, unless CLOBD_BINARY names one.
func build(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("CLOBD_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(t.TempDir(), "clobd")
	compile(t, "-o", binary)
	return binary
}

func compile(t *testing.T, flags ...string) {
	t.Helper()
	args := append([]string{"build", "-buildvcs=false"}, flags...)
	if said, err := exec.Command("go", append(args, "clobd/cmd/clobd")...).CombinedOutput(); err != nil {
		t.Fatalf("build the node: %v\n%s", err, said)
	}
}

// stallFile is the variable that names the file of a node from buildStalling.
const stallFile = "CLOBD_OPS_STALL"

// buildStalling compiles the node with one file replaced: the clock, which the matcher asks before
// each batch, does not return while a file exists. Nothing outside of a node stops its matcher and
// leaves everything else alone, so the stall is put where a bug in Apply would be.
func buildStalling(t *testing.T) string {
	t.Helper()
	const head = "func NewClock(last engine.Time) func() engine.Time {\n"
	file, err := filepath.Abs("../../engine/sequencer/clock.go")
	if err != nil {
		t.Fatal(err)
	}
	text := string(read(t, file))
	if strings.Count(text, head) != 1 || strings.Count(text, "import (\n") != 1 {
		t.Fatalf("%s is not what it was: the matcher cannot be stalled there", file)
	}
	text = strings.Replace(text, "import (\n", "import (\n\t\"os\"\n", 1)
	text = strings.Replace(text, head, head+`	now := openClock(last)
	return func() engine.Time {
		for _, err := os.Stat(os.Getenv("`+stallFile+`")); err == nil; {
			time.Sleep(10 * time.Millisecond)
			_, err = os.Stat(os.Getenv("`+stallFile+`"))
		}
		return now()
	}
}

func openClock(last engine.Time) func() engine.Time {
`, 1)
	folder := t.TempDir()
	clock, overlay := filepath.Join(folder, "clock.go"), filepath.Join(folder, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: clock}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{clock: text, overlay: string(list)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(folder, "clobd")
	compile(t, "-overlay", overlay, "-o", binary)
	return binary
}

// newNode picks ports and a folder for a node; nothing runs yet.
func newNode(t *testing.T, binary string) *observed {
	t.Helper()
	folder := t.TempDir()
	return &observed{binary: binary, data: filepath.Join(folder, "data"),
		public: freePort(t), admin: freePort(t), stall: filepath.Join(folder, "stall")}
}

// start starts the node and its bots, and waits until it takes orders. It is stopped in order when
// the test ends.
func (n *observed) start(t *testing.T) {
	t.Helper()
	args := []string{"serve", "--demo", "--data", n.data, "--listen", n.public, "--admin", n.admin,
		"--limits", "off", "--disk-ballast", "0", "--disk-reserve", "0"}
	run(t, n.binary, args, stallFile+"="+n.stall)
	within(t, startTime, "the node is ready", func() bool {
		return n.get(t, "/readyz").status == http.StatusOK
	})
}

// run starts a program and stops it when the test ends. It goes with the test if that is killed.
func run(t *testing.T, program string, args []string, env ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		late := time.AfterFunc(answerTime, func() { _ = cmd.Process.Kill() })
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		late.Stop()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s said:\n%.4000s", filepath.Base(program), said)
		}
	})
}

// told is an answer.
type told struct {
	status int // 0: none came
	body   string
}

// get asks the admin listener.
func (n *observed) get(t *testing.T, path string) told {
	t.Helper()
	return ask(t, "http://"+n.admin+path)
}

func ask(t *testing.T, url string) told {
	t.Helper()
	client := http.Client{Timeout: answerTime}
	answer, err := client.Get(url)
	if err != nil {
		return told{0, err.Error()}
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return told{0, err.Error()}
	}
	return told{answer.StatusCode, string(body)}
}

// within waits until something is so, and ends the test if it is not within a time.
func within(t *testing.T, limit time.Duration, what string, is func() bool) (took time.Duration) {
	t.Helper()
	begun := time.Now()
	for !is() {
		if took = time.Since(begun); took > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(begun)
}

// freePort returns an address that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// ownDisk moves the data of a node to a filesystem of its own, and returns what makes that hang. It
// returns nil, and says why, where nobody may mount one.
func (n *observed) ownDisk(t *testing.T) (freeze func(*testing.T) (thaw func())) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Log("SKIPPED: a disk of its own takes the rights to mount one")
		return nil
	}
	folder := t.TempDir()
	image, disk := filepath.Join(folder, "image"), filepath.Join(folder, "disk")
	for _, line := range [][]string{{"truncate", "-s", "256M", image}, {"mkdir", disk},
		{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, disk}} {
		if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Logf("SKIPPED: no disk that can be frozen: %v: %v %s", line, err, said)
			return nil
		}
	}
	t.Cleanup(func() { _ = exec.Command("umount", "--lazy", disk).Run() })
	n.data = filepath.Join(disk, "data")
	return func(t *testing.T) func() { return freezeDisk(t, disk) }
}

// freezeDisk lets a disk hang until it is thawed. A process of its own does that, at the latest
// when this one is gone, which ends its input.
func freezeDisk(t *testing.T, disk string) (thaw func()) {
	t.Helper()
	sh := exec.Command("sh", "-c",
		fmt.Sprintf("fsfreeze -f '%s' && echo && cat; fsfreeze -u '%s'", disk, disk))
	held, err := sh.StdinPipe()
	frozen, outErr := sh.StdoutPipe()
	if err = errors.Join(err, outErr); err == nil {
		err = sh.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := errors.Join(held.Close(), sh.Wait()); err != nil {
			t.Errorf("thaw: %v", err)
		}
	})
	t.Cleanup(thaw)
	if _, err := frozen.Read(make([]byte, 1)); err != nil {
		t.Fatalf("freeze: %v", err)
	}
	return thaw
}
