// Package ops holds what an operator loads into Prometheus and Grafana, and checks all of it
// against a real Prometheus that looks at a real node.
//
//	clobd.rules.yml ─────┐                        ┌── bots, a trader, a tail
//	prometheus.yml ──────┼──► Prometheus ──2 s──► node ──► /readyz
//	dashboards/*.json ───┘        │                 ▲
//	                              │                 └── its disk freezes, its matcher stands still,
//	     data, alerts ◄───────────┘                     its ring is full, its door attacked
//
// scripts/ops.sh gets Debian's Prometheus and runs everything. Without that, the tests of the
// documents alone run: they want no Prometheus.
//
// # Contract
//
// Every expression of every dashboard returns data while a node trades, and every series that a
// rule names is there, but for those that absent lists with the reason. Every alert fires in
// clobd.rules_test.yml and is silent there while all is well; what can be provoked in a running
// node fires there within 15 s, and /readyz tells of it. The disk is a real one that is frozen
// where the tests are root's; elsewhere the syncs of the journal wait.
//
// The dashboards are for Grafana 9 and later. The rules use nothing that Prometheus 2.42 lacks.
//
// Reading order: clobd.rules.yml, documents_test.go (what is asked of the documents), live_test.go
// (the story), cluster_test.go (the same for three voters), prometheus_test.go, node_test.go;
// units_test.go holds the units of three voters in cluster to those of a node alone.
package ops
