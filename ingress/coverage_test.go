package ingress

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"clobd/engine"
	"clobd/ingress/head"
)

// coverage is what the contract cases have asked and been answered.
type coverage struct {
	routes map[string]bool // METHOD PATTERN of the route table
	words  map[string]bool // texts of refusals, and DIALECT STATUS
	codes  map[string]bool // of refusals
}

func newCoverage() *coverage {
	return &coverage{make(map[string]bool), make(map[string]bool), make(map[string]bool)}
}

var (
	errorMember = regexp.MustCompile(`"(error|errorMsg)":"((?:[^"\\]|\\.)*)"`)
	codeMember  = regexp.MustCompile(`"code":"(\w+)"|"hint":"refused: (\w+)"`)
)

// note takes in one request and its answer.
func (c *coverage) note(s *Server, raw string, r *fasthttp.Response) {
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	method, rest, _ := strings.Cut(lines[0], " ")
	path, _, _ := strings.Cut(rest, " ")
	path, _, _ = strings.Cut(path, "?")
	for _, pattern := range s.routes.List()[method] {
		prefix, open := strings.CutSuffix(pattern, "{rest:*}")
		if path == pattern || open && strings.HasPrefix(path, prefix) {
			c.routes[method+" "+pattern] = true
		}
	}
	c.words[dialectOf(lines[1:])+strconv.Itoa(r.StatusCode())] = true
	c.answer(string(r.Body()))
}

// answer takes in the body of an answer.
func (c *coverage) answer(body string) {
	for _, m := range errorMember.FindAllStringSubmatch(body, -1) {
		c.words[m[2]] = true
	}
	for _, m := range codeMember.FindAllStringSubmatch(body, -1) {
		c.codes[m[1]+m[2]] = true
	}
}

// missing is what no case has met: routes of the table, dialects, and the refusals that the source
// of this package words.
func (c *coverage) missing(t *testing.T, s *Server) (missing []string) {
	t.Helper()
	for method, patterns := range s.routes.List() {
		for _, pattern := range patterns {
			if !c.routes[method+" "+pattern] {
				missing = append(missing, "route "+method+" "+pattern)
			}
		}
	}
	for _, family := range head.Families {
		for _, status := range []string{"200", "400", "401"} {
			if !c.words[string(family)+status] {
				missing = append(missing, "dialect "+string(family)+" with status "+status)
			}
		}
	}
	for word := range wordedRefusals(t) {
		if !c.words[word] && unreachable[word] == "" {
			missing = append(missing, "refusal "+word)
		}
	}
	for reject, rule := range engine.Rejects {
		if rule.HTTP != fasthttp.StatusOK && !c.codes[rule.Code] && unreachable[rule.Code] == "" {
			missing = append(missing, "reject "+strconv.Itoa(reject)+" "+rule.Code)
		}
	}
	slices.Sort(missing)
	return missing
}

// unreachable are the refusals that no contract case can meet, and why.
var unreachable = map[string]string{
	"request timed out":                                     "the listener in memory has no deadlines; TestSlowBody",
	"too many connections from this address":                "they are never read; TestTurnstile",
	"too many connections, nothing was entered, send again": "they are never read; TestTurnstile",
	"too many request bodies from this address":             "TestBodiesTakeRoomAsTheyCome",
	"too many request bodies on their way":                  "TestBodiesTakeRoomAsTheyCome",
	"too many sockets":                                      "they need a real connection; TestSocketRefusals",
	"too many sockets from this address":                    "they need a real connection; TestSocketRefusals",
	"the node stops, connect again":                         "TestSocketRefusals",
	"too many requests in work on this socket":              "TestEntryInWork",
	"this page may not open a socket":                       "TestSocketRefusals",
	"too many large answers to this address":                "TestLargeAnswersAreBounded",
	"too many large answers on their way":                   "TestLargeAnswersAreBounded",
	"listing_conflict":                                      "the door lists no markets",
	"key_deleted":                                           "the door gives no key the number of another one",
	"payout":                                                "the door checks payouts before they enter",
}

// wordedRefusals returns the texts of all refusals that the source of this package and of the
// packages below makes from string literals.
func wordedRefusals(t *testing.T) map[string]bool {
	t.Helper()
	words := make(map[string]bool)
	var files []string
	for _, pattern := range []string{"*.go", "conn/*.go", "operator/*.go", "socket/*.go", "answer/*.go"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, some...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if at := textAt(call.Fun); at > 0 && len(call.Args) > at {
					if text, ok := literal(call.Args[at]); ok {
						words[text] = true
					}
				}
			}
			return true
		})
	}
	return words
}

// textAt is which argument of a call is the text of a refusal, 0 if it makes none.
func textAt(called ast.Expr) int {
	switch f := called.(type) {
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "wire" && f.Sel.Name == "Refuse" {
			return 2
		}
	case *ast.Ident:
		if f.Name == "refuse" {
			return 1
		}
	}
	return 0
}

// literal is the value of a string that is written out, in one part or several.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		x, okX := literal(e.X)
		y, okY := literal(e.Y)
		return x + y, okX && okY
	}
	return "", false
}

// TestCoverageCanFail: a case less is noticed.
func TestCoverageCanFail(t *testing.T) {
	h := newHouse(t, nil)
	c := newCoverage()
	before := c.missing(t, h.server)
	var r fasthttp.Response
	r.SetStatusCode(400)
	r.SetBodyString(`{"error":"Invalid orderID","code":"bad_order_id"}`)
	c.note(h.server, "DELETE /order HTTP/1.1\r\nPOLY_ADDRESS: x\r\n\r\n", &r)
	after := c.missing(t, h.server)
	met := []string{"dialect POLY_ with status 400", "refusal Invalid orderID", "route DELETE /order"}
	for _, m := range met {
		if !slices.Contains(before, m) || slices.Contains(after, m) {
			t.Errorf("%s: missing before %v, after %v", m, slices.Contains(before, m),
				slices.Contains(after, m))
		}
	}
	if len(before) != len(after)+len(met) || len(slices.Collect(maps.Keys(wordedRefusals(t)))) < 40 {
		t.Errorf("%d are missing before, %d after", len(before), len(after))
	}
}
