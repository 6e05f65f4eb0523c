package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy … " +
		"The above copyright notice and this permission notice shall be included in all copies"
	bsd = "Redistribution and use in source and binary\n forms … Redistributions in binary form must " +
		"reproduce the above copyright notice"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{mit, []string{"MIT"}},
		{bsd, []string{"BSD-2-Clause"}},
		{bsd + " … Neither the name of", []string{"BSD-3-Clause"}},
		{mit + "\n\n" + bsd, []string{"MIT", "BSD-2-Clause"}},
		{"  Apache License\n  Version 2.0, January 2004", []string{"Apache-2.0"}},
		{"GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007", []string{"GPL-3.0"}},
		{"GNU AFFERO GENERAL PUBLIC LICENSE Version 3, 19 November 2007", []string{"AGPL-3.0"}},
		{"All rights reserved.", nil},
	} {
		if got := classify(c.text); !slices.Equal(got, c.want) {
			t.Errorf("%.60q: %q, want %q", c.text, got, c.want)
		}
	}
}

// module makes a module of some files, and returns a package in its folder sub.
func module(t *testing.T, path, sub string, files map[string]string) *linked {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &linked{ImportPath: strings.TrimSuffix(path+"/"+sub, "/"), Dir: filepath.Join(dir, sub)}
	if err := os.MkdirAll(p.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.Module = &struct {
		Path, Version, Dir string
		Main               bool
	}{path, "v1.0.0", dir, false}
	return p
}

// TestLicenceOf: the nearest licence counts, C below a package has its own, and what does not fit
// or is not known is an error.
func TestLicenceOf(t *testing.T) {
	const gpl = "GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007"
	lesser := map[string]string{"COPYING": gpl,
		"COPYING.LESSER": "GNU LESSER GENERAL PUBLIC LICENSE Version 3, 29 June 2007"}
	for _, c := range []struct {
		name, path, sub string
		files           map[string]string
		want            string // names, or a part of the error
	}{
		{"its own", "example.com/a", "x/y", map[string]string{"LICENSE": mit}, "MIT"},
		{"the nearest", "example.com/a", "x/y",
			map[string]string{"LICENSE": gpl, "x/LICENSE.txt": bsd}, "BSD-2-Clause"},
		{"C below", "example.com/a", "x",
			map[string]string{"LICENSE": mit, "x/c/COPYING": bsd, "x/c/src/a.c": ""}, "MIT BSD-2-Clause"},
		{"C that does not fit", "example.com/a", "x",
			map[string]string{"LICENSE": mit, "x/c/COPYING": gpl, "x/c/a.h": ""}, "does not fit"},
		{"no C below", "example.com/a", "x",
			map[string]string{"LICENSE": mit, "x/y/COPYING": gpl, "x/y/a.go": ""}, "MIT"},
		{"does not fit", "example.com/a", "", map[string]string{"COPYING": gpl}, "GPL-3.0, which does not fit"},
		{"two, of which one does not fit", "example.com/a", "",
			map[string]string{"LICENSE": mit + gpl}, "GPL-3.0, which does not fit"},
		{"not known", "example.com/a", "", map[string]string{"LICENSE": "You may."}, "nobody knows"},
		{"none", "example.com/a", "x", map[string]string{"a.go": "", "NOTICE": "a"}, "has no licence"},
		{"a notice beside", "example.com/a", "", map[string]string{"LICENSE": mit, "NOTICE": "By A."}, "MIT"},
		{"an exception", "github.com/ethereum/go-ethereum", "common/math", lesser, "LGPL-3.0"},
		{"of that package only", "github.com/ethereum/go-ethereum", "common/hexutil", lesser, "does not fit"},
	} {
		l, err := licenceOf(module(t, c.path, c.sub, c.files))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.Join(l.names, " ")
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if c.files["NOTICE"] != "" && err == nil && !slices.Contains(l.texts, c.files["NOTICE"]) {
			t.Errorf("%s: the notice is not kept", c.name)
		}
	}
}
