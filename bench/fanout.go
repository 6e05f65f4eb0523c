package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Fanout says how the node's market stream is measured beside centrifuge and a bare loop: bursts of
// messages are due at a constant rate, and all subscribers get all of them.
type Fanout struct {
	Setting
	Rounds   int
	Duration time.Duration // of one turn
	Cases    []FanCase
	Idle     int // subscribers whose memory is measured; 0: none
}

// FanCase is how many subscribers get bursts of how many messages, and how many bursts a second.
type FanCase struct {
	Subscribers int     `json:"subscribers"`
	Burst       int     `json:"burst"`
	Rate        float64 `json:"bursts_per_second"`
}

// fanMost bounds the subscribers and what they get.
const (
	fanMost      = 20_000
	fanMostBurst = 200 // a frame of the journal holds its orders
	fanLeast     = 8   // bursts of a turn, however long they take
)

// FanCases are the cases that goals are set for, at rates that all sides carry on two cores.
func FanCases() []FanCase {
	return []FanCase{{100, 1, 400}, {100, 8, 100}, {100, 32, 40}, {1000, 1, 40}, {1000, 8, 10},
		{1000, 32, 4}, {5000, 8, 1}}
}

// ParseFanCase reads a case: SUBSCRIBERSxBURST@RATE, as 1000x8@10.
func ParseFanCase(text string) (c FanCase, err error) {
	subscribers, rest, _ := strings.Cut(text, "x")
	burst, rate, _ := strings.Cut(rest, "@")
	var errs [3]error
	c.Subscribers, errs[0] = strconv.Atoi(subscribers)
	c.Burst, errs[1] = strconv.Atoi(burst)
	c.Rate, errs[2] = strconv.ParseFloat(rate, 64)
	if errors.Join(errs[:]...) != nil {
		return c, fmt.Errorf("case %q: want SUBSCRIBERSxBURST@RATE, as 1000x8@10", text)
	}
	return c, nil
}

// String is the case as ParseFanCase reads it.
func (c FanCase) String() string {
	return fmt.Sprintf("%dx%d@%g", c.Subscribers, c.Burst, c.Rate)
}

// validate returns all problems at once, or nil.
func (f *Fanout) validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("fan-out: "+format, args...))
		}
	}
	bad(f.Rounds < 1, "no rounds")
	bad(f.Duration <= 0, "the duration is not positive")
	bad(f.Idle < 0 || f.Idle > fanMost, "%d idle subscribers are not in [0, %d]", f.Idle, fanMost)
	bad(len(f.Cases) == 0 && f.Idle == 0, "there is no case")
	for _, c := range f.Cases {
		bad(c.Subscribers < 1 || c.Subscribers > fanMost, "%s: the subscribers are not in [1, %d]", c,
			fanMost)
		bad(c.Burst < 1 || c.Burst > fanMostBurst, "%s: the burst is not in [1, %d]", c, fanMostBurst)
		bad(!(c.Rate >= 0.1 && c.Rate <= 1e5), "%s: the rate is not in [0.1, 100000]", c)
	}
	return errors.Join(problems...)
}

// bursts is how many are measured in a turn.
func (f *Fanout) bursts(c FanCase) int {
	return max(int(c.Rate*f.Duration.Seconds()+0.5), fanLeast)
}

// Fanned is the result.
type Fanned struct {
	Conditions Conditions  `json:"conditions"`
	Peer       string      `json:"peer"` // module and version of the library beside the node
	Rounds     int         `json:"rounds"`
	Seconds    float64     `json:"seconds_per_turn"`
	Nice       int         `json:"subscribers_nice"`
	Cases      []FanResult `json:"cases"`
	Idle       *FanIdle    `json:"idle,omitempty"`
}

// FanResult is a case: the sides by round, and what the node's side is worth.
type FanResult struct {
	FanCase
	MessageBytes int       `json:"message_bytes"` // the longest of two bursts, without its frame
	Sides        []FanSide `json:"sides"`         // clobd, bare, centrifuge
	OfBare       FanRatio  `json:"cpu_ratio_to_bare"`
	OfPeer       FanRatio  `json:"cpu_ratio_to_centrifuge"`
	// Repeated are turns that were dropped and measured again, because the rate was not reached: the
	// machine may have stood still.
	Repeated int `json:"turns_repeated"`
	// Invalid says why the figures are worth nothing; "" if all was delivered at the rate.
	Invalid string `json:"invalid,omitempty"`
}

// FanSide is one server's rounds.
type FanSide struct {
	Name string `json:"name"`
	// CPUMicros is user and system time of the server's process for each message that a subscriber
	// got; what the kernel does to hand it over on this machine is included.
	CPUMicros []float64 `json:"cpu_micros_per_message"`
	// Last is from the instant at which a burst was due until the last subscriber has read it.
	Last []Latency `json:"publish_to_last_read_micros"`
	Late []float64 `json:"published_late_p99_micros"`
	// Made is what engine, encoding and Board take for the frame of a burst, p50; 0 elsewhere. It is a
	// part of the node's CPUMicros, and the others have no such work.
	Made     []float64 `json:"frame_made_p50_micros"`
	Messages []float64 `json:"messages_per_second"` // until the last one was read
	Bytes    []float64 `json:"bytes_per_second"`
	Gaps     int64     `json:"gaps"`
	Cuts     int64     `json:"cuts"` // sockets that ended before the turn did
}

// FanRatio is of CPU time per message: the median, least and most of the rounds, and the goal.
type FanRatio struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
	Goal   float64 `json:"goal"`
	Met    bool    `json:"met"`
}

// FanIdle is what subscribers that get nothing cost each, in bytes beyond the kernel's own.
type FanIdle struct {
	Subscribers int           `json:"subscribers"`
	Goal        float64       `json:"goal_bytes"` // for RSS of the node's side
	Met         bool          `json:"met"`
	Sides       []FanIdleSide `json:"sides"`
}

// FanIdleSide is one server's rounds: resident memory, and live heap and stacks after a collection.
type FanIdleSide struct {
	Name string    `json:"name"`
	RSS  []float64 `json:"rss_bytes"`
	Heap []float64 `json:"heap_bytes"`
}

// fanGoalIdle is in bytes.
const fanGoalIdle = 6 << 10

// fanSides are the sides in the order of the report.
func fanSides() []string { return []string{fanClobd, fanBare, fanCentrifuge} }

// fanPaths are where the sides let subscribers in.
func fanPaths() map[string]string {
	return map[string]string{fanClobd: "/ws/market", fanBare: "/",
		fanCentrifuge: "/connection/websocket"}
}

// fanPeer is the module of the library beside the node.
const fanPeer = "github.com/centrifugal/centrifuge"

// goals are what the node's CPU time per message may be of the others'.
func (c FanCase) goals() (ofBare, ofPeer float64) {
	switch {
	case c.Burst >= 32, c.Subscribers >= 5000:
		return 1.1, 0.3
	case c.Burst >= 8:
		return 1.1, 0.5
	}
	return 1.1, 0.65
}

// MeasureFanout measures the cases one after the other, the sides of each in turn: who begins
// changes from round to round. Each turn has processes of its own.
func MeasureFanout(ctx context.Context, f Fanout) (*Fanned, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	w, err := startWatch(ctx, f.Self)
	if err != nil {
		return nil, err
	}
	defer w.end()
	out := &Fanned{Conditions: NewConditions(f.Version), Peer: fanPeer + " " + linked(fanPeer),
		Rounds: f.Rounds, Seconds: f.Duration.Seconds()}
	for _, c := range f.Cases {
		r, err := f.measure(ctx, c, out)
		if err != nil {
			return nil, f.failed(ctx, fmt.Errorf("%s: %w", c, err))
		}
		out.Cases = append(out.Cases, *r)
	}
	if f.Idle > 0 {
		if out.Idle, err = f.rest(ctx); err != nil {
			return nil, f.failed(ctx, err)
		}
	}
	out.Conditions.Hiccup, err = w.lap()
	return out, err
}

// failed is why there is no figure.
func (f *Fanout) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return err
}

// linked is the version of a module in this program.
func linked(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return unknown
}

// inTurns calls turn for each side in each round.
func (f *Fanout) inTurns(turn func(side int) error) error {
	for round := range f.Rounds {
		for i := range fanSides() {
			if err := turn((i + round) % len(fanSides())); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure measures a case.
func (f *Fanout) measure(ctx context.Context, c FanCase, all *Fanned) (*FanResult, error) {
	texts, err := f.texts(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &FanResult{FanCase: c}
	for _, t := range texts {
		r.MessageBytes = max(r.MessageBytes, len(t))
	}
	for _, side := range fanSides() {
		r.Sides = append(r.Sides, FanSide{Name: side})
	}
	err = f.inTurns(func(side int) error {
		for try := 1; ; try++ {
			t := fanTurn{FanCase: c, spec: f.spec(c, fanSides()[side], texts)}
			if err := t.run(ctx, f.Self); err != nil {
				return fmt.Errorf("%s: %w", fanSides()[side], err)
			}
			all.Nice = t.heard.Nice
			why := t.wrong()
			if strings.HasPrefix(why, fanNotKept) && try < fanTries {
				r.Repeated++
				continue
			}
			t.add(&r.Sides[side])
			if said := fanSides()[side] + ": "; why != "" && !strings.Contains(r.Invalid, said) {
				r.Invalid = strings.TrimPrefix(r.Invalid+"; "+said+why, "; ")
			}
			return nil
		}
	})
	goalBare, goalPeer := c.goals()
	r.OfBare = ratioOf(&r.Sides[0], &r.Sides[1], goalBare)
	r.OfPeer = ratioOf(&r.Sides[0], &r.Sides[2], goalPeer)
	return r, err
}

// ratioOf compares the rounds of two sides.
func ratioOf(a, b *FanSide, goal float64) FanRatio {
	var all []float64
	for i := range min(len(a.CPUMicros), len(b.CPUMicros)) {
		all = append(all, a.CPUMicros[i]/max(b.CPUMicros[i], 1e-9))
	}
	if len(all) == 0 {
		return FanRatio{Goal: goal}
	}
	r := FanRatio{Median(all), slices.Min(all), slices.Max(all), goal, false}
	r.Met = r.Median <= goal
	return r
}

// spec is what a side sends in a case. A fifth more bursts come before the clock starts.
func (f *Fanout) spec(c FanCase, side string, texts [][]byte) fanSpec {
	n := f.bursts(c)
	return fanSpec{Side: side, Burst: c.Burst, Warm: max(n/5, 2), Bursts: n,
		Interval: time.Duration(float64(time.Second) / c.Rate), Texts: texts}
}

// texts asks the node's side for the messages of two bursts, which all others send.
func (f *Fanout) texts(ctx context.Context, c FanCase) ([][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	spec := fanSpec{Side: fanClobd, Burst: c.Burst, Warm: 2, Bursts: 2,
		Interval: 20 * time.Millisecond}
	server, addr, err := spec.start(ctx, f.Self)
	if err != nil {
		return nil, err
	}
	defer server.end()
	l, err := listenTo(ctx, addr, fanWish(c.Burst))
	if l != nil {
		defer l.conn.Close()
	}
	if err == nil {
		err = server.ask(fanAskRun, &fanRun{})
	}
	var all [][]byte
	for i := 0; i < 4*c.Burst && err == nil; i++ {
		if _, err = l.next(); err == nil && i >= 2*c.Burst {
			all = append(all, bytes.Clone(l.text))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the messages: %w", err)
	}
	return all, nil
}

// fanWish subscribes to a token of each market of a burst.
func fanWish(burst int) []byte {
	b := []byte(`{"type":"market","assets_ids":[`)
	for m := range burst {
		if m > 0 {
			b = append(b, ',')
		}
		b = append(fanToken(m).AppendDecimal(append(b, '"')), '"')
	}
	return append(b, "]}"...)
}

// rest measures the memory of subscribers that get nothing, in turns.
func (f *Fanout) rest(ctx context.Context) (*FanIdle, error) {
	out := &FanIdle{Subscribers: f.Idle, Goal: fanGoalIdle}
	for _, side := range fanSides() {
		out.Sides = append(out.Sides, FanIdleSide{Name: side})
	}
	err := f.inTurns(func(side int) error {
		t := fanTurn{FanCase: FanCase{Subscribers: f.Idle, Burst: 1},
			spec: fanSpec{Side: fanSides()[side], Burst: 1}}
		if err := t.idle(ctx, f.Self); err != nil {
			return fmt.Errorf("%d idle subscribers of %s: %w", f.Idle, fanSides()[side], err)
		}
		s := &out.Sides[side]
		s.RSS = append(s.RSS, float64(t.held.RSS)/float64(f.Idle))
		s.Heap = append(s.Heap, float64(t.held.Heap)/float64(f.Idle))
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.Met = Median(out.Sides[0].RSS) <= out.Goal
	return out, nil
}

// Failed reports what makes figures worthless.
func (f *Fanned) Failed() error {
	var problems []error
	for i := range f.Cases {
		if r := &f.Cases[i]; r.Invalid != "" {
			problems = append(problems, fmt.Errorf("%s: %s", r.FanCase, r.Invalid))
		}
	}
	return errors.Join(problems...)
}

// WriteText prints the cases with their verdicts.
func (f *Fanned) WriteText(w io.Writer) {
	fmt.Fprintf(w, "clobd's market stream (its Hub and door, engine and Board in memory, no journal), a "+
		"bare loop and %s (its own defaults, JSON over WebSocket): the same messages to the same "+
		"subscribers, a process each, subscribers in another on one CPU at nice %d; medians of %d "+
		"interleaved rounds of 3 x %.1f s or %d bursts, open loop\n", f.Peer, f.Nice, f.Rounds, f.Seconds,
		fanLeast)
	if len(f.Cases) > 0 {
		fmt.Fprintln(w, "  subscribers x burst @ bursts/s  side        CPU µs a message (least to most)  "+
			"due to last read ms p50      p99  published late p99  messages/s    MB/s  gaps  cuts")
	}
	for i := range f.Cases {
		f.Cases[i].write(w)
	}
	if f.Idle != nil {
		f.Idle.write(w)
	}
	f.Conditions.write(w)
}

func (r *FanResult) write(w io.Writer) {
	label := fmt.Sprintf("%s, %d bytes", r.FanCase, r.MessageBytes)
	for i := range r.Sides {
		s := &r.Sides[i]
		var p50, p99 []float64
		for _, l := range s.Last {
			p50, p99 = append(p50, l.P50/1e3), append(p99, l.P99/1e3)
		}
		fmt.Fprintf(w, "  %-30s  %-10s %8.3f (%.3f to %.3f) %30.2f %9.2f %19.2f %11.0f %7.1f %5d %5d\n",
			label, s.Name, Median(s.CPUMicros), slices.Min(s.CPUMicros), slices.Max(s.CPUMicros),
			Median(p50), Median(p99), Median(s.Late)/1e3, Median(s.Messages), Median(s.Bytes)/1e6, s.Gaps,
			s.Cuts)
		label = ""
	}
	if r.Invalid != "" {
		fmt.Fprintf(w, "    INVALID: %s\n", r.Invalid)
		return
	}
	fmt.Fprintf(w, "    of bare %s; of centrifuge %s; %.1f µs for the frame of a burst, %d turns repeated\n",
		&r.OfBare, &r.OfPeer, Median(r.Sides[0].Made), r.Repeated)
}

// String is the ratio with its spread and verdict.
func (r *FanRatio) String() string {
	return fmt.Sprintf("%.2f (%.2f to %.2f), goal %.2f %s", r.Median, r.Least, r.Most, r.Goal,
		verdict(r.Met))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "MISSED"
}

func (f *FanIdle) write(w io.Writer) {
	fmt.Fprintf(w, "  %d idle subscribers, KiB each beyond the kernel's own, after a collection:\n",
		f.Subscribers)
	for i := range f.Sides {
		s := &f.Sides[i]
		fmt.Fprintf(w, "    %-10s  RSS %.2f (%.2f to %.2f)  heap and stacks %.2f\n", s.Name,
			Median(s.RSS)/1024, slices.Min(s.RSS)/1024, slices.Max(s.RSS)/1024, Median(s.Heap)/1024)
	}
	fmt.Fprintf(w, "    goal %.0f of RSS: %s\n", f.Goal/1024, verdict(f.Met))
}

// fanTurn is one side once: its server and its subscribers.
type fanTurn struct {
	FanCase
	spec  fanSpec
	ran   fanRun
	cpu   time.Duration
	held  fanRest
	heard fanHeard
}

// fanCut is how long messages may be on their way when nothing is published any more.
const fanCut = 5 * time.Second

// run publishes all bursts to all subscribers, and waits until they have them.
func (t *fanTurn) run(ctx context.Context, self string) error {
	return t.with(ctx, self, func(server, crowd *converse) error {
		if err := server.ask(fanAskRun, &t.ran); err != nil {
			return err
		}
		enough := time.AfterFunc(fanCut, func() { _ = crowd.in.Close() })
		defer enough.Stop()
		if err := crowd.hear(&t.heard); err != nil {
			return err
		}
		return server.ask(fanAskCPU, &t.cpu)
	})
}

// idle lets subscribers come, and measures.
func (t *fanTurn) idle(ctx context.Context, self string) error {
	return t.with(ctx, self, func(server, crowd *converse) error {
		time.Sleep(fanSettle)
		return server.ask(fanAskRest, &t.held)
	})
}

// with calls do with a server whose subscribers are all there.
func (t *fanTurn) with(ctx context.Context, self string,
	do func(server, crowd *converse) error) error {
	all := time.Duration(t.spec.Warm+t.spec.Bursts) * t.spec.Interval
	ctx, cancel := context.WithTimeout(ctx, 2*all+3*answerTime)
	defer cancel()
	server, addr, err := t.spec.start(ctx, self)
	if err != nil {
		return err
	}
	defer server.end()
	crowd, err := startConverse(ctx, self, "fan", "crowd")
	if err != nil {
		return err
	}
	defer crowd.end()
	listen := fanCrowd{Addr: addr, Path: fanPaths()[t.spec.Side], Subscribers: t.Subscribers,
		Burst: t.Burst, Bursts: t.spec.Warm + t.spec.Bursts}
	switch t.spec.Side {
	case fanClobd:
		listen.Wish = fanWish(t.Burst)
	case fanCentrifuge:
		listen.Wish = []byte(`{"id":1,"connect":{}}`)
	}
	var begun string
	err = syscall.Setpriority(syscall.PRIO_PGRP, crowd.cmd.Process.Pid, max(floodNice, niceness()))
	if err == nil {
		err = crowd.tell(listen)
	}
	if err == nil {
		err = crowd.hear(&begun)
	}
	if err == nil {
		err = do(server, crowd)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s%s", err, server.told.String(), crowd.told.String())
	}
	return nil
}

// last are the times until the last subscriber had the measured bursts, and when that was at the
// latest, in ns after 1970.
func (t *fanTurn) last() (last recorder, end int64) {
	last, end = newRecorder(), t.ran.Start
	for k, at := range t.heard.Last[min(t.spec.Warm, len(t.heard.Last)):] {
		if at > 0 {
			due := t.ran.Start + int64(k)*int64(t.spec.Interval)
			last.record(time.Duration(max(at-due, 0)))
			end = max(end, at)
		}
	}
	return last, end
}

// all is how many messages arrive if none is missing, the ones before the clock included.
func (t *fanTurn) all() int64 {
	return int64(t.Subscribers) * int64(t.Burst) * int64(t.spec.Warm+t.spec.Bursts)
}

// add appends the turn to a side's rounds.
func (t *fanTurn) add(s *FanSide) {
	last, end := t.last()
	seconds := max(float64(end-t.ran.Start)/1e9, 1e-3)
	share := float64(t.spec.Bursts) / float64(t.spec.Warm+t.spec.Bursts) // of all that was heard
	s.CPUMicros = append(s.CPUMicros, float64(t.cpu.Nanoseconds())/1e3/(float64(t.all())*share))
	s.Last, s.Late = append(s.Last, last.latency()), append(s.Late, t.ran.Late.P99)
	s.Made = append(s.Made, t.ran.Made)
	s.Messages = append(s.Messages, float64(t.heard.Messages)*share/seconds)
	s.Bytes = append(s.Bytes, float64(t.heard.Bytes)*share/seconds)
	s.Gaps, s.Cuts = s.Gaps+t.heard.Gaps, s.Cuts+t.heard.Cuts
}

// wrong says what makes the turn worthless, "" if nothing does.
func (t *fanTurn) wrong() string {
	asked := time.Duration(t.spec.Bursts) * t.spec.Interval
	_, end := t.last()
	read := time.Duration(end - t.ran.Start)
	switch {
	case t.heard.Messages != t.all() || t.heard.Gaps > 0 || t.heard.Cuts > 0:
		return fmt.Sprintf("%d of %d messages arrived, %d gaps, %d sockets cut", t.heard.Messages,
			t.all(), t.heard.Gaps, t.heard.Cuts)
	case t.ran.Took > asked+asked/32+fanStall, read > asked+asked/8+fanStall:
		return fmt.Sprintf("%s: what was due within %.2f s was published within %.2f s and read within "+
			"%.2f s", fanNotKept, asked.Seconds(), t.ran.Took.Seconds(), read.Seconds())
	}
	return ""
}

const (
	fanNotKept = "the rate was not reached"
	fanTries   = 3                      // of a turn that did not reach it
	fanStall   = 250 * time.Millisecond // a pause of the machine that is forgiven
)

// start starts a server process for one side of the comparison. It returns the server's address.
func (s *fanSpec) start(ctx context.Context, self string) (*converse, string, error) {
	c, err := startConverse(ctx, self, "fan", "server")
	if err != nil {
		return nil, "", err
	}
	var addr string
	if err = c.tell(s); err == nil {
		err = c.hear(&addr)
	}
	if err != nil {
		c.end()
		return nil, "", fmt.Errorf("start %s: %w\n%s", s.Side, err, c.told.String())
	}
	return c, addr, nil
}

// converse is a process that is told and asked things in lines of JSON.
type converse struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	told bytes.Buffer // what it complained of
}

func startConverse(ctx context.Context, self string, args ...string) (*converse, error) {
	c := &converse{cmd: command(ctx, self, args...)}
	c.cmd.Stderr = &c.told
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %v: %w", args, err)
	}
	return c, nil
}

// tell sends a line.
func (c *converse) tell(what any) error { return json.NewEncoder(c.in).Encode(what) }

// hear reads a line.
func (c *converse) hear(answer any) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return errors.Join(errors.New("the process ends without an answer"), err)
	}
	return json.Unmarshal(line, answer)
}

// ask sends a line and reads the next one.
func (c *converse) ask(what string, answer any) error {
	if _, err := io.WriteString(c.in, what); err != nil {
		return err
	}
	return c.hear(answer)
}

// end makes sure that the process is gone.
func (c *converse) end() {
	_ = c.cmd.Process.Kill() // it may be gone already
	_ = c.cmd.Wait()
}
