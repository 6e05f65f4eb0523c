package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/google/pprof/profile"
)

// Line is a stage's part of a profile.
type Line struct {
	Stage   Stage         `json:"stage"`
	CPU     time.Duration `json:"cpu_ns"`
	Samples int64         `json:"samples"`
	// Heaviest are the innermost functions of the stage that took the most, at most three, each with
	// its share of the stage.
	Heaviest []Weight `json:"heaviest"`
}

// Weight is a function with its share of a stage, in [0, 1].
type Weight struct {
	Function string  `json:"function"`
	Share    float64 `json:"share"`
}

const heaviest = 3

// Divide divides a CPU profile of the Go runtime, gzipped or not. Stages without a sample have a
// line too. A text that is no CPU profile is an error.
func Divide(text []byte) ([]Line, error) {
	p, err := profile.ParseData(text)
	if err != nil {
		return nil, fmt.Errorf("read CPU profile: %w", err)
	}
	if len(p.SampleType) != 2 || p.SampleType[1].Type != "cpu" {
		return nil, fmt.Errorf("read CPU profile: its samples are no CPU time")
	}
	lines := map[Stage]*Line{}
	weights := map[Stage]map[string]time.Duration{}
	for _, s := range p.Sample {
		frames := framesOf(s)
		stage := stageOf(frames)
		l := lines[stage]
		if l == nil {
			l = &Line{Stage: stage}
			lines[stage], weights[stage] = l, map[string]time.Duration{}
		}
		l.Samples += s.Value[0]
		l.CPU += time.Duration(s.Value[1])
		if len(frames) > 0 {
			weights[stage][frames[0]] += time.Duration(s.Value[1])
		}
	}
	out := make([]Line, 0, len(Stages()))
	for _, stage := range Stages() {
		l := lines[stage]
		if l == nil {
			l = &Line{Stage: stage}
		}
		l.Heaviest = weigh(weights[stage], l.CPU)
		out = append(out, *l)
	}
	return out, nil
}

// framesOf are the names of a stack's functions from the leaf outwards, inlined ones included.
func framesOf(s *profile.Sample) (frames []string) {
	for _, at := range s.Location {
		for i := range at.Line {
			if f := at.Line[i].Function; f != nil {
				frames = append(frames, f.Name)
			}
		}
	}
	return frames
}

// weigh picks the heaviest functions of a stage.
func weigh(all map[string]time.Duration, sum time.Duration) (list []Weight) {
	for name, cpu := range all {
		list = append(list, Weight{name, cpu.Seconds() / sum.Seconds()})
	}
	slices.SortFunc(list, func(a, b Weight) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Function, b.Function))
	})
	return list[:min(len(list), heaviest)]
}
