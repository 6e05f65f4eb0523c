package main

import (
	"crypto/subtle"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"runtime"
	"time"

	"clobd/cmd/clobd/page"
	"clobd/cmd/clobd/role"
	"clobd/ingress/conn"
	"clobd/journal"
	"clobd/journal/disk"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminServer serves the operator. livez, readyz and metrics are open to everybody; package page
// decides who may see the operator's page. All other routes want the token and refuse requests with
// an Origin, because any web page can make a browser post to a loopback address.
func (n *node) adminServer() *http.Server {
	n.metrics.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "clobd_build_info",
			Help:        "1. The labels say which program runs.",
			ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
		}, func() float64 { return 1 }))
	n.watchman = &watchman{node: n}
	n.metrics.MustRegister(n.watchman.collectors()...)
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("{\"live\":true}\n"))
	})
	mux.HandleFunc("/readyz", n.readyz)
	mux.Handle("/metrics", promhttp.HandlerFor(n.metrics, promhttp.HandlerOpts{}))
	writes := n.door.Admin()
	guarded := func(next http.HandlerFunc) http.HandlerFunc { return n.guarded(next, writes) }
	mux.Handle("/admin/", writes)
	mux.HandleFunc("/admin/backup", guarded(n.posted(n.backupRoute)))
	mux.HandleFunc("/admin/checkpoint", guarded(n.posted(n.checkpointRoute)))
	mux.HandleFunc("/admin/scrub", guarded(n.posted(func(w http.ResponseWriter, r *http.Request) {
		n.scrubber.route(w, r)
	})))
	mux.HandleFunc("/cluster", membership{n}.clusterRoute)
	mux.HandleFunc("/admin/cluster/step-down", guarded(n.posted(membership{n}.stepDownRoute)))
	mux.HandleFunc("/admin/cluster/invite", guarded(n.posted(membership{n}.inviteRoute)))
	for _, what := range []role.Change{role.Promote, role.Remove} {
		mux.HandleFunc("/admin/cluster/"+string(what), guarded(n.posted(membership{n}.changeRoute(what))))
	}
	profileRoutes(mux, guarded)
	n.page = page.New(page.Options{Metrics: n.metrics, Ready: n.readyz, About: n.about,
		Recent: n.recent, Bearer: n.bearer, Refuse: writes})
	n.page.Route(mux)
	return &http.Server{Handler: n.door.Surviving(mux), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute, ConnContext: conn.WithPlace,
		ErrorLog: log.New(io.Discard, "", 0)} // what strangers can fill is no log
}

// readyz answers 503 before orders are taken, while disk or matcher hang and while stopping: the
// reasons say why, and Why is the first of them. Warnings leave the status alone.
func (n *node) readyz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	told := struct {
		Ready      bool        `json:"ready"`
		Why        string      `json:"why,omitempty"`
		Reasons    []symptom   `json:"reasons"`
		Warnings   []symptom   `json:"warnings"`
		Sequence   uint64      `json:"sequence"`
		Durability string      `json:"durability"`
		Version    string      `json:"version"`
		Checkpoint *checkpoint `json:"checkpoint,omitempty"`
		Lag        uint64      `json:"followerLag"`
		Disk       *diskStatus `json:"disk,omitempty"`
		Scrub      *scrubNote  `json:"scrub,omitempty"`
		*inCluster
	}{Durability: n.Durability, Version: version}
	serving, found := n.ready.Load(), n.watchman.look(time.Now())
	told.Reasons, told.Warnings = found.reasons, found.warnings
	if told.Ready = len(found.reasons) == 0; !told.Ready {
		told.Why = found.reasons[0].What
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if serving {
		told.Sequence = uint64(n.role.Board.Sequence())
		s := n.role.Follower.Status()
		told.Checkpoint, told.Lag, told.Disk = checkpointOf(&s), s.Lag, diskOf(n.space)
		told.Scrub = n.scrubber.status()
		if s := n.role.Standing(); s != nil {
			told.inCluster = &inCluster{s.Role, s.Leader, s.Term, s.Lag, s.Age}
		}
	}
	json.NewEncoder(w).Encode(told)
}

// inCluster is what a cluster's member adds.
type inCluster struct {
	Role   string `json:"role"`
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
	Lag    uint64 `json:"lag"`
	// Age is how old what is shown may be: the time since the leader was heard.
	Age float64 `json:"ageSeconds"`
}

type checkpoint struct {
	Sequence uint64  `json:"sequence"`
	Age      float64 `json:"ageSeconds"`
	Bytes    int64   `json:"bytes"`
	Took     float64 `json:"seconds"` // to write it; 0 if another process did
	Failures uint64  `json:"failures"`
	Error    string  `json:"error,omitempty"`
}

// checkpointOf returns nil if no checkpoint exists and none has failed.
func checkpointOf(s *journal.FollowerStatus) *checkpoint {
	c := checkpoint{Took: s.Took.Seconds(), Failures: s.Failures}
	if s.Error != nil {
		c.Error = s.Error.Error()
	}
	if s.Saved != nil {
		c.Sequence, c.Bytes = uint64(s.Saved.Head.Sequence), s.Saved.Bytes
		c.Age = time.Since(s.Saved.Created).Seconds()
	} else if s.Failures == 0 {
		return nil
	}
	return &c
}

type diskStatus struct {
	State   string `json:"state"`
	Free    int64  `json:"freeBytes"`
	Reserve int64  `json:"reserveBytes"`
	Ballast int64  `json:"ballastBytes"`
}

func diskOf(s *disk.Space) *diskStatus {
	if s == nil {
		return nil
	}
	is := s.Status()
	return &diskStatus{is.State.String(), is.Free, is.Reserve, is.Ballast}
}

// guarded lets operators in, and leaves all others to refuse, which counts their guesses.
func (n *node) guarded(next http.HandlerFunc, refuse http.Handler) http.HandlerFunc {
	want := n.bearer
	return func(w http.ResponseWriter, r *http.Request) {
		given := []byte(r.Header.Get("Authorization"))
		if len(r.Header.Values("Origin")) > 0 || subtle.ConstantTimeCompare(given, want) != 1 {
			refuse.ServeHTTP(w, r)
			return
		}
		conn.Keep(r.Context())
		next(w, r)
	}
}

func (n *node) posted(do http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost:
			tell(w, http.StatusMethodNotAllowed, problem{"method not allowed", "use POST"})
		case !n.ready.Load():
			tell(w, http.StatusTooEarly, problem{"service not ready",
				"the journal is being recovered: try again"})
		default:
			do(w, r)
		}
	}
}

type problem struct {
	Error string `json:"error"`
	Hint  string `json:"hint"`
}

func tell(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// about is what the page says of a node that listens.
func (n *node) about() page.About {
	return page.About{Version: version, Durability: n.Durability, Chain: n.ChainID,
		Listen: n.front.doors, Admin: n.front.page, Data: n.Data}
}
