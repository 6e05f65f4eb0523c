// Command release makes the papers of a release: what is linked into its programs, and under which
// licences.
//
//	programs ─► what Go has written into them ─► sbom   ─► CycloneDX, one document a program
//	go list -deps ─► folders of packages ───────► notice ─► every licence with its text
//
// scripts/release.sh calls it for what it builds, and scripts/package.sh tries out the result. The
// file before names the commit of the last release, from which an upgrade must keep the data:
// whoever makes a release writes its commit there.
//
// # Contract
//
// A package's licence is that of the nearest folder above it that has one, because modules carry
// code of others in folders of their own; of a package with C below it, what is there counts, too.
// A text that is not known, or a licence that may not go into a program under Apache-2.0, is an
// error: the release ends with it. Exceptions are named one by one, with the reason.
//
// Read main.go, licences.go, sbom.go.
package main
