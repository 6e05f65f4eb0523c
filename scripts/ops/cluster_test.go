package ops

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"clobd/bench/trader"
	"clobd/engine"
	"clobd/scripts/setting"
)

// newCluster makes three voters; none of them runs yet.
func newCluster(t *testing.T, binary string) []*observed {
	t.Helper()
	init := []string{"cluster", "init"}
	var members []*observed
	for i, name := range []string{"a", "b", "c"} {
		n, address := newNode(t, binary), freePort(t)
		n.more = []string{"--cluster", name + "@" + address}
		if i == 0 {
			init = append(init, "--data", n.data, "--cluster", name+"@"+address)
		} else {
			init = append(init, "--peers", name+"@"+address+"="+n.data)
		}
		members = append(members, n)
	}
	if said, err := exec.Command(binary, init...).CombinedOutput(); err != nil {
		t.Fatalf("cluster init: %v\n%s", err, said)
	}
	return members
}

// assemble starts a cluster, and waits until all members take orders.
func assemble(t *testing.T, members []*observed) {
	t.Helper()
	for _, n := range members {
		n.launch(t)
	}
	for _, n := range members {
		n.await(t)
	}
}

// TestCluster: each metric of a cluster that a document names is one of each member.
func TestCluster(t *testing.T) {
	setting.Full(t, "three nodes start")
	members := newCluster(t, build(t))
	assemble(t, members)
	names := map[string]string{}
	for _, e := range named(t) {
		for _, s := range seriesOf(e.text) {
			if name, _, _ := strings.Cut(s, "{"); strings.HasPrefix(name, clusterSeries) {
				names[name] = e.where
			}
		}
	}
	if len(names) < 10 {
		t.Fatalf("%d metrics of a cluster are named", len(names))
	}
	for _, n := range members {
		has := n.metrics(t)
		for name, where := range names {
			if !has[name] {
				t.Errorf("%s: %s has no %s", where, filepath.Base(n.more[1]), name)
			}
		}
	}
}

// trickle places an order every 50 ms until the test ends.
func trickle(t *testing.T, c *trader.Client) {
	token, _ := engine.ParseToken(demoToken)
	salt := uint64(0)
	go repeat(t, 50*time.Millisecond, func() {
		salt++
		body, _, err := c.Sign(trader.Limit{Token: token, Price: 100, Size: 5 * engine.Unit, Type: "GTC",
			Salt: salt})
		if err == nil {
			var resp fasthttp.Response
			_ = c.Do(http.MethodPost, "/order", body, &resp)
		}
	})
}

// judgeCluster waits until each expression about a cluster has data while it trades. Then two of
// its voters stand still: the third hears of no leader, and goes on when they do.
func (w *watcher) judgeCluster(t *testing.T, members []*observed) {
	assemble(t, members)
	trickle(t, members[2].trader(t, 4))
	var pending []expression
	for _, e := range queries(t) {
		if strings.Contains(e.text, clusterSeries) {
			pending = append(pending, e)
		}
	}
	for _, r := range readRules(t) {
		for _, s := range seriesOf(r.expr) {
			if strings.HasPrefix(s, clusterSeries) {
				pending = append(pending, expression{r.name, s})
			}
		}
	}
	count, lonely := len(pending), members[2]
	fill := strings.NewReplacer("$job", "clobd", "$__rate_interval", "8s", "$instance",
		strings.Join([]string{members[0].admin, members[1].admin, members[2].admin}, "|"))
	for end := time.Now().Add(dataTime); len(pending) > 0 && time.Now().Before(end); {
		pending = slices.DeleteFunc(pending, func(e expression) bool {
			return len(w.query(t, fill.Replace(e.text))) > 0
		})
		time.Sleep(time.Second)
	}
	for _, e := range pending {
		t.Errorf("%s has no data: %s", e.where, fill.Replace(e.text))
	}
	t.Logf("figures: cluster_expressions=%d with_data=%d", count, count-len(pending))
	if names := w.fired(t, lonely); slices.Contains(names, "ClobdNoLeader") {
		t.Error("a member of a cluster that is well hears of no leader")
	}
	signal := func(s syscall.Signal) {
		for _, n := range members[:2] {
			if err := syscall.Kill(n.pid, s); err != nil {
				t.Error(err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	begun := time.Now()
	defer signal(syscall.SIGCONT)
	w.fires(t, "ClobdNoLeader", lonely, begun)
	lonely.says(t, http.StatusServiceUnavailable, "clobd_cluster_leader_silent_seconds",
		"no leader heard for ")
	signal(syscall.SIGCONT)
	w.calms(t, lonely, "ClobdNoLeader")
}
