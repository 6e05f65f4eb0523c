package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

const fullMetrics = `# HELP go_gc_gogc_percent Heap size target percentage.
# TYPE go_gc_gogc_percent gauge
go_gc_gogc_percent 150
go_gc_gomemlimit_bytes 1.073741824e+09
go_info{version="go1.99"} 1
go_sched_gomaxprocs_threads 5
process_cpu_seconds_total 12.25
`

// adminOf serves a fake admin listener.
func adminOf(t *testing.T, status int, ready, metrics string) desk {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, ready)
	})
	if metrics != "" {
		mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, metrics)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return desk{addr: strings.TrimPrefix(server.URL, "http://")}
}

func TestNodeConditions(t *testing.T) {
	const ready = `{"ready":true,"sequence":7,"durability":"async","version":"v1"}`
	for _, c := range []struct {
		name, ready, metrics string
		want                 Node
	}{
		{"all", ready, fullMetrics, Node{Program: Program{"v1", "go1.99", unknown, "5", "150",
			"1073741824"}, Durability: "async"}},
		{"off", ready, "go_gc_gogc_percent -1\ngo_gc_gomemlimit_bytes 9.223372036854776e+18\n",
			Node{Program: Program{"v1", unknown, unknown, unknown, "off", "off"}, Durability: "async"}},
		{"off as a huge number", ready, "go_gc_gogc_percent 1.8446744073709552e+19\n",
			Node{Program: Program{"v1", unknown, unknown, unknown, "off", unknown}, Durability: "async"}},
		{"no metrics", ready, "", Node{Program: Program{"v1", unknown, unknown, unknown, unknown,
			unknown}, Durability: "async"}},
		{"nothing", `{"ready":true}`, "go_gc_gogc_percent_of_others 3\n", Node{Program: Program{unknown,
			unknown, unknown, unknown, unknown, unknown}, Durability: unknown}},
	} {
		d := adminOf(t, 200, c.ready, c.metrics)
		got, err := d.conditions(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.want.Admin = d.addr
		if *got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, *got, c.want)
		}
	}
}

func TestNodeConditionsRefused(t *testing.T) {
	if _, err := adminOf(t, 503, `{"ready":false}`, fullMetrics).conditions(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "not ready") {
		t.Errorf("not ready: %v", err)
	}
	if _, err := adminOf(t, 200, `<html>`, "").conditions(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "not a node's admin listener") {
		t.Errorf("a web page: %v", err)
	}
	if _, err := (desk{addr: "127.0.0.1:1"}).conditions(t.Context()); err == nil {
		t.Error("nobody listens, and still there are conditions")
	}
}

func TestNodeCPU(t *testing.T) {
	got, err := adminOf(t, 200, "", fullMetrics).cpu(t.Context())
	if err != nil || got != 12250*time.Millisecond {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := adminOf(t, 200, "", "x 1\n").cpu(t.Context()); err == nil {
		t.Errorf("read %v where there is none", got)
	}
}

// TestThisProgram changes the settings of the test's own process and reads them.
func TestThisProgram(t *testing.T) {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(1<<40)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	p := thisProgram("v3")
	if p.GOGC != "off" || p.GOMEMLIMIT != "1099511627776" || p.Version != "v3" ||
		p.GOMAXPROCS != fmt.Sprint(runtime.GOMAXPROCS(0)) {
		t.Errorf("got %+v", p)
	}
	debug.SetGCPercent(55)
	debug.SetMemoryLimit(1<<63 - 1)
	if p := thisProgram(""); p.GOGC != "55" || p.GOMEMLIMIT != "off" {
		t.Errorf("got %+v", p)
	}
}
