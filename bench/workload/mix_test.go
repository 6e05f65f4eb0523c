package workload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clobd/engine"
)

// TestMixes runs the mixes of this repository against the engine.
func TestMixes(t *testing.T) {
	files, err := filepath.Glob("../mixes/*.mix")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		w, err := ReadMix(file)
		if err != nil {
			t.Fatal(err)
		}
		if w.Name != "evening" || w.Books != 40 || w.Zipf != 80 || w.Taken != [2]int{5, 400} {
			t.Errorf("%+v", w)
		}
		if exp := drawn(t, w, 20_000, func(*Op, []engine.Event) {}); exp.Fills < 500 {
			t.Errorf("%s: %v", file, exp)
		}
	}
}

func TestMixOfAllNames(t *testing.T) {
	const text = "like quiet # a comment\n\n tick 0.001\nzipf 0\nfar no\nalike yes\nsize 7 8\n" +
		"taken 9 10\nslip 1 2\norders 3 4\nread 1\nnew 60\ncancel 20\ncross 10\nquote 10\nbooks 2\n" +
		"depth 11\ndrift 12\nfak 13\nlatest 14\nmakers 15\nrungs 6\n"
	w, err := parseMix(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	w.Name, w.Line = "", ""
	want := Workload{Read: 1, New: 60, Cancel: 20, Cross: 10, Quote: 10, Books: 2, Tick: 10,
		Orders: [2]int{3, 4}, Depth: 11, Drift: 12, Size: [2]int{7, 8}, Taken: [2]int{9, 10},
		Slip: [2]int{1, 2}, FAK: 13, Latest: 14, Alike: true, Makers: 15, Rungs: 6}
	if w != want {
		t.Errorf("%+v, want %+v", w, want)
	}
}

func TestBadMixes(t *testing.T) {
	for text, says := range map[string]string{
		"new 50\nnovel 3":                `line 2: nothing is called "novel"`,
		"new 50\n\nnew 40":               "line 3: new stands in line 1 already",
		"books 2\nlike quiet":            "line 2: like must be the first line",
		"like nothing":                   `line 1: no workload is called "nothing"`,
		"new 60":                         "add up to 110, want 100",
		"size 10":                        "line 1: size wants 2 whole numbers, least first, and has 1",
		"size 10 5":                      "size: the least, 10, is above the most, 5",
		"size 1 5":                       "outside [5, 10000] shares",
		"books x":                        "line 1: books x: want a whole number",
		"books -1":                       "want a whole number",
		"books 0":                        "0 books are outside",
		"tick 0.003":                     "line 1: tick 0.003: want 0.1, 0.01,",
		"tick":                           "line 1: tick wants one decimal",
		"far maybe":                      "line 1: far wants yes or no",
		"alike yes":                      "even number of books",
		"quote 10\nnew 40":               "quotes want makers",
		"like market-maker\nrungs 8":     "rungs in [1, 7]",
		"like market-maker\nmakers 64":   "leave nobody else",
		"new 0\ncancel 90":               "nothing would ever rest",
		"read 100":                       "outside [0, 99]",
		"zipf 11":                        "zipf is above 10",
		"orders 1 70000":                 "a market takes at most 65536",
		"new 50 # fine\nslip 3 2\nfak 1": "slip: the least is above the most",
	} {
		_, err := parseMix(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	if _, err := ReadMix("/nonexistent"); err == nil {
		t.Error("read a file that is not there")
	}
	file := filepath.Join(t.TempDir(), "bad.mix")
	if err := os.WriteFile(file, []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadMix(file); err == nil || !strings.Contains(err.Error(), file+": line 1: ") {
		t.Errorf("%v does not name the file and the line", err)
	}
}
