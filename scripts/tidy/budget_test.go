package tidy

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// budget is what the code may need directly, each with its reason. Whoever adds a module adds a
// line here first: somebody has to keep it, and to read what it changes.
func budget() map[string]string {
	return map[string]string{
		"github.com/HdrHistogram/hdrhistogram-go":   "latencies of the load tester, without losing the tail",
		"github.com/KimMachineGun/automemlimit":     "how much memory the container or the machine lets the heap have",
		"github.com/alecthomas/kong":                "command lines with help and environment variables",
		"github.com/anishathalye/porcupine":         "tests: whether recorded answers have an order that explains them",
		"github.com/centrifugal/centrifuge":         "the load tester's peer for fan-out; the node does not link it",
		"github.com/arl/statsviz":                   "live curves of the runtime and of the node, with a page of their own",
		"github.com/cockroachdb/datadriven":         "tests: scripts with their expected answers",
		"github.com/cockroachdb/pebble/v2":          "the journal and the index: write-ahead log, sync, crash tests",
		"github.com/decred/dcrd/dcrec/secp256k1/v4": "signatures where there is no cgo",
		"github.com/ethereum/go-ethereum":           "libsecp256k1 through cgo: signatures in a third of the time",
		"github.com/fasthttp/router":                "routes of fasthttp",
		"github.com/fasthttp/websocket":             "handshake and protocol of WebSocket",
		"github.com/getkin/kin-openapi":             "tests: every answer is what the OpenAPI document promises",
		"github.com/goccy/go-json":                  "JSON that is neither slow nor different from the standard library's",
		"github.com/google/pprof":                   "bench: CPU profiles, read to divide an order's time",
		"github.com/klauspost/compress":             "gzip in half the time; fasthttp needs it anyway",
		"github.com/prometheus/client_golang":       "metrics that every monitoring reads",
		"github.com/prometheus/client_model":        "metrics as they are gathered, for the operator's page",
		"github.com/santhosh-tekuri/jsonschema/v6":  "tests: every message is what the AsyncAPI document promises",
		"github.com/valyala/fasthttp":               "HTTP without an allocation per request",
		"go.etcd.io/raft/v3":                        "agreement of a cluster's members, without clock or disk",
		"go.uber.org/goleak":                        "tests: every goroutine is joined",
		"golang.org/x/crypto":                       "keccak, which the standard library has only in its later form",
		"golang.org/x/net":                          "which names a header may have",
		"golang.org/x/sys":                          "which instructions the processor has and the kernel allows",
		"golang.org/x/text":                         "search: letters without their accents",
		"golang.org/x/perf":                         "bench: the test that says whether two runs differ",
		"google.golang.org/protobuf":                "messages between the members, as the library has them",
		"gonum.org/v1/plot":                         "bench: pictures of reports, without a script",
		"pgregory.net/rapid":                        "tests: random streams of commands, shrunk to the shortest",
		"tool honnef.co/go/tools/cmd/staticcheck":   "make lint",
		"tool golang.org/x/vuln/cmd/govulncheck":    "make check: known flaws",
	}
}

// requirements are the modules and tools that the text of a go.mod names, each with whether the
// code is said to need it directly.
func requirements(text string) map[string]bool {
	all := map[string]bool{}
	block := ""
	for line := range strings.Lines(text) {
		line, remark, _ := strings.Cut(strings.TrimSpace(line), "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == ")":
			block = ""
			continue
		case len(words) == 2 && words[1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		switch words[0] {
		case "require":
			all[words[1]] = strings.TrimSpace(remark) != "indirect"
		case "tool":
			all["tool "+words[1]] = true
		}
	}
	return all
}

// overspent are the differences between what is required and what is allowed.
func overspent(required map[string]bool, allowed map[string]string) (problems []string) {
	for name, direct := range required {
		if direct && allowed[name] == "" {
			problems = append(problems, name+" is required, but the budget has no reason for it")
		}
	}
	for name := range allowed {
		if _, is := required[name]; !is {
			problems = append(problems, name+" is not required any more: strike it off the budget")
		}
	}
	slices.Sort(problems)
	return problems
}

// TestDependencyBudget: a new dependency is a decision, not an accident.
func TestDependencyBudget(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range overspent(requirements(string(text)), budget()) {
		t.Error(problem)
	}
}

func TestOverspent(t *testing.T) {
	required := requirements("module x // y\n\ngo 1.26.0\nrequire a/a v1.0.0\nrequire (\n\tb/b v1.2.3\n" +
		"\tc/c v0.0.1 // indirect\n)\n\n// tools\ntool d/d/cmd/d\ntool (\n\te/e\n)\nreplace f/f => g/g v1\n")
	for _, c := range []struct {
		allowed string
		want    string
	}{
		{"a/a b/b tool:d/d/cmd/d tool:e/e", ""},
		{"a/a b/b c/c tool:d/d/cmd/d tool:e/e", ""}, // about to be needed
		{"a/a tool:d/d/cmd/d tool:e/e", "b/b is required"},
		{"a/a b/b tool:d/d/cmd/d", "tool e/e is required"},
		{"a/a b/b h/h tool:d/d/cmd/d tool:e/e", "h/h is not required any more"},
	} {
		allowed := map[string]string{}
		for _, name := range strings.Fields(c.allowed) {
			allowed[strings.ReplaceAll(name, ":", " ")] = "why"
		}
		got := strings.Join(overspent(required, allowed), "\n")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.allowed, got, c.want)
		}
	}
}
