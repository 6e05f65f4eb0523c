package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const usage = `release sbom PROGRAM > FILE        what is linked, as CycloneDX
release notice PACKAGE... > FILE   the licences of what is linked`

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	var text []byte
	var err error
	switch os.Args[1] {
	case "sbom":
		text, err = sbomOf(os.Args[2])
	case "notice":
		text, err = notice(os.Args[2:])
	default:
		err = fmt.Errorf("no command %s:\n%s", os.Args[1], usage)
	}
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: %s: %v\n", filepath.Base(os.Args[1]), err)
		os.Exit(1)
	}
}
