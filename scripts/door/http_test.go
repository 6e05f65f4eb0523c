package door

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// rawCase is what one connection sends, and the statuses that come back.
type rawCase struct {
	Name    string `json:"name"`
	Send    string `json:"send"`
	Served  []int  `json:"served"`  // statuses of requests that are served
	Refused int    `json:"refused"` // status of a request that ends the connection
	Ends    bool   `json:"ends"`    // the last request that is served ends the connection
}

// behind follows the bytes of every case. It must be answered only if all before it was served.
const behind = "GET /version HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n"

// readCases returns the cases of testdata/http.jsonl.
func readCases(t *testing.T) (cases []rawCase) {
	t.Helper()
	f, err := os.Open("testdata/http.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c rawCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if (c.Refused == 0) == (c.Served == nil) {
			t.Fatalf("%s: a case is served or refused", c.Name)
		}
		cases = append(cases, c)
	}
	return cases
}

// want lists the statuses that the connection of a case carries.
func (c *rawCase) want() []int {
	if c.Refused != 0 {
		return []int{c.Refused}
	}
	if c.Ends || !strings.Contains(c.Send, "HTTP/1.1") {
		return c.Served // older versions end the connection after each answer
	}
	return append(slices.Clone(c.Served), 200)
}

var statusLine = regexp.MustCompile(`HTTP/1\.1 (\d{3}) `)

// TestRawHTTP sends heads and bodies that readers of HTTP understand in different ways. The node
// refuses each with one answer and hangs up.
func TestRawHTTP(t *testing.T) {
	cases := readCases(t)
	if len(cases) < 142 {
		t.Fatalf("%d cases, want 142 at least", len(cases))
	}
	var group sync.WaitGroup
	busy := make(chan struct{}, 16)
	for i := range cases {
		c := &cases[i]
		busy <- struct{}{}
		group.Go(func() {
			defer func() { <-busy }()
			got, err := exchange(c.Send + behind)
			if err != nil {
				t.Errorf("%s: %v after %v", c.Name, err, got)
			} else if !slices.Equal(got, c.want()) {
				t.Errorf("%s: statuses %v, want %v", c.Name, got, c.want())
			}
		})
	}
	group.Wait()
}

// exchange sends bytes over a connection of their own and returns the statuses of all answers. The
// node must hang up, and long before it does so with a connection that is idle.
func exchange(send string) (statuses []int, err error) {
	c, err := net.DialTimeout("tcp", *address, answerTime)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(40 * time.Second)); err != nil {
		return nil, err
	}
	// The node may hang up while bytes are still on their way.
	_, _ = io.WriteString(c, send)
	answer, err := io.ReadAll(c)
	for _, m := range statusLine.FindAllSubmatch(answer, -1) {
		status, _ := strconv.Atoi(string(m[1]))
		statuses = append(statuses, status)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return statuses, errors.New("the connection was left open")
	}
	return statuses, nil
}
