package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// desk is a node's admin listener, and the token that its operator's routes want.
type desk struct{ addr, token string }

// goVersion finds the runtime's version among the metrics.
var goVersion = regexp.MustCompile(`(?m)^go_info\{version="([^"]+)"\}`)

// exchange sends one request and reads its answer, for at most a minute.
func exchange(r *http.Request) (status int, body []byte, err error) {
	return exchangeBy(&http.Client{Timeout: time.Minute}, r)
}

// exchangeBy is exchange over the connections of a client.
func exchangeBy(client *http.Client, r *http.Request) (status int, body []byte, err error) {
	answer, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(io.LimitReader(answer.Body, 1<<22))
	return answer.StatusCode, body, err
}

func get(ctx context.Context, url string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	return exchange(r)
}

// postBy sends an operator's request to the node, over the connections of a client.
func (d desk) postBy(ctx context.Context, client *http.Client, path string,
	request map[string]string) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+d.addr+path,
		bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make %s: %w", path, err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	status, text, err := exchangeBy(client, r)
	if err != nil {
		return fmt.Errorf("post %s: %w", path, err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("post %s: status %d: %s", path, status, text)
	}
	return nil
}

// conditions asks the node how it runs. A node that is not ready is an error. Values that a ready
// node does not report are unknown.
func (d desk) conditions(ctx context.Context) (*Node, error) {
	status, body, err := get(ctx, "http://"+d.addr+"/readyz")
	if err != nil {
		return nil, fmt.Errorf("ask the node for its conditions: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the node is not ready: /readyz of %s answers %d: %s", d.addr, status,
			bytes.TrimSpace(body))
	}
	var told struct{ Durability, Version string }
	if err := json.Unmarshal(body, &told); err != nil {
		return nil, fmt.Errorf("%s is not a node's admin listener: read /readyz: %w", d.addr, err)
	}
	n := &Node{Admin: d.addr, Durability: cmp.Or(told.Durability, unknown),
		Program: Program{Version: cmp.Or(told.Version, unknown), Go: unknown, Cgo: unknown}}
	text, err := d.metrics(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		n.set(nil) // a node may have no metrics: nothing more is known of it then
		return n, nil
	}
	if found := goVersion.FindStringSubmatch(text); found != nil {
		n.Go = found[1]
	}
	settings := map[string]float64{}
	for name, exported := range map[string]string{metricProcs: "go_sched_gomaxprocs_threads",
		metricGC: "go_gc_gogc_percent", metricLimit: "go_gc_gomemlimit_bytes"} {
		if v, ok := reading(text, exported); ok {
			settings[name] = v
		}
	}
	n.set(settings)
	return n, nil
}

func (d desk) metrics(ctx context.Context) (string, error) {
	status, body, err := get(ctx, "http://"+d.addr+"/metrics")
	if err != nil {
		return "", fmt.Errorf("read metrics: %w", err)
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("read metrics: status %d", status)
	}
	return string(body), nil
}

// reading is the value of a metric without labels.
func reading(text, name string) (float64, bool) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return v, err == nil
		}
	}
	return 0, false
}

// cpu is the user plus system time of the node's process so far, as its metrics tell it.
func (d desk) cpu(ctx context.Context) (time.Duration, error) {
	text, err := d.metrics(ctx)
	if err != nil {
		return 0, err
	}
	const name = "process_cpu_seconds_total"
	seconds, ok := reading(text, name)
	if !ok {
		return 0, fmt.Errorf("the node's metrics have no %s", name)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
