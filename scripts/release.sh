#!/usr/bin/env bash
# bin/release: stripped programs that need no library of the system, what is in them, under which
# licences, a Debian package, and the checksums of all. VERSION and GOFLAGS come from the Makefile.
#
#   release.sh                  everything
#   release.sh image            what an image of a container has in it
#   release.sh package FOLDER   the Debian package again, of the programs that are there
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly out=bin/release
export ARCH SOURCE_DATE_EPOCH VERSION
ARCH=$(go env GOARCH)
# The time of the commit, so that the same commit gives the same package.
SOURCE_DATE_EPOCH=$(git show -s --format=%ct HEAD 2>/dev/null || echo 946684800)
VERSION=${VERSION:-unknown}

# A package's version begins with a digit, and a later commit has a higher one: v1.2.3 is 1.2.3, a
# commit behind it 1.2.3+4.gabcdef, and one without any tag 0.COMMITS+gabcdef.
package_version() {
	local said count
	case $VERSION in
	v[0-9]*) said=${VERSION#v} ;;
	[0-9]*.*) said=$VERSION ;;
	*)
		count=$(git rev-list --count HEAD 2>/dev/null || echo 0)
		said=0.$count+g$VERSION
		;;
	esac
	said=${said/-/+}
	printf '%s\n' "${said//-/.}"
}

# Linked as a whole: it runs on every Linux of this kind of processor, and in an empty container.
# C's library would look names up with files of the system, so Go's resolver does that: main.go asks
# for it, and the linker's warning is about nothing.
programs() {
	go build -trimpath -o "$out/" -ldflags "-s -w -X main.version=$VERSION -linkmode external \
		-extldflags '-static -Wl,--no-warnings'" ./cmd/clobd ./cmd/clobench
}

papers() {
	local name shell
	mkdir -p "$out/completions"
	for name in clobd clobench; do
		go run ./scripts/release sbom "$out/$name" >"$out/$name.cdx.json"
		for shell in bash zsh fish; do
			"$out/$name" completion "$shell" >"$out/completions/$name.$shell"
		done
	done
	go run ./scripts/release notice ./cmd/clobd ./cmd/clobench >"$out/NOTICE"
	cp LICENSE "$out/"
}

# nfpm is no part of go.mod: its 58 modules would come to those of the project, and go mod tidy and
# govulncheck would read them each time. They are pinned beside it, with their checksums.
package() {
	VERSION=$(package_version) go tool -modfile=scripts/release/nfpm.mod nfpm package \
		--config scripts/release/nfpm.yaml --packager deb --target "$1/"
}

sums() {
	cd "$out"
	find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >../sums
	mv ../sums SHA256SUMS
	cd - >/dev/null
}

case ${1:-all} in
all)
	rm -rf "$out"
	step "programs" programs
	step "papers" papers
	step "package" package "$out"
	step "checksums" sums
	ls -l "$out"
	;;
image)
	programs
	papers
	;;
package) package "$2" ;;
*) echo "usage: scripts/release.sh [image | package FOLDER]" >&2; exit 2 ;;
esac
