package ingress

import "testing"

// TestTruncatedChunks: a body that ends before its last chunk is not what its client meant, even if
// it ends between two chunks and is JSON.
func TestTruncatedChunks(t *testing.T) {
	const head = "POST /books HTTP/1.1\r\nHost: node\r\nTransfer-Encoding: chunked\r\n\r\n"
	l := newReader(t)
	for text, whole := range map[string]bool{
		head + "2\r\n[]\r\n0\r\n\r\n": true, head + "0\r\n\r\n": true,
		head + "0\r\nA: b\r\n\r\n": true,
		head:                       false, head + "2\r\n[]\r\n": false, head + "2\r\n[]\r\n0": false,
		head + "2\r\n[]": false, head + "2\r\n[": false, head + "2": false, head + "2\r\n[]\r\n0\r\n": false,
	} {
		answers := l.read(t, []byte(text))
		if got := len(l.served) == 1; got != whole {
			t.Errorf("%q: served: %v: %q", text, got, answers)
		}
	}
}
