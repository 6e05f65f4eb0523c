package lean

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestUnsent: an open loop whose server is too slow gives up requests that are late by the whole
// duration of the load. Each such request counts in the corrected times with the time it waited.
func TestUnsent(t *testing.T) {
	eventually(t, 100*time.Millisecond, func(d time.Duration) (wrong string) {
		addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
			time.Sleep(d * 3 / 2)
			_, err := io.WriteString(w, status(200, `{}`))
			return err == nil
		})
		l := orders(addr, 1, 10)
		l.Routes[0].Want = WantAny
		l.Rate, l.Duration = 10/d.Seconds(), d
		m := run(t, l)
		// All ten were due within d, and the load gave up after twice that: there was room for two.
		if m.Good+m.Unsent != 10 || m.Unsent < 7 || m.Full || m.Corrected.TotalCount() != 10 ||
			m.Service.TotalCount() != m.Sent {
			t.Fatalf("%+v; %d corrected times", m, m.Corrected.TotalCount())
		}
		if p50 := m.Corrected.ValueAtQuantile(50); p50 < d.Nanoseconds() {
			t.Fatalf("p50 %d ns", p50)
		}
		if m.Good == 0 {
			return "the load stood still until it was too late for all"
		}
		return ""
	})
}

// TestStoppedInFlight: a load that is stopped sends nothing more, and waits for the answers to what
// it has sent.
func TestStoppedInFlight(t *testing.T) {
	for _, rate := range []float64{0, 0.01} { // the second is due after 100 s
		eventually(t, 3*longestWait, func(d time.Duration) (wrong string) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			arrived := make(chan bool, 10)
			addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
				arrived <- true
				stop()
				time.Sleep(min(d, lastAnswers/2)) // the end of ctx is seen before the answer
				_, err := io.WriteString(w, status(200, `{}`))
				return err == nil
			})
			l := orders(addr, 1, 10)
			l.Routes[0].Want = WantAny
			l.Rate, l.Duration = rate, time.Hour
			m, err := l.Run(ctx)
			if !errors.Is(err, context.Canceled) || m.Failed != 0 || m.Sent < int64(len(arrived)) {
				t.Fatalf("rate %v: %v, %+v, %d arrived", rate, err, m, len(arrived))
			}
			if m.Sent != 1 || m.Good != 1 { // it was asleep when the answer came, or for lastAnswers
				return fmt.Sprintf("rate %v: %+v", rate, m)
			}
			return ""
		})
	}
}

// TestAlwaysBusy: a server that answers 503 for longer than patience ends a closed loop.
func TestAlwaysBusy(t *testing.T) {
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		_, err := io.WriteString(w, status(503, `{"error":"busy"}`))
		return err == nil
	})
	eventually(t, 100*time.Millisecond, func(d time.Duration) (wrong string) {
		l := orders(addr, 1, 3)
		l.Patience = d
		m := run(t, l)
		if m.Good != 0 || m.Failed != 1 {
			t.Fatalf("%+v", m)
		}
		if m.Busy == 0 || !strings.Contains(m.Failure, "status 503") { // an answer came too late
			return fmt.Sprintf("%+v", m)
		}
		return ""
	})
}

// TestDue sends at instants of the caller's: all that is due before the duration, and not Full if
// there is nothing more. Instants count from Start, even if it is over.
func TestDue(t *testing.T) {
	addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
		_, err := io.WriteString(w, status(200, `{}`))
		return err == nil
	})
	const ms = time.Millisecond
	load := func(duration time.Duration) *Load {
		l := orders(addr, 1, 3)
		l.Routes[0].Want = WantAny
		l.Due, l.Duration = []time.Duration{0, 50 * ms, 100 * ms}, duration
		return l
	}
	if m := run(t, load(time.Hour)); m.Good != 3 || m.Full || m.Took < 100*ms ||
		m.Took > time.Hour/2 {
		t.Errorf("shorter than the duration: %+v", m)
	}
	longer := load(time.Minute) // nobody waits for its end if nothing more is due
	longer.Due = []time.Duration{0, 50 * ms, time.Hour}
	if m := run(t, longer); m.Good != 2 || !m.Full || m.Took < time.Minute || m.Unsent != 0 {
		t.Errorf("longer than the duration: %+v", m)
	}
	late := load(20 * time.Second)
	late.Start = time.Now().Add(-600 * ms)
	if m := run(t, late); m.Good != 3 || m.Corrected.Min() < (490*ms).Nanoseconds() {
		t.Errorf("late from the start: %+v, least %d ns", m, m.Corrected.Min())
	}
	late.Start = time.Now().Add(-50 * time.Second)
	if m := run(t, late); m.Good != 0 || m.Unsent != 3 || m.Corrected.TotalCount() != 3 {
		t.Errorf("too late: %+v", m)
	}
}

// TestSettle: what is due before a loop has settled is sent over the same connections, and is not
// in the figures; a failure is.
func TestSettle(t *testing.T) {
	for _, code := range []int{200, 500} {
		n := 0
		addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
			answer := status(200, `{}`)
			if n++; n == 3 {
				answer = status(code, `{}`)
			}
			_, err := io.WriteString(w, answer)
			return err == nil
		})
		l := orders(addr, 1, 10)
		l.Routes[0].Want, l.Duration, l.Settle = WantAny, time.Minute, 50*time.Millisecond
		for i := range 10 {
			l.Due = append(l.Due, time.Duration(i)*10*time.Millisecond)
		}
		m, err := l.Run(t.Context())
		failed := int64(code / 500)
		if err != nil || n != 10 || m.Sent != 5 || m.Good != 5 || m.Acked != 5 || m.Failed != failed ||
			m.Service.TotalCount() != 5 || m.Corrected.TotalCount() != 5 || m.Late.TotalCount() != 5 ||
			!m.Answered(0) || m.Answered(2) != (failed == 0) || !m.Answered(9) {
			t.Errorf("%d requests, %+v, %v", n, m, err)
		}
	}
	l := orders("127.0.0.1:1", 1, 1)
	l.Settle = time.Second
	if _, err := l.Run(t.Context()); err == nil {
		t.Error("a closed loop settles")
	}
}

// TestSheds: only an answer 503 with one of the codes is a refusal.
func TestSheds(t *testing.T) {
	for answer, shed := range map[string]bool{
		status(503, `{"error":"no","code":"busy"}`):       true,
		status(503, `{"error":"no","code":"overloaded"}`): true,
		status(503, `{"error":"no","code":"closed"}`):     false,
		status(503, `no`): false,
		status(429, `{"error":"no","code":"busy"}`):         false,
		status(429, `{"error":"no","code":"rate_limited"}`): false,
	} {
		addr := serve(t, "127.0.0.1:0", func(w net.Conn, r *http.Request, body []byte) bool {
			_, err := io.WriteString(w, answer)
			return err == nil
		})
		l := orders(addr, 1, 3)
		l.Rate, l.Sheds = 1000, []string{"busy", "overloaded"}
		m, err := l.Run(t.Context())
		if err != nil || (m.Busy == 3) != shed || (m.Failed == 3) == shed ||
			(m.Shed.TotalCount() == 3) != shed {
			t.Errorf("%q: %+v, %v", answer, m, err)
		}
	}
}
