package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"clobd/bench"
	"clobd/bench/report"
	"clobd/cmd/cli"
)

// outputs are where a measurement goes beside the terminal, and what is seen of it meanwhile.
type outputs struct {
	JSON  string `name:"json" help:"Write the report to this file, - for standard output."`
	HTML  string `name:"html" help:"Write the report as one page that opens offline to this file."`
	Quiet bool   `help:"No progress on standard error."`

	logs string // percentile logs, of those commands that have them
	like any    // with logs: a result whose logs have the names that those of the result will have
}

// ticker shows how the measurement comes along, nil if nobody wants to know.
func (o *outputs) ticker() *bench.Ticker {
	if o.Quiet {
		return nil
	}
	return progressOn(os.Stderr)
}

// progressOn shows on a file how a measurement comes along.
func progressOn(f *os.File) *bench.Ticker {
	info, err := f.Stat()
	return &bench.Ticker{To: f, Terminal: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// check refuses what could not be written later, before anything is measured.
func (o *outputs) check() error {
	problems := []error{writable("--html", o.HTML)}
	if o.logs != "" {
		files, err := report.PercentileFiles(o.logs, o.like)
		problems = append(problems, err)
		for _, file := range files {
			problems = append(problems, writable("--hgrm", file))
		}
	}
	if o.JSON != "-" {
		problems = append(problems, writable("--json", o.JSON))
	}
	return errors.Join(problems...)
}

// writable is an error if a file cannot be written. It leaves a file as it is, and no new one.
func writable(flag, file string) error {
	if file == "" {
		return nil
	}
	_, there := os.Stat(file)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644); err == nil {
			err = f.Close()
			if there != nil {
				err = errors.Join(err, os.Remove(file))
			}
		}
	}
	if err != nil {
		return &cli.UsageError{Err: cli.Hint(fmt.Errorf("%s: %w", flag, err),
			"nothing was measured: name a file that can be written")}
	}
	return nil
}

// write prints the measurement and writes the files.
func (o *outputs) write(m measured) error {
	if o.JSON != "-" {
		m.text(os.Stdout)
	}
	var problems []error
	if o.JSON != "" {
		problems = append(problems, bench.WriteJSON(o.JSON, m.report))
	}
	if o.HTML != "" {
		problems = append(problems, report.WritePage(o.HTML, "clobench", m.report))
	}
	if o.logs != "" {
		problems = append(problems, report.Percentiles(o.logs, m.report))
	}
	return errors.Join(problems...)
}

type pageCommand struct {
	Files []string `arg:"" help:"Reports that were written with --json, in the order of the page: of run or turns, ramp, compare orders, batch, entry, book, midpoint or price, flood, streams, soak."`
	Title string   `default:"clobench" help:"Title of the page."`
	HTML  string   `name:"html" required:"" help:"Write the page to this file."`
}

// Run joins reports on one page.
func (c *pageCommand) Run() error {
	var results []any
	for _, file := range c.Files {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read report: %w", err)
		}
		result, err := report.Read(b)
		if err != nil {
			return cli.Hint(fmt.Errorf("%s: %w", file, err), "give files that --json wrote")
		}
		results = append(results, result)
	}
	return report.WritePage(c.HTML, c.Title, results...)
}
