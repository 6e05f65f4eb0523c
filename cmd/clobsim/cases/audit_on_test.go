//go:build audit

package cases

const auditing = true
