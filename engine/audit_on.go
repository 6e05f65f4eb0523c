//go:build audit

package engine

const auditing = true
