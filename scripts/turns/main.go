package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// errSlower says that the new tree is slower: exit code 1 instead of 2.
var errSlower = errors.New("slower beyond the spread")

func main() {
	work := flag.String("work", "", "folder for the binaries, which the caller removes")
	count := flag.Int("rounds", 9, "how often each contestant has its turn")
	with := flag.String("with", "", "measure this option of one tree's node: scrape, "+
		"trace or cluster; or forward, the way of an order through a cluster")
	flag.Parse()
	err := errors.New("usage: turns -work DIR [-rounds N] OLD NEW, or -with OPTION TREE")
	switch ready := *work != "" && *count > 0; {
	case ready && *with == "" && flag.NArg() == 2:
		err = turns(*work, *count, flag.Arg(0), flag.Arg(1))
	case ready && *with == "forward" && flag.NArg() == 1:
		err = forwarded(*work, flag.Arg(0))
	case ready && *with != "" && flag.NArg() == 1:
		err = optionTurns(*work, *count, *with, flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "turns:", err)
	}
	switch {
	case errors.Is(err, errSlower):
		os.Exit(1)
	case err != nil:
		os.Exit(2)
	}
}

// turns builds the trees, runs the rounds and prints the verdicts.
func turns(work string, count int, oldTree, newTree string) error {
	a, err := build("A", oldTree, filepath.Join(work, "a"))
	if err != nil {
		return err
	}
	again, err := a.copied("A'", filepath.Join(work, "a2"))
	if err != nil {
		return err
	}
	b, err := build("B", newTree, filepath.Join(work, "b"))
	if err != nil {
		return err
	}
	names, all := []string{}, map[string]*rounds{}
	for round := range count {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, count)
		for _, bench := range benches() {
			seen := map[*contestant]map[string]float64{}
			for _, c := range order(round, a, again, b) {
				if seen[c], err = bench(c); err != nil {
					return err
				}
			}
			for _, name := range slices.Sorted(maps.Keys(seen[a])) {
				if all[name] == nil {
					names, all[name] = append(names, name), &rounds{}
				}
				r := all[name]
				r.old, r.again = append(r.old, seen[a][name]), append(r.again, seen[again][name])
				r.new = append(r.new, seen[b][name])
			}
		}
	}
	if write(os.Stdout, names, all) {
		return errSlower
	}
	return nil
}

// benches are the ways to measure a contestant once, in the order of the table.
func benches() (all []func(*contestant) (map[string]float64, error)) {
	for _, m := range micros() {
		all = append(all, m.measure)
	}
	for _, what := range []string{"orders", "book"} {
		all = append(all, func(c *contestant) (map[string]float64, error) { return compare(c, what) })
	}
	return all
}

// order is whose turn comes when: each contestant is first, second and last equally often, in
// either direction.
func order[C any](round int, c ...C) []C {
	c = slices.Concat(c[round%3:], c[:round%3])
	if round/3%2 == 1 {
		slices.Reverse(c)
	}
	return c
}
