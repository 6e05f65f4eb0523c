package api

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clobd/scripts/openapi"
)

// elsewhere are the refusals that scripts cannot show, and the tests that show them.
var elsewhere = map[string]string{
	"errTooLong":     "TestBooksBound",
	"errAddress":     "TestContract/strangers",
	"errDeep":        "TestDeepOffsets",
	"errMinSequence": "TestCurrentWords",
	"errConsistency": "TestCurrentWords",
	"errBehind":      "TestMinSequence",
	"errWaiting":     "TestMinSequence",
	"errUnconfirmed": "TestLinearizable",
}

// TestRefusalsHaveCases: each refusal that the rooms and api/wire declare is in the answer of a
// script, with its text and its detail.
func TestRefusalsHaveCases(t *testing.T) {
	var shown strings.Builder
	for _, path := range contracts(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(b)
	}
	refusals := declared(t)
	if len(refusals) < 45 {
		t.Fatalf("only %d refusals were found", len(refusals))
	}
	for name, texts := range refusals {
		if _, other := elsewhere[name]; other {
			continue
		}
		for _, text := range texts {
			quoted := strconv.Quote(text)
			if !strings.Contains(shown.String(), quoted[1:len(quoted)-1]) {
				t.Errorf("no script shows %s: %s", name, text)
			}
		}
	}
}

// declared are the constant text and detail of each refusal that a package variable holds.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, room := range []string{".", "account", "wallets", "gamma", "wire"} {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			p, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(p, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				for i := 0; ok && i < len(spec.Values) && i < len(spec.Names); i++ {
					call, made := spec.Values[i].(*ast.CallExpr)
					if made && strings.HasSuffix(name(call.Fun), "Refuse") && len(call.Args) == 4 {
						for _, arg := range call.Args[2:] {
							if text := constant(arg); text != "" {
								of := spec.Names[i].Name
								all[of] = append(all[of], text)
							}
						}
					}
				}
				return true
			})
		}
	}
	return all
}

// name is the name of a function, without its package.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// constant is a text that is written in one piece or added up of several.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return constant(e.X) + constant(e.Y)
	}
	return ""
}

// TestRoutesHaveCases: each route of the tables has a request in a script that succeeds, and each
// account route has one in every dialect.
func TestRoutesHaveCases(t *testing.T) {
	h := newNode(t).handler
	var asked []string // method, path and dialect of each request of the scripts
	for _, path := range contracts(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(b), "\n") {
			line, caller, _ := strings.Cut(line, " as ")
			method, rest, _ := strings.Cut(line, " ")
			target, _, _ := strings.Cut(rest, " body ")
			target, _, _ = strings.Cut(target, "?")
			_, dialect, _ := strings.Cut(caller, " ")
			target = references.ReplaceAllString(target, "1")
			for _, prefix := range []string{"/clob/", "/gamma/", "/data-api/"} {
				if below, is := strings.CutPrefix(target, prefix); is {
					target = "/" + below
				}
			}
			asked = append(asked, fmt.Sprint(method, " ", target, " ", dialect))
		}
	}
	has := func(route, dialect string) bool {
		return slices.ContainsFunc(asked, func(a string) bool {
			method, rest, _ := strings.Cut(a, " ")
			target, by, _ := strings.Cut(rest, " ")
			return by == dialect && matches(route, method, target)
		})
	}
	var public []string
	for _, table := range h.tables() {
		for _, r := range table.routes {
			public = append(public, openapi.Route("GET", r.Path))
		}
	}
	for _, r := range h.posts() {
		public = append(public, openapi.Route("POST", r.Path))
	}
	for _, route := range public {
		if !strings.HasSuffix(route, "api.json") && !has(route, "") {
			t.Errorf("no script asks %s", route)
		}
	}
	for _, route := range h.account.Private() {
		method, path, _ := strings.Cut(route, " ")
		for _, dialect := range []string{"SVC_", "POLY_", "KUEST_"} {
			if !has(openapi.Route(method, path), dialect) {
				t.Errorf("no script asks %s in the dialect %s", route, dialect)
			}
		}
	}
}

// matches reports whether a request goes to a route whose parameters are written {}.
func matches(route, method, target string) bool {
	want, path, _ := strings.Cut(route, " ")
	a, b := strings.Split(path, "/"), strings.Split(target, "/")
	return want == method && slices.EqualFunc(a, b, func(x, y string) bool {
		return x == y || x == "{}" && y != ""
	})
}
