package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type shop struct {
	Verbose bool `help:"Say more."`
	Serve   struct {
		Data       string `help:"Don't forget. It's a folder."`
		Durability string `default:"fsync" enum:"fsync,async"`
		Demo       bool
	} `cmd:"" help:"Run it."`
	Secret struct {
		Rotate struct{} `cmd:"" help:"Make another."`
		Retire struct {
			Now bool
		} `cmd:""`
	} `cmd:""`
	Mode struct {
		Mode string `arg:"" enum:"normal,closed"`
	} `cmd:""`
	Peer       struct{}   `cmd:"" hidden:""`
	Completion Completion `cmd:""`
}

// scriptOf is the completion of the shop.
func scriptOf(t *testing.T, shell string) string {
	t.Helper()
	k, err := kong.New(&shop{}, kong.Name("shop"))
	if err != nil {
		t.Fatal(err)
	}
	return script(k.Model, shell)
}

// offered asks a shell what it offers at the end of a line. The shells get the script's text by the
// environment.
func offered(t *testing.T, text string, line ...string) []string {
	t.Helper()
	c := exec.Command("bash", append([]string{"--norc", "-c", `eval "$SCRIPT"
		COMP_WORDS=(shop "$@") COMP_CWORD=$#
		_shop; printf '%s\n' "${COMPREPLY[@]}"`, "shop"}, line...)...)
	c.Env, c.Dir = append(os.Environ(), "SCRIPT="+text), t.TempDir()
	if err := os.WriteFile(filepath.Join(c.Dir, "afile"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.Fields(string(out))
}

// TestBashCompletes: bash offers commands, flags, and what a flag or an argument may be. A value
// that is spelled as a command is none.
func TestBashCompletes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
	text := scriptOf(t, "bash")
	for _, c := range []struct{ line, want string }{
		{"s", "serve secret"},
		{"", "serve secret mode completion"},
		{"serve --d", "--data --durability --demo"},
		{"serve --dur", "--durability"},
		{"serve --v", "--verbose"},
		{"serve --durability ", "fsync async"},
		{"serve --durability a", "async"},
		{"serve --data a", "afile"},
		{"--verbose secret r", "rotate retire"},
		{"secret retire --n", "--now"},
		{"serve --data secret --du", "--durability"},
		{"mode c", "closed"},
		{"completion ", "bash zsh fish"},
		{"p", ""},
	} {
		got := offered(t, text, strings.Split(c.line, " ")...)
		if !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q: %q, want %s", c.line, got, c.want)
		}
	}
}

// TestOtherShells: the scripts of zsh and fish offer the same words, and the two shells, where they
// are, can read them.
func TestOtherShells(t *testing.T) {
	zsh, fish := scriptOf(t, "zsh"), scriptOf(t, "fish")
	if !strings.HasPrefix(zsh, "#compdef shop\n") || !strings.Contains(zsh, scriptOf(t, "bash")) {
		t.Error(zsh)
	}
	for _, line := range []string{
		`complete -c shop -f -n '__fish_use_subcommand' -a serve -d 'Run it'`,
		`complete -c shop -n '__fish_seen_subcommand_from serve' -l durability -x -a 'fsync async' -d ''`,
		`complete -c shop -n '__fish_seen_subcommand_from serve' -l data -r -d 'Don\'t forget'`,
		`complete -c shop -n '__fish_seen_subcommand_from serve' -l demo -d ''`,
		`complete -c shop -f -n '__fish_seen_subcommand_from secret; and not ` +
			`__fish_seen_subcommand_from rotate retire' -a rotate -d 'Make another'`,
		`complete -c shop -n '__fish_seen_subcommand_from secret; and __fish_seen_subcommand_from ` +
			`retire' -l now -d ''`,
	} {
		if !slices.Contains(strings.Split(fish, "\n"), line) {
			t.Errorf("no line\n%s\nin\n%s", line, fish)
		}
	}
	if strings.Contains(fish, "peer") {
		t.Error("fish offers what is hidden")
	}
	for shell, text := range map[string]string{"zsh": zsh, "fish": fish} {
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		c := exec.Command(shell, "-n")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}
