package ingress

import (
	"fmt"
	"strings"
	"testing"
)

// TestPackedBodies: the body of a request in any coding is refused in the words of its route, and
// nothing of it is read as a request. A body as it is passes, however the header says so.
func TestPackedBodies(t *testing.T) {
	h := newHouse(t, nil)
	send := func(path, header string) string {
		return h.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n[]", path, header))
	}
	const length = "Content-Length: 2\r\n"
	for _, header := range []string{
		length + "Content-Encoding: gzip", "content-encoding: GZIP\r\nContent-Length: 2",
		length + "Content-Encoding: br", length + "Content-Encoding: gzip, identity",
		length + "Content-Encoding: identity\r\nContent-Encoding: deflate",
	} {
		for path, want := range map[string]string{
			"/order": `{"error":"the body of a request must not be compressed",` +
				`"code":"unsupported_encoding",`,
			"/positions?a": `{"error":"unsupported_encoding: the body`,
			"/events":      `{"type":"bad request","error":"the body of a request must not be`,
		} {
			if got := send(path, header); !strings.HasPrefix(got, "415\n"+want) {
				t.Errorf("%s, %q: %s", path, header, got)
			}
		}
	}
	for _, header := range []string{length + "Content-Encoding: identity",
		length + "Content-Encoding:", length + "Accept-Encoding: gzip"} {
		if got := send("/order", header); strings.HasPrefix(got, "415") {
			t.Errorf("%q: %s", header, got)
		}
	}
	const bare = "GET /ok HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n\r\n"
	if got := h.send(bare); !strings.HasPrefix(got, "200") {
		t.Errorf("a request without a body: %s", got)
	}
}
