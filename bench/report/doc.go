// Package report makes pages for people out of the results of package bench: one file that opens
// offline, without a script and without a request to anywhere.
//
//	Report, Ramped, Compared, … ──► Chapter ──┐
//	                                          ├──► page.html + page.css ──► one HTML file
//	chart ──► gonum/plot ──► inline SVG ──────┘
//
//	histograms of a result ──► Percentiles ──► percentile logs (.hgrm), which HdrHistogram's
//	                                           plotter reads
//
// Contract: the page begins with the verdict. Every text of a result is shown as text, whatever it
// says. A percentile is told only if ten samples lie above it: p99.9 from 10,000 samples, p99.99
// from 100,000. Colours are variables of the style sheet, so that a picture follows the reader's
// light or dark setting.
//
// Reading order: chapter.go (what a page is made of), run.go and others.go (chapters of results),
// percentiles.go, chart.go (pictures), page.go (the file).
package report
