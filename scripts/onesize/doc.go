// Command onesize says which tests do the same in a short run as in one of full size: what
// "scripts/test.sh rest" leaves out, because "make test" has just passed them.
//
//	FOLDER... ─► text: names, and what stands behind each ─► those that reach testing.Short
//	                                                                     │ none of them
//	        go test -skip '^(TestA|TestB)$' ◄─ one regular expression ◄──┘
//
// # Contract
//
// A test is named only if nothing that its text can reach asks for the size of a run: the test, the
// functions, methods and variables of its package whose names stand there, what stands in those,
// and so on. A method counts under its bare name, whatever type has it. A package that asks on
// behalf of its callers counts as if the caller asked, and so does any module of others that is not
// known to be silent. Names are not told apart by package: a test whose namesake elsewhere asks is
// not named. Where the text does not tell, the test counts as one that asks. Then it runs twice,
// which is slow; it never runs not at all.
//
// Reading order: main.go, text.go.
package main
