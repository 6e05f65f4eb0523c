package catalog

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"testing"

	"clobd/scripts/setting"
)

// repeated gives a text again and again, until so many bytes are read.
type repeated struct {
	text string
	left int
}

func (r *repeated) Read(b []byte) (n int, err error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	for n < len(b) && r.left > 0 {
		m := copy(b[n:], r.text)
		n, r.left = n+m, r.left-m
	}
	return n, nil
}

// bomb is a repeated text between two others, packed.
func bomb(t *testing.T, before string, text repeated, after string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.Copy(z, io.MultiReader(strings.NewReader(before), &text, strings.NewReader(after)))
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGzipBombs: a packed source that unpacks to a thousand times its size is read with bounded
// memory, and what stands behind the bomb is read or refused by name. CLOBD_SIZE is the bombs' MiB.
func TestGzipBombs(t *testing.T) {
	setting.Full(t, "answers of many megabytes")
	size := max(setting.Size(t, 32, 32), 32) << 20
	good, last := event("1", market(1, "")), event("3", market(3, ""))
	many := func(text string) repeated { return repeated{text, size} }
	const most = 300 << 20 // allocated while a bomb is read: a record is copied as it grows
	for name, b := range map[string][]byte{
		"one record":      bomb(t, good+"\n"+`{"id":"2","title":"`, many("x"), `"}`+"\n"+last),
		"one key":         bomb(t, good+"\n"+`{"`, many("k"), `":1}`+"\n"+last),
		"nested":          bomb(t, good+"\n"+`{"id":`, many("["), "\n"+last),
		"blank lines":     bomb(t, good+"\n", many("\n"), last),
		"blanks":          bomb(t, "["+good+",", many("  \n "), last+"]"),
		"string in array": bomb(t, "["+good+`,{"id":"`, many("y"), `"},`+last+"]"),
		"packed twice":    bomb(t, string(bomb(t, good+"\n", many(" "), "")), repeated{}, ""),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, r, err := Read(bytes.NewReader(b), Options{})
		runtime.ReadMemStats(&after)
		taken := after.TotalAlloc - before.TotalAlloc
		t.Logf("figures: bombs=1 packed=%d", len(b))
		if taken > most {
			t.Errorf("%s: %d MiB allocated for %d bytes", name, taken>>20, len(b))
		}
		if name == "packed twice" {
			if err == nil {
				t.Errorf("%s: taken: %s", name, r)
			}
			continue
		}
		if err != nil || c.Events.Len() != 2 {
			t.Errorf("%s: %s, %v", name, r, err)
		}
		if blank := strings.HasPrefix(name, "blank"); blank != (r.Broken == 0) {
			t.Errorf("%s: %d broken records", name, r.Broken)
		}
	}
}
