package main

import (
	"regexp"
	"slices"
	"testing"
	"testing/fstest"
)

// TestOneSize: a test is named if nothing that it can reach asks for its size, whichever way leads
// there, and it has no namesake that asks.
func TestOneSize(t *testing.T) {
	const head = "package p\n\nimport (\n\t\"testing\"\n\t\"clobd/scripts/setting\"\n)\n\n"
	names, err := oneSize(fstest.MapFS{
		"p/a_test.go": {Data: []byte(head + `
func TestPlain(t *testing.T)    { help(); setting.Seed(t, 1); setting.Number(t, "X", 1) }
func TestDirect(t *testing.T)   { if testing.Short() { t.Skip() } }
func TestFull(t *testing.T)     { setting.Full(t, "slow") }
func TestUnknown(t *testing.T)  { setting.Other(t) }
func TestHelper(t *testing.T)   { far(t) }
func TestMethod(t *testing.T)   { var x *T; x.near(t) }
func TestVariable(t *testing.T) { table[0](t) }
func TestFlag(t *testing.T)     { lookup("test.short") }
func TestTwice(t *testing.T)    {}
func Testlower(t *testing.T)    {}
func TestMain(m *testing.M)     {}
`)},
		"p/b_test.go": {Data: []byte(head + `
import ("clobd/q"; "clobd/r"; "pgregory.net/rapid"; "github.com/valyala/fasthttp")
func TestOthers(t *testing.T)   { q.Run(t) }
func TestHidden(t *testing.T)   { r := new(T); r.near(t) }
func TestSilent(t *testing.T)   { r.Run(t) }
func TestRapid(t *testing.T)    { rapid.Check(t) }
func help()                { fasthttp.Get() }
func far(t *testing.T)     { farther(t) }
func farther(t *testing.T) { setting.Size(t, 2, 1) }
func (x *T) near(t *testing.T) { func() { _ = testing.Short() }() }
var table = []func(*testing.T){farther}
`)},
		"q/q.go":       {Data: []byte("package q\nimport \"clobd/s\"\n")},
		"s/s.go":       {Data: []byte("package s\nimport \"testing\"\nvar x = testing.Short()\n")},
		"r/r.go":       {Data: []byte("package r\n")},
		"r/r_test.go":  {Data: []byte(head + "func TestTwice(t *testing.T) { testing.Short() }\n")},
		"u/u_test.go":  {Data: []byte("package u\nfunc TestU(t *testing.T) {}\nfunc init() { f() }\n")},
		"u/v_test.go":  {Data: []byte("package u\nimport . \"testing\"\nfunc f() { Short() }\n")},
		"w/w_test.go":  {Data: []byte("package w\nimport \"x.org/rap/v2\"\nfunc TestW(t *T) { rap.Run() }\n")},
		"w/x_test.go":  {Data: []byte("package w\nfunc TestX(t *T) {}\n")},
		"y/y_test.go":  {Data: []byte("package y\nfunc TestY(t *T) {}\n")},
		"y/x_test.go":  {Data: []byte(head + "func TestMain(m *testing.M) { testing.Short() }\n")},
		"z/z_test.go":  {Data: []byte("package z\nfunc TestZ(t *T) {}\n")},
		"z/z.go":       {Data: []byte("package z\nimport \"x.org/y\"\nfunc init() { y.Go() }\n")},
		"none/none.go": {Data: []byte("package none\n")},
	}, []string{"./p", "r", "u/", "w", "y", "./z", "none"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"TestPlain", "TestSilent", "TestX", "TestZ"}
	if !slices.Equal(names, want) {
		t.Errorf("named are\n%v, not\n%v", names, want)
	}
	skip := regexp.MustCompile(expression(names))
	if skip.MatchString("TestPlainly") || skip.MatchString("ATestX") || !skip.MatchString("TestX") ||
		regexp.MustCompile(expression(nil)).MatchString("TestX") {
		t.Errorf("%v leaves out what it should not", skip)
	}
}
