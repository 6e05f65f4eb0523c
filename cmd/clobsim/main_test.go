package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/cmd/cli"
)

// run calls the program in process and returns its code and what it printed on standard output.
func run(t *testing.T, args ...string) (int, string) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	saved := os.Stdout
	os.Stdout = write
	printed := make(chan string)
	go func() {
		b, _ := io.ReadAll(read)
		printed <- string(b)
	}()
	code := cli.Run("clobsim", "", &commands{}, args)
	os.Stdout = saved
	write.Close()
	return code, <-printed
}

func TestVectors(t *testing.T) {
	const good = "../../ingress/auth/testdata/signed.json"
	code, out := run(t, "vectors", good)
	if code != cli.Done || !strings.Contains(out, " agree, 0 disagree") {
		t.Fatalf("code %d:\n%s", code, out)
	}
	b, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte(`"orderHash": "0x`))
	if at < 0 {
		t.Fatal("the vectors hold no order hash")
	}
	at += len(`"orderHash": "0x`)
	if b[at]++; b[at] > 'f' || b[at] == '9'+1 {
		b[at] = '1'
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, b, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out = run(t, "vectors", good, bad)
	if code != cli.Failed || !strings.Contains(out, ", 1 disagree") ||
		!strings.Contains(out, "bad.json") {
		t.Errorf("a wrong order hash: code %d:\n%s", code, out)
	}
	if err := os.WriteFile(bad, []byte(`{"orders":[{"foo":1}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _ = run(t, "vectors", bad); code != cli.Failed {
		t.Errorf("a file without vectors: code %d", code)
	}
	if code, _ = run(t, "vectors", "nowhere.json"); code != cli.Usage {
		t.Errorf("a missing file: code %d", code)
	}
}
