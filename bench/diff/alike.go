package diff

import (
	"fmt"
	"slices"

	"clobd/bench"
)

// trait is something that all reports of a comparison should share.
type trait struct {
	name string
	of   func(r *bench.Report) string
}

// needed are the traits without which figures are of different things.
func needed() []trait {
	return []trait{
		{"workload", func(r *bench.Report) string { return r.Workload }},
		{"level", func(r *bench.Report) string { return r.Level }},
		{"loop", func(r *bench.Report) string { return r.Loop }},
		{"durability", func(r *bench.Report) string { return r.Durability }},
		{"asked rate", func(r *bench.Report) string { return fmt.Sprintf("%g %s", r.AskedRate, r.Arrivals) }},
		{"CPU", func(r *bench.Report) string { return r.Conditions.CPU }},
		{"number of cores", func(r *bench.Report) string { return fmt.Sprint(r.Conditions.Cores) }},
		{"kernel", func(r *bench.Report) string { return r.Conditions.Kernel }},
	}
}

// wanted are the traits that should be equal, unless they are what is compared.
func wanted() []trait {
	return []trait{
		{"seed", func(r *bench.Report) string { return fmt.Sprint(r.Seed) }},
		{"connections", func(r *bench.Report) string { return fmt.Sprint(r.Connections) }},
		{"version of clobench", func(r *bench.Report) string { return r.Conditions.Program.Version }},
		{"Go", func(r *bench.Report) string { return measured(r).Go }},
		{"cgo", func(r *bench.Report) string { return measured(r).Cgo }},
		{"GOMAXPROCS", func(r *bench.Report) string { return measured(r).GOMAXPROCS }},
		{"GOGC", func(r *bench.Report) string { return measured(r).GOGC }},
		{"GOMEMLIMIT", func(r *bench.Report) string { return measured(r).GOMEMLIMIT }},
		{"filesystem", func(r *bench.Report) string { return disk(r).Filesystem }},
		{"device", func(r *bench.Report) string { return disk(r).Device }},
	}
}

// measured is the program whose figures the report has.
func measured(r *bench.Report) *bench.Program {
	if r.Conditions.Node != nil {
		return &r.Conditions.Node.Program
	}
	return &r.Conditions.Program
}

// disk is where the report's data lay.
func disk(r *bench.Report) *bench.Disk {
	if r.Conditions.Data != nil {
		return r.Conditions.Data
	}
	return &bench.Disk{Filesystem: "none", Device: "none"}
}

// alike says in what the reports differ: what forbids a comparison, and what is worth a warning.
// The first n are side A.
func alike(all []*bench.Report, n int) (refused, warnings []string) {
	differ := func(traits []trait) (list []string) {
		for _, t := range traits {
			first := t.of(all[0])
			for _, r := range all[1:] {
				if other := t.of(r); other != first {
					list = append(list, fmt.Sprintf("the %s differs: %q and %q", t.name, first, other))
					break
				}
			}
		}
		return list
	}
	refused, warnings = differ(needed()), differ(wanted())
	if !interleaved(all, n) {
		warnings = append(warnings, "the sides did not take turns with each other: what the machine did "+
			"meanwhile is a part of the difference (clobench turns measures two nodes in turns)")
	}
	for _, r := range all {
		for i := range r.Turns {
			if r.Turns[i].Seconds < r.AskedSeconds/float64(len(r.Turns))*0.9 {
				return refused, append(warnings, "a turn ended before its time: "+r.EndedBy)
			}
		}
	}
	return refused, warnings
}

// interleaved reports whether each run of side A took turns with a run of side B, or is compared
// with itself.
func interleaved(all []*bench.Report, n int) bool {
	with := 0
	for _, a := range all[:n] {
		for _, b := range all[n:] {
			if a.Conditions.Start.Equal(b.Conditions.Start) {
				with++
				break
			}
		}
	}
	return with == n && len(all) == 2*n
}

// partners are the reports of side B, each at the place of the report of A with which it took
// turns. They are nil unless each report took turns with one of the other side.
func partners(a, b []*bench.Report) []*bench.Report {
	if len(a) != len(b) {
		return nil
	}
	var out []*bench.Report
	left := slices.Clone(b)
	for _, r := range a {
		i := slices.IndexFunc(left, r.RanBeside)
		if i < 0 {
			return nil
		}
		out = append(out, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return out
}
