package ops

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// absent are the series that a healthy node does not have, by what their selectors begin with.
func absent() map[string]string {
	return map[string]string{
		"clobd_stream_closes_total":                "the node has closed no socket: nobody reads too slowly",
		"clobd_entry_closes_total":                 "the node has closed no socket for orders",
		"clobd_tls_certificate_end_seconds":        "the node speaks no TLS: only its door with a certificate has one",
		"clobd_limits_hit_total":                   "the node has no limits: its bots and the load share an address",
		`clobd_http_requests_total{status=~"5.."}`: "every answer was of a node that is well",
		clusterSeries:                              "the node is alone: members of a cluster have these, and judgeCluster looks at them",
	}
}

// clusterSeries begins the names that only members of a cluster give.
const clusterSeries = "clobd_cluster_"

// exporter begins the names that node_exporter gives, and not the node.
const exporter = "node_"

// excused returns why an expression may be empty, or "".
func excused(expr string) string {
	for _, s := range seriesOf(expr) {
		for name, why := range absent() {
			if strings.HasPrefix(s, name) {
				return why
			}
		}
	}
	return ""
}

// expression is a query of a document.
type expression struct{ where, text string }

// dashboard is the part of a Grafana dashboard that is checked.
type dashboard struct {
	UID, Title, Description string
	SchemaVersion           int
	Templating              struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []json.RawMessage }
		}
	}
	Targets []struct {
		RefID, Expr string
		Datasource  struct{ UID string }
	}
}

// readDashboards reads all dashboards by the names of their files.
func readDashboards(t *testing.T) map[string]*dashboard {
	t.Helper()
	all := map[string]*dashboard{}
	files, err := filepath.Glob("dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		d := &dashboard{}
		if err := json.Unmarshal(read(t, file), d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = d
	}
	return all
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// queries are the expressions of all panels.
func queries(t *testing.T) (all []expression) {
	t.Helper()
	boards := readDashboards(t)
	for _, name := range slices.Sorted(maps.Keys(boards)) {
		for _, p := range boards[name].Panels {
			for _, target := range p.Targets {
				all = append(all, expression{name + ", " + p.Title + ", " + target.RefID, target.Expr})
			}
		}
	}
	return all
}

// rule is an alert of clobd.rules.yml.
type rule struct {
	name, expr, severity          string
	summary, description, runbook string
}

var (
	aKey    = regexp.MustCompile(`^( +)(?:- )?(\w+): *(.*)$`)
	inLabel = regexp.MustCompile(`^\{severity: (\w+)\}$`)
)

// readRules reads the part of YAML that the rules are written in: a key a line, its value there or,
// after >-, folded on deeper lines. TestLive holds the result against what Prometheus has read.
func readRules(t *testing.T) (all []rule) {
	t.Helper()
	lines := strings.Split(string(read(t, "clobd.rules.yml")), "\n")
	for i := 0; i < len(lines); i++ {
		found := aKey.FindStringSubmatch(lines[i])
		if found == nil {
			continue
		}
		key, value := found[2], found[3]
		if value == ">-" {
			var parts []string
			for i+1 < len(lines) && strings.HasPrefix(lines[i+1], found[1]+"  ") {
				i++
				parts = append(parts, strings.TrimSpace(lines[i]))
			}
			value = strings.Join(parts, " ")
		} else if text, err := strconv.Unquote(value); err == nil {
			value = text
		}
		if key == "alert" {
			all = append(all, rule{name: value})
		} else if len(all) > 0 {
			all[len(all)-1].set(key, value)
		}
	}
	return all
}

func (r *rule) set(key, value string) {
	switch key {
	case "expr":
		r.expr = value
	case "labels":
		if found := inLabel.FindStringSubmatch(value); found != nil {
			r.severity = found[1]
		}
	case "summary":
		r.summary = value
	case "description":
		r.description = value
	case "runbook":
		r.runbook = value
	}
}

// aSeries is a name of the node, of its runtime or of node_exporter, with its matchers.
var aSeries = regexp.MustCompile(`\b(?:(?:clobd|go|process|node)_\w+|up\b)(?:\{[^}]*\})?`)

// seriesOf are the selectors of an expression.
func seriesOf(expr string) []string { return aSeries.FindAllString(expr, -1) }

func TestDashboards(t *testing.T) {
	boards := readDashboards(t)
	want := []string{"cluster", "host", "order-path", "storage", "streams", "trading"}
	if got := slices.Sorted(maps.Keys(boards)); !slices.Equal(got, want) {
		t.Errorf("dashboards %v, want %v", got, want)
	}
	for name, d := range boards {
		if d.UID != "clobd-"+name || d.Title == "" || d.Description == "" || d.SchemaVersion < 36 {
			t.Errorf("%s: uid %q, title %q, schema %d", name, d.UID, d.Title, d.SchemaVersion)
		}
		var variables []string
		for _, v := range d.Templating.List {
			variables = append(variables, v.Name)
		}
		for _, v := range []string{"datasource", "job", "instance"} {
			if !slices.Contains(variables, v) {
				t.Errorf("%s: no variable %s", name, v)
			}
		}
		checkPanels(t, name, d.Panels)
	}
}

// checkPanels asks that each panel can be understood, and that none hides another one.
func checkPanels(t *testing.T, board string, panels []panel) {
	t.Helper()
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range panels {
		where := board + ", " + p.Title
		if ids[p.ID] || p.Title == "" {
			t.Errorf("%s: id %d is given twice, or there is no title", where, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies on %q, or outside", where, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		f := p.FieldConfig.Defaults
		if p.Description == "" || f.Unit == "" || len(f.Thresholds.Steps) == 0 || len(p.Targets) == 0 {
			t.Errorf("%s: a panel has a description, a unit, thresholds and an expression", where)
		}
		for _, target := range p.Targets {
			if target.Datasource.UID != "$datasource" {
				t.Errorf("%s: data source %q", where, target.Datasource.UID)
			}
			for _, s := range seriesOf(target.Expr) {
				if !strings.Contains(s, `{job="$job",instance=~"$instance"`) &&
					!strings.Contains(s, `{job="$node_job"`) {
					t.Errorf("%s: %s is of all nodes of all jobs", where, s)
				}
			}
		}
	}
}

// A runbook is a section of the README, and words of it.
var (
	aRunbook = regexp.MustCompile(`^README\.md#([a-z-]+) \((.+)\)$`)
	blanks   = regexp.MustCompile(`\s+`)
)

// sections are the sections of the README by the anchors of their headings, each on one line and
// without marks.
func sections(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, part := range strings.Split(string(read(t, "../../README.md")), "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		anchor := strings.ReplaceAll(strings.ToLower(heading), " ", "-")
		anchor = strings.ReplaceAll(anchor, ",", "")
		text = strings.NewReplacer("`", "", "*", "").Replace(text)
		all[anchor] = blanks.ReplaceAllString(text, " ")
	}
	return all
}

func TestRules(t *testing.T) {
	readme, played := sections(t), string(read(t, "clobd.rules_test.yml"))
	rules := readRules(t)
	if len(rules) < 20 {
		t.Fatalf("%d alerts were read", len(rules))
	}
	for _, r := range rules {
		if r.severity != "page" && r.severity != "ticket" {
			t.Errorf("%s: severity %q", r.name, r.severity)
		}
		if len(seriesOf(r.expr)) == 0 || r.summary == "" || !strings.Contains(r.summary, "$labels.instance") {
			t.Errorf("%s: expression %q, summary %q", r.name, r.expr, r.summary)
		}
		if r.name != "ClobdDown" && !strings.Contains(r.description, "$value") {
			t.Errorf("%s: the description does not tell the value: %q", r.name, r.description)
		}
		if found := aRunbook.FindStringSubmatch(r.runbook); found == nil {
			t.Errorf("%s: runbook %q", r.name, r.runbook)
		} else if !strings.Contains(readme[found[1]], found[2]) {
			t.Errorf("%s: section %s of the README does not say %q", r.name, found[1], found[2])
		}
		for what, form := range map[string]string{"fires": "exp_alerts:\n", "is silent": "exp_alerts: []\n"} {
			if !strings.Contains(played, "alertname: "+r.name+"\n        "+form) {
				t.Errorf("clobd.rules_test.yml does not show that %s %s", r.name, what)
			}
		}
	}
}

// TestPromtool lets Prometheus judge the documents.
func TestPromtool(t *testing.T) {
	promtool := tool(t, "promtool")
	for _, line := range [][]string{{"check", "rules", "clobd.rules.yml"},
		{"check", "config", "prometheus.yml"}, {"test", "rules", "clobd.rules_test.yml"}} {
		if said, err := exec.Command(promtool, line...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", line, err, said)
		}
	}
}

// TestMetrics: each metric that a document names is one of the node, once that has been used.
func TestMetrics(t *testing.T) {
	n := newNode(t, build(t))
	n.start(t)
	n.load(t)
	all := named(t)
	var missing map[string]string
	for end := time.Now().Add(2 * answerTime); time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
		if missing = n.lacks(t, all); len(missing) == 0 {
			break
		}
	}
	for name, where := range missing {
		t.Errorf("%s: the node has no %s", where, name)
	}
}

// named are the expressions of all documents, with those of variables.
func named(t *testing.T) []expression {
	t.Helper()
	all := queries(t)
	for _, r := range readRules(t) {
		all = append(all, expression{r.name, r.expr})
	}
	for _, d := range readDashboards(t) {
		for _, v := range d.Templating.List {
			all = append(all, expression{d.UID + ", variable " + v.Name, v.Definition})
		}
	}
	return all
}

// lacks returns the metrics that the node does not have, with where they are named.
func (n *observed) lacks(t *testing.T, all []expression) map[string]string {
	t.Helper()
	has := n.metrics(t)
	has["up"] = true // Prometheus' own
	missing := map[string]string{}
	for _, e := range all {
		for _, s := range seriesOf(e.text) {
			name, _, _ := strings.Cut(s, "{")
			if !has[name] && excused(name) == "" && !strings.HasPrefix(name, exporter) {
				missing[name] = e.where
			}
		}
	}
	return missing
}

// metrics are the names of the metrics that the node has.
func (n *observed) metrics(t *testing.T) map[string]bool {
	t.Helper()
	has := map[string]bool{}
	for line := range strings.Lines(n.get(t, "/metrics").body) {
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		has[name] = true
	}
	return has
}
