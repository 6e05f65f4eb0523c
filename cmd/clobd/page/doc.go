// Package page is the operator's page of a node: a page, its JSON and live curves, all below / of
// the admin listener.
//
//	browser ── GET / ──────────► static/: HTML, CSS, JS          of every node the same
//	        ── GET /page.json ─► sheet ◄── /readyz, Recent ◄── log, door
//	        ── /curves/ ───────► statsviz ◄─┐  ▲
//	                                        └──┴── sampler ◄── Gather ◄── the node's metrics
//	gate: who may ask                              (1 s while somebody looks, else 5 s)
//
// # Contract
//
// A GET from this machine needs no token if it names a loopback host and no other page makes it.
// From elsewhere the JSON and the curves need it; DESIGN.md says how a browser shows it. Nothing
// here changes the node. Every figure has the name of its metric. The page asks no other host. The
// names and texts that strangers choose are sent as JSON and shown as text.
//
// All that the package keeps is bounded: samples of 70 s, 1,000 series of each, 50 warnings, 20
// orders, 4 sockets. A look makes the node gather its metrics at most once a second, however many
// look.
//
// # Reading order
//
// page.go (what the page is told), gate.go, sampler.go with spread.go (figures of 10 s and of a
// minute), recent.go, curves.go with plots.go; then static/page.js with alerts.js and units.js.
package page
