package readme

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A command may take this long; a background process has this long to end when asked. Both are far
// longer than it takes, also where the machine is slow and stands still for seconds.
const (
	commandTime = 3 * time.Minute
	endTime     = 3 * time.Minute
)

// step is one command of a console block and the output that the document shows for it.
type step struct {
	line    int // of the command in the document, from 1
	command string
	want    string
}

// steps are the commands of all console blocks, in order. A line that starts with "$ " is a
// command, which a backslash at its end continues; what follows, up to the next command or the
// end of the block, is its output.
func steps(document string) []step {
	var all []step
	inside, continued := false, false
	for i, line := range strings.Split(document, "\n") {
		switch {
		case !inside:
			inside = strings.TrimSpace(line) == "```console"
		case strings.HasPrefix(line, "```"):
			inside, continued = false, false
		case continued:
			last := &all[len(all)-1]
			last.command += "\n" + strings.TrimPrefix(line, "> ")
			continued = strings.HasSuffix(line, `\`)
		case strings.HasPrefix(line, "$ "):
			all = append(all, step{line: i + 1, command: line[2:]})
			continued = strings.HasSuffix(line, `\`)
		case len(all) > 0:
			all[len(all)-1].want += line + "\n"
		}
	}
	return all
}

// skipped reports whether the runner leaves the command out: make builds, and a test has built
// already.
func (s *step) skipped() bool { return strings.HasPrefix(s.command, "make") }

// background is the command without its "&" if it has one.
func (s *step) background() (string, bool) {
	command, found := strings.CutSuffix(strings.TrimSpace(s.command), "&")
	return command, found && !strings.HasSuffix(command, "&")
}

// check compares what a command printed, and how it ended, with what the document shows. A command
// may fail only where the document shows an error.
func (s *step) check(got string, status int) error {
	if status != 0 && !strings.Contains("\n"+s.want, "\nerror:") {
		return fmt.Errorf("line %d: $ %s\nexit status %d, output:\n%s",
			s.line, s.command, status, trim(got))
	}
	if !matches(s.want, got) {
		return fmt.Errorf("line %d: $ %s\nshown:\n%s\nprinted:\n%s",
			s.line, s.command, trim(s.want), trim(got))
	}
	return nil
}

// matches reports whether got is what the document shows: "…" stands for anything on its line,
// and alone on a line for any number of lines. Space at the ends of lines does not count.
func matches(want, got string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range strings.Split(trim(want), "\n") {
		if line == "…" {
			pattern.WriteString(`(?:[^\n]*\n)*`)
			continue
		}
		for i, part := range strings.Split(line, "…") {
			if i > 0 {
				pattern.WriteString(`[^\n]*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(`\n`)
	}
	pattern.WriteString("$")
	return regexp.MustCompile(pattern.String()).MatchString(trim(got) + "\n")
}

// trim removes space at the ends of lines and empty lines at both ends.
func trim(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// loopback finds the addresses that a document uses.
var loopback = regexp.MustCompile(`\b(127\.0\.0\.1|localhost):(\d+)\b`)

// The ports of a node that is not told otherwise.
const (
	publicPort = "8080"
	adminPort  = "8081"
)

// freePorts gives every loopback port that the document names, and the node's own two, a port that
// nobody listens on now, all different. They are below those that the kernel gives to connections:
// such a one may be gone when the node wants it.
func freePorts(document string) (map[string]string, error) {
	names := []string{publicPort, adminPort}
	for _, found := range loopback.FindAllStringSubmatch(document, -1) {
		names = append(names, found[2])
	}
	free := map[string]string{}
	for _, name := range names {
		if free[name] != "" {
			continue
		}
		var listener net.Listener
		err := errors.New("no try")
		for try := 0; err != nil && try < 1000; try++ {
			port := 10_000 + rand.IntN(20_000)
			listener, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		}
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close() // all at the end, so that none is found twice
		_, port, err := net.SplitHostPort(listener.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		free[name] = port
	}
	return free, nil
}

// onPorts is the document, its commands and what they print, with other loopback ports.
func onPorts(document string, ports map[string]string) string {
	return loopback.ReplaceAllStringFunc(document, func(address string) string {
		host, port, _ := strings.Cut(address, ":")
		return host + ":" + ports[port]
	})
}

// console is one shell in which all commands of a document run, so that they share its variables.
type console struct {
	shell  *exec.Cmd
	input  io.WriteCloser
	lines  chan string // what the shell prints, line by line; closed when it ends
	pids   []int       // processes in the background
	copies int         // log files of background processes made so far
}

// mark starts the line that follows the output of a command and carries its status.
const mark = "\x01status "

// openConsole starts the shell in folder.
func openConsole(folder string, env []string) (*console, error) {
	c := &console{shell: exec.Command("bash", "--norc", "--noprofile"), lines: make(chan string, 64)}
	c.shell.Dir, c.shell.Env = folder, env
	// Its own process group, so that what it leaves behind can be ended with it.
	c.shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if c.input, err = c.shell.StdinPipe(); err != nil {
		return nil, fmt.Errorf("open console: %w", err)
	}
	output, err := c.shell.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open console: %w", err)
	}
	c.shell.Stderr = c.shell.Stdout
	if err := c.shell.Start(); err != nil {
		return nil, fmt.Errorf("open console: %w", err)
	}
	go func() {
		defer close(c.lines)
		for r := bufio.NewReader(output); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	return c, nil
}

// errShell means that the console itself is of no use any more, whatever the document shows.
var errShell = errors.New("the shell is lost")

// run runs one step and compares.
func (c *console) run(s *step) error {
	command, background := s.background()
	for end := time.Now().Add(commandTime); !background; time.Sleep(100 * time.Millisecond) {
		got, status, err := c.execute(s.command)
		if err != nil {
			return fmt.Errorf("line %d: $ %s\n%w: %w, printed so far:\n%s",
				s.line, s.command, errShell, err, got)
		}
		if wrong := s.check(got, status); wrong == nil || !notNow(got) || time.Now().After(end) {
			return wrong
		}
	}
	c.copies++
	started := fmt.Sprintf("%s >background-%d.log 2>&1 & echo $!", command, c.copies)
	got, _, err := c.execute(started)
	if err != nil {
		return fmt.Errorf("line %d: $ %s\n%w: %w", s.line, s.command, errShell, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(got))
	if err != nil {
		return fmt.Errorf("line %d: $ %s\nno process id: %q", s.line, s.command, got)
	}
	c.pids = append(c.pids, pid)
	return s.check("", 0)
}

// notNow says that a command met a node that was too busy to take it in, and asks for it again.
func notNow(got string) bool {
	return strings.Contains(got, "\n503\n") || strings.Contains(got, "answered 503")
}

// execute gives one command to the shell and waits for its output and status.
func (c *console) execute(command string) (string, int, error) {
	script := "{ " + command + "\n} </dev/null; printf '\\n%s%d\\n' $'\\x01status ' $?\n"
	if _, err := io.WriteString(c.input, script); err != nil {
		return "", 0, fmt.Errorf("write to the shell: %w", err)
	}
	var got strings.Builder
	for timeout := time.After(commandTime); ; {
		select {
		case line, open := <-c.lines:
			if !open {
				return got.String(), 0, errors.New("the shell ended")
			}
			if status, found := strings.CutPrefix(line, mark); found {
				n, err := strconv.Atoi(strings.TrimSpace(status))
				return got.String(), n, err
			}
			got.WriteString(line)
		case <-timeout:
			return got.String(), 0, fmt.Errorf("no end after %v", commandTime)
		}
	}
}

// close ends the background processes and the shell, gently first. An error names what had to be
// killed.
func (c *console) close() error {
	for _, pid := range c.pids {
		// One that has ended already is none of our business any more: the shell has not waited
		// for it yet, so the number cannot belong to somebody else.
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	// The shell may be gone: then there is nobody to tell, and nothing to wait for.
	_, _ = io.WriteString(c.input, "wait\nexit 0\n")
	_ = c.input.Close()
	timeout := time.After(endTime)
	for open := true; open; {
		select {
		case _, open = <-c.lines:
		case <-timeout:
			_ = syscall.Kill(-c.shell.Process.Pid, syscall.SIGKILL)
			_ = c.shell.Wait()
			return fmt.Errorf("background processes %v did not end within %v of SIGTERM", c.pids, endTime)
		}
	}
	if err := c.shell.Wait(); err != nil {
		return fmt.Errorf("end the shell: %w", err)
	}
	return nil
}
