package main

import (
	"errors"
	"fmt"
	"os"

	"clobd/bench"
	"clobd/bench/report"
	"clobd/cmd/cli"
)

// outputs are where a measurement goes beside the terminal.
type outputs struct {
	JSON string `name:"json" help:"Write the report to this file, - for standard output."`
	HTML string `name:"html" help:"Write the report as one page that opens offline to this file."`
	Hgrm string `placeholder:"PATH" help:"Write percentile logs for HdrHistogram's plotter, in µs: into this folder, or to NAME-corrected.hgrm and NAME-uncorrected.hgrm for NAME.hgrm. Of run and ramp."`
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
	if o.Hgrm != "" {
		problems = append(problems, report.Percentiles(o.Hgrm, m.report))
	}
	return errors.Join(problems...)
}

type pageCommand struct {
	Files []string `arg:"" help:"Reports that were written with --json, in the order of the page."`
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
