package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// Completion is the command that prints a shell's completion of its own program.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the script.
func (c *Completion) Run(program *kong.Context) error {
	_, err := os.Stdout.WriteString(script(program.Model, c.Shell))
	return err
}

// word is something that may be typed next: a command, a value, or a flag.
type word struct {
	text, help string
	takes      bool     // a flag that takes a value
	values     []string // that it may be, if those are few; else the shell offers files
}

// crossing is a path of commands, and what may follow it.
type crossing struct {
	path  string // commands with blanks between them, empty for the program itself
	words []word // commands, or the values of an argument
	flags []word
	inner bool // the words are commands
}

func script(program *kong.Application, shell string) string {
	var all []crossing
	gather(program.Node, "", &all)
	switch shell {
	case "fish":
		return fish(program.Name, all)
	case "zsh":
		// zsh has a body for scripts that were written for bash.
		return "#compdef " + program.Name + "\nautoload -U +X bashcompinit && bashcompinit\n" +
			bash(program.Name, all)
	}
	return bash(program.Name, all)
}

// gather lists a command and those below it, but for hidden ones.
func gather(n *kong.Node, path string, all *[]crossing) {
	p := crossing{path: path, inner: len(n.Children) > 0}
	for at := n; at != nil; at = at.Parent {
		for _, f := range at.Flags {
			if f.Hidden {
				continue
			}
			w := word{text: "--" + f.Name, help: f.Help, takes: !f.IsBool()}
			if f.Enum != "" {
				w.values = f.EnumSlice()
			}
			p.flags = append(p.flags, w)
		}
	}
	for _, a := range n.Positional {
		if a.Enum != "" {
			for _, value := range a.EnumSlice() {
				p.words = append(p.words, word{text: value})
			}
		}
	}
	at := len(*all)
	*all = append(*all, p)
	for _, child := range n.Children {
		if !child.Hidden {
			(*all)[at].words = append((*all)[at].words, word{text: child.Name, help: child.Help})
			gather(child, strings.TrimSpace(path+" "+child.Name), all)
		}
	}
}

// bash finds the command that is being typed, and offers what may follow it. A flag that takes a
// value swallows the next word.
func bash(name string, all []crossing) string {
	var b strings.Builder
	fmt.Fprintf(&b, "_%[1]s() {\n\tlocal at= word i words= flags= swallow=\n"+
		"\tlocal this=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n\tCOMPREPLY=()\n"+
		"\tfor ((i = 1; i < COMP_CWORD; i++)); do\n\t\tword=${COMP_WORDS[i]}\n"+
		"\t\tif [[ $swallow ]]; then swallow=; continue; fi\n\t\tcase \"$at:$word\" in\n", name)
	for _, p := range all {
		for _, f := range p.flags {
			if f.takes {
				fmt.Fprintf(&b, "\t\t%q) swallow=1 ;;\n", p.path+":"+f.text)
			}
		}
		for _, w := range p.words {
			if p.inner {
				fmt.Fprintf(&b, "\t\t%q) at=%q ;;\n", p.path+":"+w.text,
					strings.TrimSpace(p.path+" "+w.text))
			}
		}
	}
	b.WriteString("\t\tesac\n\tdone\n\tif [[ $swallow ]]; then\n\t\tcase \"$at:$before\" in\n")
	for _, p := range all {
		for _, f := range p.flags {
			if f.values != nil {
				fmt.Fprintf(&b, "\t\t%q) words=%q ;;\n", p.path+":"+f.text, strings.Join(f.values, " "))
			}
		}
	}
	b.WriteString("\t\t*) COMPREPLY=($(compgen -f -- \"$this\")); return ;;\n\t\tesac\n" +
		"\telse\n\t\tcase \"$at\" in\n")
	for _, p := range all {
		fmt.Fprintf(&b, "\t\t%q) words=%q flags=%q ;;\n", p.path, texts(p.words), texts(p.flags))
	}
	fmt.Fprintf(&b, "\t\tesac\n\tfi\n\t[[ $this == -* ]] && words=$flags\n"+
		"\tCOMPREPLY=($(compgen -W \"$words\" -- \"$this\"))\n}\ncomplete -F _%[1]s %[1]s\n", name)
	return b.String()
}

func texts(words []word) string {
	var all []string
	for _, w := range words {
		all = append(all, w.text)
	}
	return strings.Join(all, " ")
}

// fish says for each word after which commands it may come.
func fish(name string, all []crossing) string {
	var b strings.Builder
	for _, p := range all {
		when := "__fish_use_subcommand"
		if p.path != "" {
			seen := strings.Split(p.path, " ")
			when = "__fish_seen_subcommand_from " + strings.Join(seen, "; and __fish_seen_subcommand_from ")
		}
		for _, w := range p.words {
			unless := ""
			if p.path != "" {
				unless = "; and not __fish_seen_subcommand_from " + texts(p.words)
			}
			fmt.Fprintf(&b, "complete -c %s -f -n %s -a %s -d %s\n", name, fishQuote(when+unless), w.text,
				fishQuote(first(w.help)))
		}
		for _, f := range p.flags {
			takes := ""
			switch {
			case f.values != nil:
				takes = " -x -a " + fishQuote(strings.Join(f.values, " "))
			case f.takes:
				takes = " -r"
			}
			fmt.Fprintf(&b, "complete -c %s -n %s -l %s%s -d %s\n", name, fishQuote(when),
				strings.TrimPrefix(f.text, "--"), takes, fishQuote(first(f.help)))
		}
	}
	return b.String()
}

// first is the first sentence of a help.
func first(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.TrimSuffix(sentence, ".")
}

func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
