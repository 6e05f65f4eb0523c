package door

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// roleVariable names the part that a process of this program plays: attackers and honest callers
// have processes of their own, so that they do not wait for each other.
const roleVariable = "CLOBD_DOOR_ROLE"

// part is what a child process is told, as JSON on its standard input.
type part struct {
	Address string        `json:"address"` // of the node
	Chain   uint64        `json:"chain"`   // that signatures are for
	Attack  string        `json:"attack"`  // name of an attack
	From    int           `json:"from"`    // addresses that attack
	Token   string        `json:"token"`   // that honest callers trade
	Time    time.Duration `json:"time"`    // how long honest callers measure, or load lasts
	Rate    float64       `json:"rate"`    // orders and cancels per second; 0: as many as possible
	Orders  int           `json:"orders"`  // that are placed in lists before Time begins
}

// child is a process that plays a part. It ends when its standard input does.
type child struct {
	process *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

// startChild starts a process that plays role.
func startChild(role string, p part) (*child, error) {
	c := &child{process: exec.Command(os.Args[0])}
	c.process.Env = append(os.Environ(), roleVariable+"="+role)
	c.process.Stderr = os.Stderr
	input, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	c.input, c.output = input, bufio.NewReader(output)
	return c, json.NewEncoder(input).Encode(p)
}

// told waits for a line of the child and reads its JSON into v.
func (c *child) told(v any) error {
	line, err := c.output.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the child said nothing: %w", err)
	}
	return json.Unmarshal(line, v)
}

func (c *child) end() {
	_ = c.input.Close()
	_ = c.process.Wait()
}

// play is the main function of a child. It returns the exit code.
func play(role string) int {
	var p part
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p)
	}
	switch {
	case err != nil:
	case role == "attacker":
		// On the internet an attacker does not take the processor of the node.
		if err = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err == nil {
			err = attack(p, input)
		}
	case role == "honest":
		err = trade(p)
	case role == "load":
		err = load(p)
	default:
		err = errors.New("no such role: " + role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", role, err)
		return 1
	}
	return 0
}

// say writes v as a line for the parent.
func say(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }
