package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadWrk: figures are read from the line of the script; a turn with refusals, with errors or
// without figures has none.
func TestReadWrk(t *testing.T) {
	said, err := readWrk([]byte("Running 1s test\n  4 requests\nfigures 3000 1500000 0 0 480.0 612.5\n"))
	if err != nil || said != (Said{2000, 480, 612.5}) {
		t.Errorf("%v %v", said, err)
	}
	for _, out := range []string{"", "Running\n", "x\nfigures 1 2\n", "x\nfigures 9 9 1 0 1 1\n",
		"x\nfigures 9 9 0 1 1 1\n"} {
		if said, err := readWrk([]byte(out)); err == nil {
			t.Errorf("%q: %v", out, said)
		}
	}
}

// TestAgree: tools agree if all three medians are within a tenth.
func TestAgree(t *testing.T) {
	wrk := []Said{{1000, 100, 200}, {900, 110, 210}, {1100, 90, 190}}
	for _, c := range []struct {
		own   Said
		agree bool
	}{{Said{1000, 100, 200}, true}, {Said{1090, 91, 219}, true}, {Said{1120, 100, 200}, false},
		{Said{1000, 89, 200}, false}, {Said{1000, 100, 221}, false}} {
		p := AgreedPart{What: "GET /book", Clobench: []Said{c.own}, Wrk: wrk}
		p.judge()
		a := Agreed{Parts: []AgreedPart{p}}
		if p.Agree != c.agree || (a.Verdict() == nil) != c.agree {
			t.Errorf("%v: %+v", c.own, p)
		}
	}
}

// TestWriteRequests: each request is in the file behind its length, whole.
func TestWriteRequests(t *testing.T) {
	v := newVolley("127.0.0.1:1", 1)
	v.add(0, aim{nil, "POST", "/order", 1}, []byte("{\n}"))
	v.add(0, aim{nil, "GET", "/book?token_id=1", 0}, nil)
	file := filepath.Join(t.TempDir(), "requests")
	if err := writeRequests(file, v); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const first = "POST /order HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Type: application/json\r\n" +
		"Content-Length: 3\r\n\r\n{\n}"
	const second = "GET /book?token_id=1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"
	if got := string(b); got != "97\n"+first+"52\n"+second {
		t.Errorf("%d %d %q", len(first), len(second), got)
	}
}
