package ops

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// required is set by scripts/ops.sh: then a missing tool is a failure, and TestLive runs.
const required = "CLOBD_OPS"

// tool finds a program of Debian's packages.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv(required) != "":
		t.Fatal(err)
	}
	t.Skipf("SKIPPED: no %s here: scripts/ops.sh gets it", name)
	return ""
}

// watcher is a Prometheus that runs.
type watcher struct{ url string }

// watch starts a Prometheus as prometheus.yml says, but for where the nodes and the node_exporter
// are.
func watch(t *testing.T, machine string, nodes ...*observed) *watcher {
	t.Helper()
	folder := t.TempDir()
	targets := make([]string, len(nodes))
	for i, n := range nodes {
		targets[i] = `"` + n.admin + `"`
	}
	config := string(read(t, "prometheus.yml"))
	for old, now := range map[string]string{`"127.0.0.1:8081"`: strings.Join(targets, ", "),
		`"127.0.0.1:9100"`: `"` + machine + `"`} {
		if strings.Count(config, old) != 1 {
			t.Fatalf("prometheus.yml does not name %s once", old)
		}
		config = strings.Replace(config, old, now, 1)
	}
	for name, text := range map[string]string{"prometheus.yml": config,
		"clobd.rules.yml": string(read(t, "clobd.rules.yml"))} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := freePort(t)
	run(t, tool(t, "prometheus"), []string{"--config.file=" + folder + "/prometheus.yml",
		"--storage.tsdb.path=" + folder + "/series", "--web.listen-address=" + address,
		"--log.level=warn"})
	w := &watcher{"http://" + address}
	within(t, startTime, "Prometheus is ready", func() bool {
		return ask(t, w.url+"/-/ready").status == http.StatusOK
	})
	return w
}

// api asks the HTTP API and reads the data of the answer into v.
func (w *watcher) api(t *testing.T, path string, v any) {
	t.Helper()
	a := ask(t, w.url+"/api/v1/"+path)
	whole := struct{ Data any }{v}
	if a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, a.status, a.body)
	} else if err := json.Unmarshal([]byte(a.body), &whole); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// series is one element of what a query returned.
type series struct {
	Metric map[string]string
	Value  [2]any // the time, and the value as text
}

// query returns what an expression has now. What is not a number is no data.
func (w *watcher) query(t *testing.T, expr string) (all []series) {
	t.Helper()
	var data struct{ Result []series }
	w.api(t, "query?query="+url.QueryEscape(expr), &data)
	for _, s := range data.Result {
		if s.Value[1] != "NaN" {
			all = append(all, s)
		}
	}
	return all
}

// firing reports whether an alert of a node fires now.
func (w *watcher) firing(t *testing.T, name string, n *observed) bool {
	t.Helper()
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	w.api(t, "alerts", &data)
	for _, a := range data.Alerts {
		if a.State == "firing" && a.Labels["alertname"] == name && a.Labels["instance"] == n.admin {
			return true
		}
	}
	return false
}

// fired are the alerts of a node that have fired in the last minutes.
func (w *watcher) fired(t *testing.T, n *observed) (names []string) {
	t.Helper()
	for _, s := range w.query(t, `count_over_time(ALERTS{alertstate="firing"}[10m])`) {
		if s.Metric["instance"] == n.admin {
			names = append(names, s.Metric["alertname"])
		}
	}
	return names
}

// rules are the alerts that Prometheus has read.
func (w *watcher) rules(t *testing.T) (all []rule) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct {
				Name, Health string
				Labels       map[string]string
				Annotations  map[string]string
			}
		}
	}
	w.api(t, "rules", &data)
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" {
				t.Errorf("%s: health %s", r.Name, r.Health)
			}
			all = append(all, rule{name: r.Name, severity: r.Labels["severity"],
				summary: r.Annotations["summary"], description: r.Annotations["description"],
				runbook: r.Annotations["runbook"]})
		}
	}
	return all
}
