package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// signs are words of the text of each licence, spaced by single blanks, in lower case.
var signs = []struct {
	name string // by SPDX
	all  []string
	none []string
}{
	{"Apache-2.0", []string{"apache license", "version 2.0, january 2004"}, nil},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy",
		"the above copyright notice and this permission notice shall be included"}, nil},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "neither the name"}, nil},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms",
		"in binary form must reproduce"}, []string{"neither the name"}},
	{"ISC", []string{"permission to use, copy, modify, and distribute this software for any purpose"}, nil},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any"}, nil},
	{"FTL", []string{"the freetype project license", "2006-jan-27"}, nil},
	{"OFL-1.1", []string{"sil open font license version 1.1"}, nil},
	{"CC-BY-4.0", []string{"creative commons attribution 4.0 international public license"}, nil},
	{"MPL-2.0", []string{"mozilla public license version 2.0"}, nil},
	{"LGPL-2.1", []string{"gnu lesser general public license version 2.1, february 1999"}, nil},
	{"LGPL-3.0", []string{"gnu lesser general public license version 3, 29 june 2007"}, nil},
	{"GPL-2.0", []string{"gnu general public license version 2, june 1991"}, nil},
	{"GPL-3.0", []string{"gnu general public license version 3, 29 june 2007"}, nil},
	{"AGPL-3.0", []string{"gnu affero general public license version 3, 19 november 2007"}, nil},
}

// fitting are the licences whose code may go into a program under Apache-2.0 as it is: they ask
// that they be told of, which the notice does.
var fitting = []string{"Apache-2.0", "MIT", "BSD-3-Clause", "BSD-2-Clause", "ISC", "FTL", "OFL-1.1",
	"CC-BY-4.0"}

// exception is what its signs and fitting do not decide.
type exception struct {
	folder string   // of a module, with its path and without its version
	only   string   // the package that may use it; empty: any
	files  []string // the licence's, instead of what is found
	names  []string // what they are
	why    string
}

var exceptions = []exception{
	{folder: "github.com/golang/freetype", files: []string{"LICENSE", "licenses/ftl.txt"},
		names: []string{"FTL"}, why: "it may be had under the FreeType licence or the GPL: the first is taken"},
	{folder: "github.com/ethereum/go-ethereum", only: "github.com/ethereum/go-ethereum/common/math",
		files: []string{"COPYING.LESSER", "COPYING"}, names: []string{"LGPL-3.0"},
		why: "the package around libsecp256k1 imports it, unchanged: who wants another one of it replaces " +
			"the module in go.mod and runs make release, as section 4 of the licence asks for"},
}

// linked is a package outside the standard library and this module.
type linked struct {
	ImportPath string
	Dir        string
	Standard   bool
	Module     *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// licence is what some packages of a module are under.
type licence struct {
	module, version string
	names           []string
	why             string // of an exception
	packages        []string
	texts           []string
}

// listed asks Go for the packages that programs link.
func listed(programs []string) (all []linked, err error) {
	c := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"},
		programs...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p linked
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		if !p.Standard && p.Module != nil && !p.Module.Main {
			all = append(all, p)
		}
	}
}

// licences finds the licence of each package, and joins packages under the same texts.
func licences(all []linked) (found []*licence, err error) {
	known := map[string]*licence{}
	var problems []error
	for i := range all {
		p := &all[i]
		l, err := licenceOf(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		key := l.module + "\x00" + strings.Join(l.texts, "\x00")
		if known[key] == nil {
			known[key] = l
			found = append(found, l)
		}
		known[key].packages = append(known[key].packages, p.ImportPath)
	}
	slices.SortStableFunc(found, func(a, b *licence) int {
		return strings.Compare(a.module, b.module)
	})
	return found, errors.Join(problems...)
}

func licenceOf(p *linked) (*licence, error) {
	l := &licence{module: p.Module.Path, version: p.Module.Version}
	files, err := nearest(p)
	if err != nil {
		return nil, err
	}
	var allowed []string
	for _, e := range exceptions {
		if e.folder == p.Module.Path && filepath.Dir(files[0]) == p.Module.Dir &&
			(e.only == "" || e.only == p.ImportPath) {
			files, allowed, l.why = nil, e.names, e.why
			for _, name := range e.files {
				files = append(files, filepath.Join(p.Module.Dir, filepath.FromSlash(name)))
			}
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		l.texts = append(l.texts, string(text))
		names := classify(string(text))
		switch base := strings.ToUpper(filepath.Base(file)); {
		case allowed != nil, strings.HasPrefix(base, "NOTICE"), strings.HasPrefix(base, "PATENTS"):
			continue
		case len(names) == 0:
			return nil, fmt.Errorf("%s: nobody knows the licence in %s", p.ImportPath, file)
		}
		for _, name := range names {
			if !slices.Contains(fitting, name) {
				return nil, fmt.Errorf("%s is under %s, which does not fit Apache-2.0: %s", p.ImportPath,
					name, file)
			}
			if !slices.Contains(l.names, name) {
				l.names = append(l.names, name)
			}
		}
	}
	l.names = append(l.names, allowed...)
	return l, nil
}

// classify names the licences of a text.
func classify(text string) (names []string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	has := func(sign string) bool { return strings.Contains(text, sign) }
	for _, s := range signs {
		if !slices.ContainsFunc(s.all, func(sign string) bool { return !has(sign) }) &&
			!slices.ContainsFunc(s.none, has) && !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// nearest are the files of the licence of a package: those of the nearest folder that has any, from
// its own up to that of the module, and of the folders below it that are no packages of their own,
// where C is.
func nearest(p *linked) (files []string, err error) {
	for dir := p.Dir; ; dir = filepath.Dir(dir) {
		if files, err = licenceFiles(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		if len(files) > 0 {
			break
		}
		if dir == p.Module.Dir || dir == filepath.Dir(dir) {
			return nil, fmt.Errorf("%s: %s has no licence", p.ImportPath, p.Module.Path)
		}
	}
	err = filepath.WalkDir(p.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == p.Dir {
			return err
		}
		if code, _ := filepath.Glob(filepath.Join(path, "*.[ch]")); len(code) == 0 {
			if code, _ = filepath.Glob(filepath.Join(path, "*", "*.[ch]")); len(code) == 0 {
				return fs.SkipDir
			}
		}
		more, err := licenceFiles(path)
		files = append(files, more...)
		return err
	})
	return files, err
}

// licenceFiles are the files of a folder that are named as licences are, the licence first.
func licenceFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	is := false
	for _, kind := range []string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE", "PATENTS"} {
		for _, e := range entries {
			name := strings.ToUpper(e.Name())
			if ext := filepath.Ext(name); e.IsDir() || strings.HasPrefix(name, "LICENSE-LINK") ||
				!strings.HasPrefix(name, kind) || ext == ".GO" {
				continue
			}
			files = append(files, filepath.Join(dir, e.Name()))
			is = is || kind != "NOTICE" && kind != "PATENTS"
		}
	}
	if !is {
		return nil, nil
	}
	return files, nil
}

// notice is the text that goes into the package.
func notice(programs []string) ([]byte, error) {
	all, err := listed(programs)
	if err != nil {
		return nil, err
	}
	found, err := licences(all)
	if err != nil {
		return nil, err
	}
	own, err := systemLicences()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("clobd is under the Apache License, Version 2.0: see the file LICENSE.\n\n" +
		"Its programs have the following code of others in them, each under its own licence. The texts\n" +
		"follow the list.\n\n")
	found = append(own, found...)
	for i, l := range found {
		fmt.Fprintf(&b, "[%d] %s %s: %s\n", i+1, l.module, l.version, strings.Join(l.names, ", "))
		if l.why != "" {
			fmt.Fprintf(&b, "    %s\n", l.why)
		}
	}
	written := map[string]int{}
	for i, l := range found {
		fmt.Fprintf(&b, "\n%s\n[%d] %s %s\n", strings.Repeat("=", 80), i+1, l.module, l.version)
		for _, text := range l.texts {
			if first, is := written[text]; is {
				fmt.Fprintf(&b, "\nThe text is that of [%d].\n", first)
				continue
			}
			written[text] = i + 1
			fmt.Fprintf(&b, "\n%s\n", strings.TrimRight(text, "\n"))
		}
	}
	return b.Bytes(), nil
}

// systemLicences are those of what is linked and is no module: Go's library, and C's.
func systemLicences() (all []*licence, err error) {
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	words := strings.Fields(string(root))
	text, err := os.ReadFile(filepath.Join(words[0], "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("the licence of Go: %w", err)
	}
	all = append(all, &licence{module: "the Go standard library", version: words[1],
		names: []string{"BSD-3-Clause"}, texts: []string{string(text)}})
	for _, name := range []string{"libc6-dev", "libc6"} {
		if text, err = os.ReadFile("/usr/share/doc/" + name + "/copyright"); err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the licence of the C library, which programs are linked with: %w", err)
	}
	return append(all, &licence{module: "the GNU C Library", names: []string{"LGPL-2.1"},
		why:   "unchanged: who wants another one installs that and runs make release",
		texts: []string{string(text)}}), nil
}
