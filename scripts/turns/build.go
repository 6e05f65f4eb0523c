package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// micro is a bench of a test binary.
type micro struct {
	function string // Go function, by which the package is found
	pattern  string // -test.bench
	time     string // -test.benchtime
	figures  []metric
}

// metric is a value in the output of a bench.
type metric struct {
	figure string // what it is called here
	line   string // start of the output's line, without the number of CPUs
	unit   string
	rate   bool // the value is per second: the figure is ns each
}

// micros are the benches of test binaries.
func micros() []micro {
	return []micro{
		{"BenchmarkApply", "^BenchmarkApply$", "300ms", []metric{
			{"apply 1, ns", "BenchmarkApply/markets=1", "ns/op", false},
			{"apply 1000, ns", "BenchmarkApply/markets=1000", "ns/op", false}}},
		{"BenchmarkBare", "^BenchmarkBare$", "300ms", []metric{
			{"bare, ns", "BenchmarkBare", "ns/op", false}}},
		{"BenchmarkCommit", "^BenchmarkCommit$/^100$", "200x", []metric{
			{"commit 100, ns", "BenchmarkCommit/100", "commands/s", true},
			{"commit 100 p50, µs", "BenchmarkCommit/100", "p50-us", false}}},
	}
}

// contestant is a built tree.
type contestant struct {
	name  string
	bin   string            // folder of its binaries
	where map[string]string // by function: the folder of the package, where its test data are
}

// build builds a tree's test binaries and programs into bin.
func build(name, tree, bin string) (*contestant, error) {
	c := &contestant{name, bin, map[string]string{}}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, err
	}
	for _, m := range micros() {
		folder, err := find(tree, m.function)
		if err != nil {
			return nil, err
		}
		c.where[m.function] = folder
		if err := run(tree, "go", "test", "-c", "-o", filepath.Join(bin, m.function), folder); err != nil {
			return nil, err
		}
	}
	return c, run(tree, "go", "build", "-o", bin+"/", "./cmd/clobd", "./cmd/clobench")
}

// copied is another contestant with the same binaries in other files.
func (c *contestant) copied(name, bin string) (*contestant, error) {
	return &contestant{name, bin, c.where}, os.CopyFS(bin, os.DirFS(c.bin))
}

// find returns the folder of the one package in tree that has a bench function of that name.
func find(tree, function string) (string, error) {
	head := regexp.MustCompile(`(?m)^func ` + function + `\(`)
	var folders []string
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if head.Match(text) {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	})
	if err == nil && len(folders) != 1 {
		err = fmt.Errorf("%s: %s stands in %d files, want 1", tree, function, len(folders))
	}
	if err != nil {
		return "", err
	}
	return folders[0], nil
}

// run runs a command of the build in dir.
func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// output runs a bench in dir and returns what it prints, also if it fails.
func output(dir, program string, args ...string) ([]byte, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s%s", err, text, exit.Stderr)
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return text, err
}

// measure runs a micro bench once and returns its figures.
func (m *micro) measure(c *contestant) (map[string]float64, error) {
	text, err := output(c.where[m.function], filepath.Join(c.bin, m.function), "-test.run", "^$",
		"-test.short", "-test.bench", m.pattern, "-test.benchtime", m.time)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for i := range m.figures {
		if out[m.figures[i].figure], err = m.figures[i].read(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return out, nil
}

// read finds the value in the output of a bench.
func (m *metric) read(text string) (float64, error) {
	line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m.line) + `(-\d+)?\s.*$`).FindString(text)
	words := strings.Fields(line)
	at := slices.Index(words, m.unit)
	if at < 1 {
		return 0, fmt.Errorf("no %s of %s in:\n%s", m.unit, m.line, text)
	}
	v, err := strconv.ParseFloat(words[at-1], 64)
	if err == nil && v <= 0 {
		err = fmt.Errorf("%s of %s is %v", m.unit, m.line, v)
	}
	if m.rate {
		v = 1e9 / v
	}
	return v, err
}

// busyTries is how often a comparison is made whose load was late itself, which says nothing of the
// node.
const busyTries = 4

// compare runs clobench compare and returns the node's figures.
func compare(c *contestant, what string) (map[string]float64, error) {
	var report struct {
		Node struct {
			Rates     []float64 `json:"operations_per_second"`
			CPUMicros []float64 `json:"cpu_micros_per_operation"`
			Invalid   []string  `json:"invalid_turns"`
		}
	}
	for try := 1; ; try++ {
		text, err := output(c.bin, filepath.Join(c.bin, "clobench"), "compare", what, "--rounds", "2",
			"--duration", "500ms", "--json", "-")
		invalid := err != nil && strings.Contains(err.Error(), "error: INVALID: ")
		if err != nil && (!invalid || try == busyTries) {
			return nil, err
		}
		report.Node.Invalid = nil
		if err := json.Unmarshal(text, &report); err != nil {
			return nil, fmt.Errorf("read the report of compare %s: %w", what, err)
		}
		if len(report.Node.Invalid) == 0 { // perhaps a turn of the baseline is
			break
		}
	}
	rate, cpu := median(report.Node.Rates), median(report.Node.CPUMicros)
	if rate <= 0 || cpu <= 0 {
		return nil, fmt.Errorf("compare %s: rate %v, CPU %v", what, rate, cpu)
	}
	return map[string]float64{what + ", µs": 1e6 / rate, what + " CPU, µs": cpu}, nil
}
