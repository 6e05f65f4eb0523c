// Package lean sends prepared HTTP requests with as little CPU time as it can, because the server
// that is measured runs on the same machine.
package lean
