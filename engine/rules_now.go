//go:build !nextrules

package engine

const next = 0
