//go:build nextrules

package engine

const next = 1 // a version that only tests of upgrades know: the ranks of a book grow by two
