package main

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

func main() {
	names, err := oneSize(os.DirFS("."), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "onesize:", err)
		os.Exit(1)
	}
	fmt.Println(expression(names))
}

// expression matches these names and no other one; without names it matches nothing.
func expression(names []string) string {
	if len(names) == 0 {
		return "^$"
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// oneSize returns the names of the tests in these folders that ask for no size, in order.
func oneSize(root fs.FS, folders []string) (names []string, err error) {
	same, asks := map[string]bool{}, map[string]bool{}
	for _, folder := range folders {
		t, err := read(root, folder)
		if err != nil {
			return nil, err
		}
		for name := range t.said {
			if !isTest(name) {
				continue
			}
			if t.asks(name) {
				asks[name] = true
			} else {
				same[name] = true
			}
		}
	}
	for name := range same {
		if !asks[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isTest reports whether go test runs a function of that name, if its parameters are a test's.
func isTest(name string) bool {
	rest, is := strings.CutPrefix(name, "Test")
	return is && name != "TestMain" && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
}
