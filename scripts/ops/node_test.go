package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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

// noMount, if set, keeps the tests from mounting a filesystem, as if they were not root's.
const noMount = "CLOBD_OPS_NO_MOUNT"

const (
	startTime  = time.Minute
	answerTime = time.Minute // beside compilers that take all cores
)

// observed is a node that Prometheus looks at: as built, with bots that trade.
type observed struct {
	binary, data  string
	public, admin string   // HOST:PORT
	stall         string   // the file whose presence stops the matcher, if the binary looks for it
	more          []string // flags
	pid           int      // of its process
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

// stallFile is the variable that names the file of a node from buildStalling. The file with
// diskSide behind its name stops the journal, that with indexSide the index.
const (
	stallFile = "CLOBD_OPS_STALL"
	diskSide  = ".disk"
	indexSide = ".index"
)

// buildStalling compiles the node with three files replaced. The clock, which the matcher asks
// before each batch, does not return while a file exists; nor does a sync of the journal while
// another one does; nor does the index take the next batch while a third one does. Nothing outside
// of a node stops its matcher or its index and leaves everything else alone, so these stalls are
// put where a bug would be. A disk can be frozen, by root: see ownDisk.
func buildStalling(t *testing.T) string {
	t.Helper()
	const wait = "%s\n\t\tfor _, err := os.Stat(%s); err == nil; _, err = os.Stat(%[2]s) {\n" +
		"\t\t\ttime.Sleep(10 * time.Millisecond)\n\t\t}\n"
	file := `os.Getenv("` + stallFile + `")`
	folder, replaced := t.TempDir(), map[string]string{}
	for _, edit := range []struct{ path, at, head string }{
		{"engine/sequencer/clock.go", file, "\treturn func() engine.Time {\n"},
		{"journal/wait.go", file + ` + "` + diskSide + `"`, "\tif !j.Options.Async {\n"},
		{"journal/history/index.go", file + ` + "` + indexSide + `"`,
			"func (x *Index) step() error {\n"},
	} {
		path, err := filepath.Abs("../../" + edit.path)
		if err != nil {
			t.Fatal(err)
		}
		before, after, found := strings.Cut(string(read(t, path)), edit.head)
		if !found || !strings.Contains(before, "import (\n") || !strings.Contains(before, `"time"`) {
			t.Fatalf("%s is not what it was: no stall can be put there", path)
		}
		text := strings.Replace(before, "import (\n", "import (\n\t\"os\"\n", 1) +
			fmt.Sprintf(wait, strings.TrimSuffix(edit.head, "\n"), edit.at) + after
		replaced[path] = filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay, binary := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "clobd")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
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
	n.launch(t)
	n.await(t)
}

// launch is start, and does not wait.
func (n *observed) launch(t *testing.T) {
	t.Helper()
	args := []string{"serve", "--demo", "--data", n.data, "--listen", n.public, "--admin", n.admin,
		"--limits", "off", "--disk-ballast", "0", "--disk-reserve", "0"}
	n.pid = run(t, n.binary, append(args, n.more...), stallFile+"="+n.stall)
}

// await waits until the node takes orders.
func (n *observed) await(t *testing.T) {
	t.Helper()
	within(t, startTime, "the node is ready", func() bool {
		return n.get(t, "/readyz").status == http.StatusOK
	})
}

// run starts a program and stops it when the test ends. It goes with the test if that is killed.
func run(t *testing.T, program string, args []string, env ...string) (pid int) {
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
	return cmd.Process.Pid
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

// freePort returns an address that nobody listens at. The system gives connections ports from 32768
// on, so no connection takes this one before a node listens there.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		ln, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(10_000)))
		if err == nil {
			defer ln.Close()
			return ln.Addr().String()
		}
	}
	t.Fatal("all ports are taken")
	return ""
}

// ownDisk moves the data of a node to a filesystem of its own, and returns what makes that hang.
// Where nobody may mount one, it returns what makes the syncs of the node's journal wait: all that
// a node sees of a disk that hangs.
func (n *observed) ownDisk(t *testing.T) (freeze func(*testing.T) (thaw func())) {
	t.Helper()
	why := n.mount(t)
	if why == "" {
		return func(t *testing.T) func() { return freezeDisk(t, filepath.Dir(n.data)) }
	}
	t.Logf("no disk can be frozen here (%s): the journal's syncs wait instead", why)
	return func(t *testing.T) func() {
		if err := os.WriteFile(n.stall+diskSide, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		thaw := sync.OnceFunc(func() {
			if err := os.Remove(n.stall + diskSide); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(thaw)
		return thaw
	}
}

// mount moves the data of a node to a filesystem of its own, or says why that cannot be.
func (n *observed) mount(t *testing.T) (why string) {
	t.Helper()
	if os.Getuid() != 0 || os.Getenv(noMount) != "" {
		return "it takes the rights to mount one"
	}
	folder := t.TempDir()
	image, disk := filepath.Join(folder, "image"), filepath.Join(folder, "disk")
	for _, line := range [][]string{{"truncate", "-s", "256M", image}, {"mkdir", disk},
		{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, disk}} {
		if said, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			return fmt.Sprintf("%v: %v %s", line, err, said)
		}
	}
	t.Cleanup(func() { _ = exec.Command("umount", "--lazy", disk).Run() })
	n.data = filepath.Join(disk, "data")
	return ""
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
