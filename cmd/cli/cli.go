package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit codes of every program of this project.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// HintError is a failure together with what to do about it.
type HintError struct {
	Err  error
	Hint string
}

// Error is the failure without its hint.
func (e *HintError) Error() string { return e.Err.Error() }

// Unwrap returns the failure itself.
func (e *HintError) Unwrap() error { return e.Err }

// UsageError is a command line that cannot be carried out: the program ends with Usage.
type UsageError struct{ Err error }

// Error says what is wrong with it.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Hint adds what to do to a failure; nil stays nil.
func Hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &HintError{err, fmt.Sprintf(format, args...)}
}

// Run parses args into the program's commands and runs the one that was asked for. Every flag can
// also be given in the environment as PREFIX_FLAG. It returns the exit code.
func Run(name, about string, commands any, args []string) int {
	code := -1 // set by kong when it has printed help or completed by itself
	parser, err := kong.New(commands, kong.Name(name), kong.Description(about),
		kong.DefaultEnvars(strings.ToUpper(name)),
		kong.Exit(func(c int) { code = c }))
	if err != nil {
		panic("BUG: commands of " + name + ": " + err.Error())
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	if code >= 0 {
		return code
	}
	if err != nil {
		Print(os.Stderr, Hint(err, "%s --help lists the commands and flags", name))
		return Usage
	}
	if err := ctx.Run(); err != nil {
		Print(os.Stderr, err)
		var usage *UsageError
		if errors.As(err, &usage) {
			return Usage
		}
		return Failed
	}
	return Done
}

// Print writes a failure as an `error:` line and, if it carries one, a `hint:` line.
func Print(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %v\n", err)
	var hint *HintError
	if errors.As(err, &hint) {
		fmt.Fprintf(w, "hint: %s\n", hint.Hint)
	}
}
