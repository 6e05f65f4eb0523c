package tidy

import (
	"slices"
	"strconv"
	"strings"
)

// row says what one package may import. Everything of the standard library is allowed unless the
// row forbids it.
type row struct {
	pkg  string            // folder; a trailing /* stands for every folder below
	ours []string          // packages of this module: each must have a row above, so no cycle can be
	out  []string          // modules outside the standard library: prefixes of import paths
	no   map[string]string // import path or its prefix → the reason why not, unless ours lists it

	tests []string // what only its tests import, packages of this module and modules outside
}

const (
	secp  = "github.com/ethereum/go-ethereum/crypto/secp256k1"
	decr  = "github.com/decred/dcrd/dcrec/secp256k1/v4"
	sha3  = "golang.org/x/crypto/sha3"
	xcpu  = "golang.org/x/sys/cpu"
	fast  = "github.com/valyala/fasthttp"
	route = "github.com/fasthttp/router"
	wsock = "github.com/fasthttp/websocket"
	gojs  = "github.com/goccy/go-json"
	limit = "github.com/KimMachineGun/automemlimit"
	prom  = "github.com/prometheus/client_golang"
	hguts = "golang.org/x/net/http/httpguts"
	pebb  = "github.com/cockroachdb/pebble/v2"
	hdr   = "github.com/HdrHistogram/hdrhistogram-go"
	flags = "github.com/alecthomas/kong"
	oapi  = "github.com/getkin/kin-openapi"
	jsch  = "github.com/santhosh-tekuri/jsonschema/v6"
	norm  = "golang.org/x/text/unicode/norm"
	gz    = "github.com/klauspost/compress/gzip"
	centr = "github.com/centrifugal/centrifuge"
	promm = "github.com/prometheus/client_model"
	curve = "github.com/arl/statsviz"
	gplot = "gonum.org/v1/plot"
	utest = "golang.org/x/perf/benchmath"
	pprof = "github.com/google/pprof/profile"
	etcd  = "go.etcd.io/raft/v3"
	proto = "google.golang.org/protobuf"
)

// table is the architecture, from the ground up.
func table() []row {
	return slices.Concat(ground(), door(), reads(), eyes(), measurement(), programs())
}

// ground is the part of the table below callers: trading rules, the one writer, the journal.
func ground() []row {
	pure := "a trading rule that needs it is not a rule: it would not replay"
	return []row{
		{pkg: "engine/pages"},
		{pkg: "engine", tests: []string{"engine/pages", "engine/view"}, no: map[string]string{
			"time": pure, "math/rand": pure, "crypto/rand": pure, "os": pure, "net": pure,
			"sync": pure, "context": pure, "encoding/json": pure, "log": pure, "runtime": pure,
			"maps": pure, "hash/maphash": pure, "syscall": pure, "unsafe": pure,
		}},
		{pkg: "engine/view", ours: []string{"engine"}, no: map[string]string{
			"clobd/engine/sequencer": "readers must not reach the writer",
		}},
		{pkg: "engine/sequencer/memory", ours: []string{"engine"}, no: map[string]string{
			"os": "a journal without a disk",
		}},
		{pkg: "engine/sequencer", ours: []string{"engine", "engine/view"}, no: map[string]string{
			pebb: "it knows that it journals, not how",
			fast: "it knows that it is called, not by whom",
		}, tests: []string{"engine/sequencer/memory"}},
		{pkg: "engine/sequencer/relay", ours: []string{"engine", "engine/sequencer"},
			tests: []string{"engine/sequencer/memory", "engine/view"}, no: map[string]string{
				"clobd/journal": "it carries Commands, whoever keeps them",
				"crypto/tls":    "it is handed connections whose ends are known",
			}},
		{pkg: "journal/disk", out: []string{pebb, prom}, no: map[string]string{
			"clobd": "files and room: what they are for is their owners' secret",
		}},
		{pkg: "journal", ours: []string{"engine", "journal/disk"}, out: []string{pebb, prom},
			no: map[string]string{
				fast:                     "bytes in order, no callers",
				"clobd/engine/sequencer": "bytes in order, no callers",
				"clobd/journal/history":  "the truth does not know who reads it",
			}},
		{pkg: "journal/history", ours: []string{"engine", "journal", "journal/disk"},
			out: []string{pebb, prom}, no: map[string]string{
				fast:                     "derived from the journal, and deletable",
				"clobd/engine/sequencer": "derived from the journal, and deletable",
			}},
		{pkg: "journal/raft", ours: []string{"engine", "journal"}, out: []string{etcd, proto},
			tests: []string{"engine/sequencer"}, no: map[string]string{
				"clobd/ingress": "it agrees on bytes, whoever sent them",
				"clobd/api":     "it agrees on bytes, whoever reads them",
			}},
	}
}

// door is the part that takes orders.
func door() []row {
	return []row{
		{pkg: "ingress/auth/lanes", out: []string{xcpu}, tests: []string{sha3}, no: map[string]string{
			"clobd": "it computes what a processor can, for whoever asks",
		}},
		{pkg: "ingress/auth/curve", ours: []string{"ingress/auth/lanes"}, out: []string{secp, decr}, no: map[string]string{
			"clobd": "numbers in, verdict out",
		}},
		{pkg: "ingress/auth", ours: []string{"engine", "ingress/auth/curve", "ingress/auth/lanes"}, out: []string{sha3},
			no: map[string]string{
				fast: "keys are checked here, not served",
				secp: "curve chooses the implementation",
				decr: "curve chooses the implementation",
			}},
		{pkg: "api/wire/scan", out: []string{gojs}, no: map[string]string{
			"clobd": "it reads JSON, whatever that says",
		}},
		{pkg: "api/wire", ours: []string{"engine"}, out: []string{fast, gojs}, no: map[string]string{
			"encoding/json": "the door's answers are written with go-json",
		}},
		{pkg: "api/wire/live", ours: []string{"api/wire"}, out: []string{fast, wsock},
			no: map[string]string{"clobd": "it carries texts, whatever they say"}},
		{pkg: "ingress/form", ours: []string{"engine", "ingress/auth", "api/wire/scan"},
			no: map[string]string{fast: "it reads bodies, however they come"}},
		{pkg: "ingress/conn", ours: []string{"api/wire"}, no: map[string]string{
			fast: "it lets connections in, whatever is said over them",
		}},
		{pkg: "ingress/limits", ours: []string{"engine", "ingress/conn"}, no: map[string]string{
			fast: "it counts callers, whatever they ask",
		}},
		{pkg: "ingress/answer", ours: []string{"engine", "engine/view", "api/wire"},
			out: []string{fast, prom},
			no:  map[string]string{"clobd/ingress": "it words what came of orders, whoever took them"}},
		{pkg: "ingress/socket", ours: []string{"api/wire", "api/wire/live", "api/wire/scan"},
			out: []string{fast, prom}, no: map[string]string{
				"clobd/engine": "it carries requests, whatever they ask for",
			}},
		{pkg: "ingress/operator",
			ours: []string{"engine", "engine/view", "engine/sequencer", "ingress/auth", "ingress/conn",
				"ingress/form", "ingress/limits", "api/wire", "api/wire/scan"},
			out: []string{gojs}, no: map[string]string{
				fast: "operators ask with net/http, on a listener of their own",
			}},
		{pkg: "ingress/cors", out: []string{fast}, no: map[string]string{
			"clobd/ingress/auth": "a page has no right that another client lacks",
		}},
		{pkg: "ingress/party", no: map[string]string{
			"clobd": "it shares seats, whoever sits there",
		}},
		{pkg: "ingress/head", ours: []string{"api/wire"}, out: []string{fast, hguts}, no: map[string]string{
			"clobd/engine": "it knows heads, whatever requests ask for",
		}},
		{pkg: "ingress",
			ours: []string{"engine", "engine/view", "engine/sequencer", "ingress/answer",
				"ingress/auth", "ingress/conn", "ingress/cors", "ingress/form", "ingress/head",
				"ingress/limits", "ingress/operator", "ingress/party", "ingress/socket", "api/wire",
				"api/wire/live", "api/wire/scan"},
			out:   []string{fast, route, prom},
			tests: []string{"scripts/openapi", "scripts/asyncapi", "engine/sequencer/memory", gojs, wsock},
			no: map[string]string{
				"clobd/journal": "the door writes commands only",
				"clobd/api":     "the door writes commands only",
				"encoding/json": "the door reads with go-json; its tests hold that against encoding/json",
			}},
	}
}

// reads is the part of the table that answers.
func reads() []row {
	return []row{
		{pkg: "api/catalog/search", out: []string{norm}, no: map[string]string{
			fast: "it finds numbers by words, whatever they stand for",
		}},
		{pkg: "api/catalog", ours: []string{"engine", "api/catalog/search", "api/wire/scan"},
			no: map[string]string{
				fast:                       "the catalog is a value, it serves nobody",
				"net/http":                 "where records come from is the source's",
				"clobd/api/catalog/source": "the store is handed records",
			}},
		{pkg: "api/catalog/source", ours: []string{"engine", "api/catalog", "api/wire/scan"},
			no: map[string]string{
				fast: "it asks with net/http, and serves nobody",
			}},
		{pkg: "api/account",
			ours: []string{"engine", "engine/view", "journal/history", "api/catalog", "api/wire"},
			out:  []string{fast}, no: answers(), tests: []string{"journal"}},
		{pkg: "api/wallets",
			ours: []string{"engine", "engine/view", "journal/history", "api/catalog", "api/wire"},
			out:  []string{fast}, no: answers()},
		{pkg: "api/pages", ours: []string{"api/wire"}, out: []string{fast, gz}, no: map[string]string{
			"clobd/engine": "it keeps bytes, whatever they say",
		}},
		{pkg: "api/console", ours: []string{"api/pages", "api/wire"}, out: []string{fast},
			no: map[string]string{"clobd/engine": "its pages use the interface of all clients"}},
		{pkg: "api/stream", ours: []string{"engine", "engine/view", "api/wire", "api/wire/live"},
			out: []string{gojs, prom}, tests: []string{wsock}},
		{pkg: "api/gamma",
			ours: []string{"engine", "engine/view", "journal/history", "api/catalog", "api/pages",
				"api/wire"},
			out: []string{fast}, no: answers()},
		{pkg: "api",
			ours: []string{"engine", "engine/view", "journal/history", "api/catalog", "api/wire",
				"api/account", "api/console", "api/pages", "api/wallets", "api/gamma"},
			out: []string{fast, route},
			tests: []string{"scripts/openapi", "scripts/asyncapi", "scripts/mirror", "journal", "api/stream",
				"api/wire/live", wsock},
			no: answers()},
	}
}

// answers is what no room of api may import.
func answers() map[string]string {
	return map[string]string{
		"clobd/engine/sequencer": "answers never change anything",
		"clobd/ingress":          "answers never change anything",
	}
}

// eyes is the part of the table that operators look at.
func eyes() []row {
	return []row{
		{pkg: "cmd/clobd/page", ours: []string{"ingress/answer", "ingress/conn"},
			out: []string{prom, promm, curve}, no: map[string]string{
				"clobd/engine":  "it shows figures, whatever they count",
				"clobd/journal": "it shows figures, whatever they count",
				fast:            "operators ask with net/http, on a listener of their own",
			}},
	}
}

// measurement is the part above the product that measures.
func measurement() []row {
	return []row{
		{pkg: "bench/trader", ours: []string{"engine", "ingress/auth"}, out: []string{fast},
			no: map[string]string{
				"clobd/bench": "the node links it, and not the laboratory",
			}},
		{pkg: "bench/process", no: map[string]string{
			"clobd": "it starts processes, whatever they do",
		}},
		{pkg: "bench/crowd", ours: []string{"api/wire/live", "bench/process"}, no: map[string]string{
			"clobd/engine": "it counts messages, whatever they say",
		}},
		{pkg: "bench/lean", ours: []string{"engine", "ingress/auth", "bench/process"},
			out: []string{hdr}, no: map[string]string{
				fast: "what it sends is prepared, and what it reads is scanned",
			}},
		{pkg: "bench/budget", out: []string{pprof, secp, sha3}, no: map[string]string{
			"clobd": "it reads names of functions, and the tests hold them to the sources",
		}},
		{pkg: "bench/workload", ours: []string{"engine", "journal"}, no: map[string]string{
			fast: "it says what is sent, and not how",
		}},
		{pkg: "bench",
			ours: []string{"engine", "engine/view", "engine/sequencer", "journal", "journal/history",
				"engine/sequencer/memory", "ingress/auth/curve", "ingress/auth", "ingress", "api/catalog", "api",
				"api/wire", "api/wire/live", "bench/trader", "bench/process", "bench/crowd",
				"bench/lean", "bench/budget", "bench/workload"},
			out: []string{fast, route, gojs, pebb, hdr, sha3}},
		{pkg: "bench/matching", ours: []string{"engine/pages", "engine", "bench/process", "bench"}},
		{pkg: "bench/fanout",
			ours: []string{"engine", "engine/view", "engine/sequencer", "ingress/auth", "ingress", "api",
				"api/wire", "api/wire/live", "api/stream", "bench/process", "bench/crowd", "bench",
				"bench/workload"},
			out: []string{fast, centr}},
		{pkg: "bench/diff", ours: []string{"bench"}, out: []string{utest}},
		{pkg: "bench/report", ours: []string{"bench"}, out: []string{gplot, hdr}},
	}
}

// programs is the part above the product: commands and scripts.
func programs() []row {
	return []row{
		{pkg: "cmd/cli", out: []string{flags}},
		{pkg: "cmd/clobd/papers", ours: []string{"journal/disk", "journal/raft"}, no: map[string]string{
			"clobd/engine": "it knows who a member is, whatever that does",
		}},
		{pkg: "cmd/clobd/copies", ours: []string{"journal/disk"}, no: map[string]string{
			"clobd/engine": "it carries files, whatever is in them",
		}},
		{pkg: "cmd/clobd/role",
			ours: []string{"engine", "engine/view", "engine/sequencer", "engine/sequencer/relay", "journal",
				"journal/disk", "journal/raft", "ingress", "ingress/limits", "cmd/clobd/copies",
				"cmd/clobd/papers", "cmd/cli"},
			out:   []string{prom},
			tests: []string{"engine/sequencer/memory"},
			no: map[string]string{
				"clobd/api": "answers do not depend on a role",
			}},
		{pkg: "cmd/clobd/membership", ours: []string{"journal", "journal/disk", "cmd/clobd/papers",
			"cmd/clobd/role", "cmd/cli"},
			tests: []string{"engine", "journal/raft"}},
		{pkg: "cmd/clobd/doctor", ours: []string{"engine", "ingress/auth", "journal/disk", "api/wire/live"},
			no: map[string]string{
				"clobd/ingress": "it looks at a machine, whatever a node does there",
			}},
		{pkg: "cmd/clobd/client", ours: []string{"ingress/auth", "cmd/cli"}, out: []string{wsock},
			no: map[string]string{
				"clobd/engine":  "it says what operators say, and the node knows what that means",
				"clobd/journal": "a folder at rest has no node to ask",
			}},
		{pkg: "cmd/clobd",
			ours: []string{"engine/pages", "engine", "engine/view", "engine/sequencer", "journal",
				"journal/disk", "journal/history", "ingress/auth", "ingress/limits", "ingress", "api/catalog",
				"api/catalog/source", "api/console", "api/wallets", "api/gamma", "api/stream", "api", "bench/trader",
				"cmd/cli",
				"cmd/clobd/client", "cmd/clobd/role", "cmd/clobd/papers",
				"cmd/clobd/membership", "cmd/clobd/doctor",
				"cmd/clobd/page", "ingress/conn", "ingress/cors"},
			out:   []string{prom, limit},
			tests: []string{"scripts/openapi", "scripts/asyncapi", "scripts/mirror", fast, wsock}},
		{pkg: "cmd/clobench", ours: []string{"engine", "bench/crowd", "bench/lean", "bench",
			"bench/workload", "bench/matching", "bench/fanout", "bench/diff", "bench/report", "cmd/cli"},
			tests: []string{"bench/budget"}},
		{pkg: "cmd/clobsim/simulator",
			ours: []string{"engine", "engine/view", "engine/sequencer", "journal", "journal/history",
				"journal/raft"},
			out: []string{pebb, etcd, proto},
			no: map[string]string{
				"clobd/ingress": "what it runs has no sockets",
			}},
		{pkg: "cmd/clobsim/cases", ours: []string{"engine"}, no: map[string]string{
			"clobd/engine/view": "it judges the engine by what any observer can fold from Events",
		}},
		{pkg: "cmd/clobsim/vectors", ours: []string{"engine", "ingress/auth/curve", "ingress/auth"},
			out: []string{sha3}},
		{pkg: "cmd/clobsim", ours: []string{"cmd/clobsim/simulator", "cmd/clobsim/cases",
			"cmd/clobsim/vectors", "cmd/cli"}},
		{pkg: "scripts/openapi", out: []string{oapi}},
		{pkg: "scripts/asyncapi", ours: []string{"scripts/openapi"}, out: []string{jsch}},
		{pkg: "scripts/openapi/witness", ours: []string{"scripts/openapi", "scripts/asyncapi"},
			tests: []string{wsock}},
		{pkg: "scripts/door", // signs and trades, as a client
			tests: []string{"ingress/auth", "bench/trader", "engine", fast}},
		{pkg: "scripts/ops", // trades, as a client
			tests: []string{"ingress/auth", "bench/trader", "engine", fast, wsock}},
		{pkg: "scripts/turns", ours: []string{"bench/trader", "engine"}, out: []string{fast}},
		{pkg: "scripts/*"},
	}
}

// testModules may be imported by tests on top of the package's own row.
func testModules() []string {
	return []string{
		"pgregory.net/rapid", "go.uber.org/goleak", "github.com/cockroachdb/datadriven",
		"github.com/anishathalye/porcupine",
		pebb + "/vfs", // a journal in memory, for whoever reads one
	}
}

// rowOf is the row of a package.
func rowOf(pkg string) (row, bool) {
	for _, r := range table() {
		if covers(r.pkg, pkg) {
			return r, true
		}
	}
	return row{}, false
}

// covers reports whether a row's name stands for the package.
func covers(name, pkg string) bool {
	if below, ok := strings.CutSuffix(name, "/*"); ok {
		return strings.HasPrefix(pkg, below+"/")
	}
	return name == pkg
}

// checkImports holds the package to its row. Tests may also use the test libraries, and forbidden
// parts of the standard library: they read files and clocks, and replay is not asked of them.
func (t *Tree) checkImports(p *Package) {
	if t.apart(p.Path) {
		return // what a module of its own needs is in its go.mod, and nothing here can import it
	}
	r, ok := rowOf(p.Path)
	if !ok {
		t.report(p.Files[0].Path, 0, "package %s has no row in the import table: "+
			"a new package needs a place in the architecture first", p.Path)
		return
	}
	for _, f := range p.Files {
		for _, spec := range f.Syntax.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			if why := t.refuse(&r, name, f.test()); why != "" {
				t.report(f.Path, t.at(spec.Pos()), "%s imports %s: %s", p.Path, name, why)
			}
		}
	}
}

// checkPermissions finds permissions of the table that no package uses. A permission in ours and
// out must be used outside of tests: what only tests import belongs to tests.
func (t *Tree) checkPermissions(rows []row) {
	type user struct {
		row  string
		test bool
	}
	used := map[user][]string{}
	for _, p := range t.Packages {
		if i := slices.IndexFunc(rows, func(r row) bool { return covers(r.pkg, p.Path) }); i >= 0 {
			for _, test := range []bool{false, true} {
				by := user{rows[i].pkg, test}
				used[by] = append(used[by], p.imports(test)...)
			}
		}
	}
	for _, r := range rows {
		unused := func(permission string, test bool) bool {
			return !slices.ContainsFunc(used[user{r.pkg, test}], func(name string) bool {
				pkg, ours := strings.CutPrefix(name, t.Module+"/")
				return ours && covers(permission, pkg) || !ours && within(name, permission)
			})
		}
		for _, permission := range slices.Concat(r.ours, r.out) {
			if unused(permission, false) {
				t.report(tableFile, 0, "%s may import %s and does not: strike the permission off its row",
					r.pkg, permission)
			}
		}
		for _, permission := range r.tests {
			if unused(permission, true) {
				t.report(tableFile, 0, "tests of %s may import %s and do not: strike the permission off "+
					"its row", r.pkg, permission)
			}
		}
	}
}

// settings is the package that says how much a test does: all tests may ask.
const settings = "scripts/setting"

// tableFile is where the table stands.
const tableFile = "scripts/tidy/imports.go"

// refuse is the reason why a package with this row may not import name, or "".
func (t *Tree) refuse(r *row, name string, test bool) string {
	first, _, _ := strings.Cut(name, "/")
	std := !strings.Contains(first, ".") && first != t.Module
	ours := strings.TrimPrefix(name, t.Module+"/")
	if test && ours == settings {
		return ""
	}
	for prefix, why := range r.no {
		if within(name, prefix) && !(std && test) && !slices.Contains(r.ours, ours) {
			return why
		}
	}
	switch {
	case std:
		return ""
	case first == t.Module:
		above := r.ours
		if test {
			above = slices.Concat(above, r.tests)
		}
		listed := slices.ContainsFunc(above, func(o string) bool { return covers(o, ours) })
		if listed || covers(r.pkg, ours) {
			return ""
		}
		return "not in its row of the import table: arrows point towards engine"
	}
	allowed := r.out
	if test {
		allowed = slices.Concat(allowed, r.tests, testModules())
	}
	if slices.ContainsFunc(allowed, func(o string) bool { return within(name, o) }) {
		return ""
	}
	return "not among the outside modules of its row of the import table"
}

// within reports whether an import path is prefix or lies below it.
func within(name, prefix string) bool {
	return name == prefix || strings.HasPrefix(name, prefix+"/")
}
