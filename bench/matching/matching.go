package matching

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"clobd/bench"
)

// Comparison says which matchers are measured beside each other, on which mixes.
type Comparison struct {
	Rounds  int
	Books   []int
	Ticks   []int
	Seed    uint64
	Ops     int      // of each mix; 0 for the usual number
	Self    string   // the binary whose "replay" replays with this program's own matchers
	Peers   []string // NAME=PROGRAM: other matchers, each started as PROGRAM FILE
	Version string   // what the binary was built from, for the report
	Ticker  *bench.Ticker
}

// Compared is the result.
type Compared struct {
	Conditions bench.Conditions `json:"conditions"`
	Rounds     int              `json:"rounds"`
	Seed       uint64           `json:"seed"`
	Cells      []Cell           `json:"cells"`
	// HugePages is the kernel's setting. Matchers of this program ask for huge pages unless it is
	// "never"; a peer decides for itself.
	HugePages string `json:"huge_pages"`
}

// Cell is one mix and what each matcher took for it.
type Cell struct {
	Mix      Mix       `json:"mix"`
	Sum      MixSum    `json:"sum"`
	Matchers []Matcher `json:"matchers"`
}

// Matcher is one matcher's rounds, in ns per operation: CPU time of its thread, and wall time.
type Matcher struct {
	Name string    `json:"name"`
	CPU  []float64 `json:"cpu_ns"`
	Wall []float64 `json:"wall_ns"`
	ours bool
	run  *matcherRun
}

// matcherRun is a matcher's process.
type matcherRun struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	turns *json.Decoder
}

// validate returns all problems at once, or nil.
func (c *Comparison) validate() error {
	all := bench.Problems{Of: "matching"}
	all.Add(c.Rounds < 1 || c.Rounds > 1000, "rounds %d: want 1 to 1000", c.Rounds)
	all.Add(c.Ops < 0 || c.Ops > 100_000_000, "ops %d: want 1 to 100000000", c.Ops)
	for _, n := range c.Books {
		all.Add(n < 1 || n > 10_000, "books %d: want 1 to 10000", n)
	}
	for _, n := range c.Ticks {
		all.Add(!slices.Contains([]int{9, 99, 199, 399, 999, 9999}, n),
			"ticks %d: want 9, 99, 199, 399, 999 or 9999", n)
	}
	for _, p := range c.Peers {
		name, program, ok := strings.Cut(p, "=")
		all.Add(!ok || name == "" || program == "", "peer %q: want NAME=PROGRAM", p)
	}
	return all.Err()
}

// Compare replays each mix with every matcher, round by round and in turns of alternating order.
// The mixes take turns too, because a machine may be slower for minutes. Each matcher of each mix
// is a process of its own, with 100 MB or more. Compare fails if any of them has another result
// than the generator's model.
func Compare(ctx context.Context, c Comparison) (*Compared, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "clobench")
	if err != nil {
		return nil, fmt.Errorf("make folder for the mixes: %w", err)
	}
	defer os.RemoveAll(dir)
	text, _ := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	_, rest, _ := strings.Cut(string(text), "[")
	told, _, ok := strings.Cut(rest, "]")
	if !ok {
		told = "unknown"
	}
	out := &Compared{Conditions: bench.NewConditions(c.Version), Rounds: c.Rounds, Seed: c.Seed,
		HugePages: told}
	defer func() {
		for i := range out.Cells {
			out.Cells[i].stop()
		}
	}()
	c.Ticker.Plan(len(c.Books) * len(c.Ticks) * (c.Rounds + 2))
	for _, books := range c.Books {
		for _, ticks := range c.Ticks {
			m := NewMix(books, ticks, c.Seed)
			if c.Ops > 0 {
				m.Ops, m.Prefill = c.Ops, min(m.Prefill, c.Ops)
			}
			out.Cells = append(out.Cells, Cell{Mix: m})
			cell, name := &out.Cells[len(out.Cells)-1], fmt.Sprint("mix", len(out.Cells))
			c.Ticker.Step("drawing %d books of %d ticks", books, ticks)
			if err := c.open(ctx, cell, filepath.Join(dir, name)); err != nil {
				return nil, cell.failed(err)
			}
		}
	}
	for round := range c.Rounds + 1 { // the first only checks
		for i := range out.Cells {
			m := &out.Cells[i].Mix
			c.Ticker.Step("%d books of %d ticks, round %d", m.Books, m.Ticks, round)
			began := time.Now()
			if err := out.Cells[i].round(round); err != nil {
				return nil, out.Cells[i].failed(err)
			}
			c.Ticker.Did(int64(m.Ops*len(out.Cells[i].Matchers)), time.Since(began))
		}
	}
	return out, nil
}

// open draws the cell's mix and starts its matchers.
func (c *Comparison) open(ctx context.Context, cell *Cell, file string) error {
	ops, sum := cell.Mix.Draw()
	if err := cell.Mix.Write(file, ops, sum); err != nil {
		return err
	}
	cell.Sum = sum
	for _, name := range []string{"bare", "apply", "textbook"} {
		x := Matcher{Name: name, ours: true}
		if err := cell.start(ctx, x, c.Self, "replay", name, file); err != nil {
			return err
		}
	}
	for _, p := range c.Peers {
		name, program, _ := strings.Cut(p, "=")
		if err := cell.start(ctx, Matcher{Name: name}, program, file); err != nil {
			return err
		}
	}
	return nil
}

// failed adds the cell in which an error happened to its text.
func (c *Cell) failed(err error) error {
	return fmt.Errorf("%d books of %d ticks: %w", c.Mix.Books, c.Mix.Ticks, err)
}

// round has each matcher replay once, in the other order every other round.
func (c *Cell) round(n int) error {
	for i := range c.Matchers {
		if n%2 == 1 {
			i = len(c.Matchers) - 1 - i
		}
		if err := c.turn(&c.Matchers[i], n == 0); err != nil {
			return err
		}
	}
	return nil
}

// start starts a matcher's process and takes it in.
func (c *Cell) start(ctx context.Context, x Matcher, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	// The kernel ends the matcher when this process ends, however it ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", x.Name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", x.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", x.Name, err)
	}
	x.run = &matcherRun{cmd, in, json.NewDecoder(out)}
	c.Matchers = append(c.Matchers, x)
	return nil
}

// stop ends the matchers.
func (c *Cell) stop() {
	for i := range c.Matchers {
		run := c.Matchers[i].run
		_ = run.in.Close() // end of input is how it is told
		_ = run.cmd.Wait() // its turns have been read and judged
	}
}

// turn has a matcher replay once. A turn that checks is not timed.
func (c *Cell) turn(x *Matcher, check bool) error {
	var t Turn
	if _, err := x.run.in.Write([]byte("turn\n")); err != nil {
		return fmt.Errorf("%s: ask for a turn: %w", x.Name, err)
	}
	if err := x.run.turns.Decode(&t); err != nil {
		return fmt.Errorf("%s: read its turn: %w", x.Name, err)
	}
	want := c.Sum
	if !x.ours || !check {
		want.Chain = t.Chain // told in the first turn, and by ours only
	}
	if t.MixSum != want {
		return fmt.Errorf("%s comes to %+v, want %+v", x.Name, t.MixSum, want)
	}
	if !check {
		n := float64(c.Mix.Ops)
		x.CPU, x.Wall = append(x.CPU, float64(t.CPU)/n), append(x.Wall, float64(t.Wall)/n)
	}
	return nil
}

// WriteText prints the table for people. A ratio is of medians of CPU time, to the bare Book.
func (m *Compared) WriteText(w io.Writer) {
	fmt.Fprintf(w, "matching: ns per operation, CPU time of the thread, median of %d interleaved "+
		"rounds (least to most); seed %d\n", m.Rounds, m.Seed)
	one := map[string]float64{}
	for i := range m.Cells {
		c := &m.Cells[i]
		fmt.Fprintf(w, "%d books of %d ticks: %d operations, %d fills, %d orders at the end\n",
			c.Mix.Books, c.Mix.Ticks, c.Mix.Ops, c.Sum.Fills, c.Sum.Resting)
		for j := range c.Matchers {
			x := &c.Matchers[j]
			cpu := bench.Median(x.CPU)
			fmt.Fprintf(w, "  %-10s %7.1f (%.1f to %.1f)  wall %7.1f  %5.1f times the bare Book",
				x.Name, cpu, slices.Min(x.CPU), slices.Max(x.CPU), bench.Median(x.Wall),
				cpu/bench.Median(c.Matchers[0].CPU))
			key := fmt.Sprint(x.Name, c.Mix.Ticks)
			if c.Mix.Books == 1 {
				one[key] = cpu
			} else if one[key] > 0 {
				fmt.Fprintf(w, "  %4.1f times one book", cpu/one[key])
			}
			fmt.Fprintln(w)
		}
	}
	k := &m.Conditions
	fmt.Fprintf(w, "  machine: %s, %d cores, Linux %s; %s, GOGC %s, version %s\n", k.CPU, k.Cores,
		k.Kernel, k.Program.Go, k.Program.GOGC, k.Program.Version)
	fmt.Fprintf(w, "  memory: bare, apply and textbook in huge pages unless the kernel is told never; it "+
		"is told %s; a peer sees to itself\n", m.HugePages)
	fmt.Fprintln(w, "  checked: every turn has the fills, the volume and the resting orders of the "+
		"generator's model, the first turn also who was filled by how much, in order")
}
