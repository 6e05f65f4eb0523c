package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Partner is a process that is told and asked things in lines of JSON. One goroutine uses it; but
// any may close In.
type Partner struct {
	ID int            // the system's number of the process
	In io.WriteCloser // its standard input

	cmd  *exec.Cmd
	out  *bufio.Reader
	said bytes.Buffer // on standard error
}

// Start starts a process of the program self.
func Start(ctx context.Context, self string, args ...string) (*Partner, error) {
	p := &Partner{cmd: Command(ctx, self, args...)}
	p.cmd.Stderr = &p.said
	in, inErr := p.cmd.StdinPipe()
	out, outErr := p.cmd.StdoutPipe()
	err := errors.Join(inErr, outErr)
	if err == nil {
		err = Launch(p.cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", strings.Join(args, " "), err)
	}
	p.ID, p.In, p.out = p.cmd.Process.Pid, in, bufio.NewReader(out)
	return p, nil
}

// Command makes a process that ends when ctx does, and that never outlives this one.
func Command(ctx context.Context, binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	// A Ctrl-C goes to the whole group of a terminal: this process alone decides what follows.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd
}

// nursery is the thread that starts all processes, and that never ends: the kernel kills a child
// when the thread that started it ends, and threads do, with goroutines that they are locked to.
var nursery = sync.OnceValue(func() chan func() {
	births := make(chan func())
	go func() {
		runtime.LockOSThread()
		for birth := range births {
			birth()
		}
	}()
	return births
})

// Launch starts a Command.
func Launch(cmd *exec.Cmd) error {
	started := make(chan error)
	nursery() <- func() { started <- cmd.Start() }
	return <-started
}

// Low is the priority of a process that stands for other machines: it must only use the CPU time
// that the measured work leaves.
const Low = 10

// Lower gives the process, with all of its threads, a low priority.
func (p *Partner) Lower() error {
	return syscall.Setpriority(syscall.PRIO_PGRP, p.ID, max(Low, Niceness()))
}

// Tell sends a line.
func (p *Partner) Tell(line any) error { return json.NewEncoder(p.In).Encode(line) }

// Hear reads a line.
func (p *Partner) Hear(answer any) error {
	err := ReadLine(p.out, answer)
	if errors.Is(err, io.EOF) {
		return errors.New("the process ends without an answer")
	}
	return err
}

// Ask sends a line and reads the answer to it.
func (p *Partner) Ask(line, answer any) error {
	if err := p.Tell(line); err != nil {
		return err
	}
	return p.Hear(answer)
}

// End makes sure that the process is gone, and returns what the process has complained of.
func (p *Partner) End() string {
	_ = p.cmd.Process.Kill() // it may be gone already
	_ = p.cmd.Wait()
	return p.said.String()
}

// ReadLine reads a line of JSON, in the process that was told or in the one that asked.
func ReadLine(from *bufio.Reader, into any) error {
	line, err := from.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, into)
}
