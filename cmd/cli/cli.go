package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// The exit codes of every program of this project.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
	// Broken is for a node that cannot keep its promise. Starting it again unseen may make it
	// worse.
	Broken = 70
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

// BrokenError is a node that cannot keep its promise: the program ends with Broken.
type BrokenError struct{ Err error }

// Error says what failed.
func (e *BrokenError) Error() string { return e.Err.Error() }

// Unwrap returns what failed.
func (e *BrokenError) Unwrap() error { return e.Err }

// Hint adds what to do to a failure; nil stays nil.
func Hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &HintError{err, fmt.Sprintf(format, args...)}
}

// Run parses args, runs the command they name and returns the exit code. SIGINT and SIGTERM end the
// context of the command. PREFIX_FLAG in the environment sets a flag; in a program with a command
// serve only a flag of serve.
func Run(name, about string, commands any, args []string) int {
	code := -1 // set by kong when it has printed help or completed by itself
	parser, err := kong.New(commands, kong.Name(name), kong.Description(about),
		kong.DefaultEnvars(strings.ToUpper(name)), kong.PostBuild(onlySettings),
		kong.BindToProvider(interruptible), kong.Exit(func(c int) { code = c }))
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
		if errors.Is(err, context.Canceled) { // by a signal: what else is wrong is its consequence
			err = errors.New("interrupted")
		}
		fault := codeOf(err)
		var hint *HintError
		if fault == Usage && !errors.As(err, &hint) {
			err = Hint(err, "%s --help lists the flags", ctx.Selected().FullPath())
		}
		Print(os.Stderr, err)
		return fault
	}
	return Done
}

func interruptible() (context.Context, error) {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	return ctx, nil
}

// onlySettings lets the environment set only the flags of serve. The other flags are acts: an
// environment must not agree to a loss.
func onlySettings(k *kong.Kong) error {
	settings := map[string]bool{}
	for _, command := range k.Model.Children {
		if command.Name == "serve" {
			for _, flag := range command.Flags {
				settings[flag.Name] = true
			}
		}
	}
	if len(settings) == 0 {
		return nil
	}
	for _, command := range k.Model.Leaves(false) {
		for _, flag := range command.Flags {
			if !settings[flag.Name] {
				flag.Envs, flag.Value.Tag.Envs = nil, nil
			}
		}
	}
	return nil
}

func codeOf(err error) int {
	var usage *UsageError
	var broken *BrokenError
	switch {
	case errors.As(err, &broken):
		return Broken
	case errors.As(err, &usage):
		return Usage
	}
	return Failed
}

// Print writes an `error:` line and, if there is one, a `hint:` line. Joined failures are printed
// one by one, each with its own hint; a hint for all of them comes last.
func Print(w io.Writer, err error) {
	switch e := err.(type) {
	case *UsageError, *BrokenError:
		Print(w, errors.Unwrap(err))
		return
	case *HintError:
		Print(w, e.Err)
		fmt.Fprintf(w, "hint: %s\n", e.Hint)
		return
	}
	if list := joined(err); list != nil {
		for _, one := range list {
			Print(w, one)
		}
		return
	}
	fmt.Fprintf(w, "error: %v\n", err)
	var hint *HintError
	if errors.As(err, &hint) {
		fmt.Fprintf(w, "hint: %s\n", hint.Hint)
	}
}

// joined returns the parts of an error of errors.Join, nil for any other error. An error that wraps
// several has its own words between them.
func joined(err error) []error {
	list, is := err.(interface{ Unwrap() []error })
	if !is {
		return nil
	}
	var texts []string
	for _, one := range list.Unwrap() {
		texts = append(texts, one.Error())
	}
	if strings.Join(texts, "\n") != err.Error() {
		return nil
	}
	return list.Unwrap()
}
