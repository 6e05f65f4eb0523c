package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"clobd/bench"
	"clobd/bench/workload"
	"clobd/cmd/cli"
)

// chosen is what a run does.
type chosen struct {
	Workload string `default:"canonical" help:"Mix of operations, by name; clobench workloads lists them. replay: what a node has recorded."`
	Mix      string `placeholder:"FILE" help:"Mix of operations from a file, as bench/mixes/evening.mix."`
	Books    int    `help:"So many books instead of those of the workload."`
	Data     string `help:"replay: the data folder of a node that is stopped, or a backup. It is only read."`
	Pace     string `default:"max" help:"replay at L3: how many times as fast as it was recorded, or max: as fast as answers come."`
}

// fill puts the choice into a run.
func (c *chosen) fill(r *bench.Run) error {
	wrong := func(text, hint string) error {
		return &cli.UsageError{Err: cli.Hint(errors.New(text), "%s", hint)}
	}
	replays := c.Workload == workload.Replay
	switch {
	case replays != (c.Data != ""):
		return wrong("--workload replay and --data belong together",
			"--data names the data folder of a stopped node, or a backup")
	case replays && (c.Mix != "" || c.Books != 0):
		return wrong("a replay has neither --mix nor --books", "its books are those of the journal")
	case !replays && c.Pace != "max":
		return wrong("--pace belongs to --workload replay", "--rate is the pace of other workloads")
	case c.Mix != "" && c.Workload != "canonical":
		return wrong("--mix and --workload exclude each other",
			"a mix may begin with the line: like "+c.Workload)
	}
	var err error
	switch {
	case replays:
		r.Data = c.Data
		if c.Pace != "max" {
			if r.Pace, err = strconv.ParseFloat(c.Pace, 64); err != nil || !(r.Pace > 0) {
				return wrong(fmt.Sprintf("--pace %q", c.Pace), "write 1, 10, 0.5 or max")
			}
		}
		return nil
	case c.Mix != "":
		r.Workload, err = workload.ReadMix(c.Mix)
	default:
		r.Workload, err = workload.Named(c.Workload)
	}
	if err == nil && c.Books != 0 {
		r.Workload, err = r.Workload.In(c.Books)
	}
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	return nil
}

type workloadsCommand struct{}

// Run lists the workloads.
func (workloadsCommand) Run() error {
	_, err := fmt.Fprintln(os.Stdout, workload.Catalogue())
	return err
}
