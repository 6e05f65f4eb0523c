#!/usr/bin/env bash
# Dashboards, rules and the example of a scrape against Debian's Prometheus and real nodes. Debian's
# packages are unpacked into bin/debian and not installed: installing starts services.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly debian=$PWD/bin/debian
PATH=$debian/usr/bin:$PATH

get_tools() {
	local tool missing=0
	for tool in prometheus promtool prometheus-node-exporter; do
		command -v "$tool" >/dev/null || missing=1
	done
	((missing)) || return 0
	mkdir -p "$debian"
	cd "$debian"
	local packages=(prometheus prometheus-node-exporter)
	apt-get download -qq "${packages[@]}" 2>/dev/null ||
		{ apt-get update -qq && apt-get download -qq "${packages[@]}"; }
	local package
	for package in ./*.deb; do dpkg -x "$package" .; done
}

tests() {
	CLOBD_OPS=1 CLOBD_BINARY=$PWD/bin/clobd go test -vet=off -count=1 -v -timeout 15m ./scripts/ops
}

# In a subshell, which alone changes its folder.
tools() (get_tools)

step "Prometheus" tools
step "build" make --no-print-directory build
step "expressions, stalls and the ring" tests
