//go:build !audit

package cases

const auditing = false
