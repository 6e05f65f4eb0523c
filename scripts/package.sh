#!/usr/bin/env bash
# The release as it is made, and what becomes of it: papers that name all that is linked, a package
# that is installed, started, upgraded from the version before, removed and purged in a root without
# systemd, and the programs alone in an empty folder, as in a container. It needs Debian's dpkg and
# root.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

readonly out=bin/release
folder=$(mktemp -d)
root=$folder/root
node_pid=

leave() {
	[[ -z $node_pid ]] || kill -KILL "$node_pid" 2>/dev/null || true
	wait
	rm -rf "$folder"
	name_failure
}
trap leave EXIT

fail() { echo "$*"; return 1; }

# same A B WHAT: two sorted lists are the same.
same() { diff <(printf '%s\n' "$1") <(printf '%s\n' "$2") || fail "$3"; }

# The version before is that of a commit named in a file. A checkout without its history takes the
# programs of today under another number.
version_before() {
	local commit
	commit=$(<scripts/release/before)
	mkdir "$folder/old" "$folder/before"
	if git cat-file -e "$commit^{commit}" 2>/dev/null; then
		git archive "$commit" | tar -x -C "$folder/before"
		VERSION=v0.0.1 "$folder/before/scripts/release.sh" >/dev/null
		mv "$folder/before/bin/release"/*.deb "$folder/old/"
	else
		echo "SKIPPED: $commit is not in this history"
		VERSION=v0.0.1 scripts/release.sh package "$folder/old"
	fi
}

# Every module that Go has written into a program is in its document once, with a licence, and in
# the notice.
papers() {
	local name modules
	(cd "$out" && sha256sum --quiet --check SHA256SUMS)
	for name in clobd clobench; do
		[[ $("$out/$name" version 2>/dev/null || "$out/$name" --help) ]]
		modules=$(go version -m "$out/$name" | awk '$1 == "dep" { print $2 "@" $3 }' | sort)
		same "$modules" "$(jq -r '.components[] | select(.name != "std") | .name + "@" + .version' \
			"$out/$name.cdx.json" | sort)" "$name.cdx.json is not what is linked"
		jq -e 'all(.components[] | select(.name != "std"); (.licenses | length) > 0)' \
			"$out/$name.cdx.json" >/dev/null || fail "a module of $name has no licence"
		[[ $(jq -r '.metadata.component.hashes[0].content' "$out/$name.cdx.json") == \
			$(sha256sum "$out/$name" | cut -d' ' -f1) ]] || fail "$name.cdx.json is of another program"
		while IFS=@ read -r module version; do
			grep -qF "] $module $version:" "$out/NOTICE" || fail "NOTICE does not name $module"
		done <<<"$modules"
		! readelf -d "$out/$name" | grep NEEDED || fail "$name needs a library of the system"
		! readelf -S "$out/$name" | grep -F .debug_info || fail "$name is not stripped"
		! grep -qaF "$PWD" "$out/$name" || fail "$name has a path of this machine in it"
	done
	[[ $("$out/clobd" version) == "clobd $VERSION" ]] || fail "clobd has no version"
}

# The environment file names each flag of serve once, and nothing else; the unit is strict.
settings() {
	local score unit units=$root.units
	mkdir -p "$units"
	same "$("$out/clobd" serve --help | grep -o 'CLOBD_[A-Z_]*' | grep -v CLOBD_DATA | sort -u)" \
		"$(grep -o '^#CLOBD_[A-Z_]*' scripts/ops/clobd.env | tr -d '#' | sort)" \
		"clobd.env does not have the flags of serve"
	command -v systemd-analyze >/dev/null || { echo "SKIPPED: there is no systemd-analyze"; return; }
	# Alone, and as voters of a cluster. That the program is there is checked with the package.
	for unit in scripts/ops/clobd.service scripts/ops/cluster/*.service; do
		sed "s,=/usr/bin/clobd,=$(realpath "$out/clobd")," "$unit" >"$units/${unit##*/}"
		systemd-analyze verify "$units/${unit##*/}" || fail "$unit is no sound unit"
		score=$(systemd-analyze security --offline=true "$unit" |
			sed -n "s/.*exposure level for ${unit##*/}: \([0-9.]*\).*/\1/p")
		echo "exposure of ${unit##*/}: $score"
		awk -v score="$score" 'BEGIN { exit !(score != "" && score <= 2.0) }' || fail "that is above 2.0"
	done
}

# bring PROGRAM...: puts a program of this machine into the root, with its libraries.
bring() {
	local path
	for path in "$@"; do
		path=$(command -v "$path")
		cp --parents -L "$path" "$root/"
		ldd "$path" 2>/dev/null | grep -o '/[^ ]*' | xargs -r -I{} cp -n --parents -L {} "$root/"
	done
}

make_root() {
	mkdir -p "$root"/{bin,dev,etc,proc,tmp} "$root"/usr/{bin,sbin}
	mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers}
	bring sh mkdir chown chmod rm rmdir getent useradd userdel groupadd groupdel
	cp "$root$(command -v sh)" "$root/bin/sh"
	echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
	echo "root:x:0:" >"$root/etc/group"
	printf "%s\n" "#!/bin/sh" >"$root/usr/sbin/nologin"
	chmod +x "$root/usr/sbin/nologin"
	mknod "$root/dev/null" c 1 3 2>/dev/null || : >"$root/dev/null" # a file is as good here
	chmod 666 "$root/dev/null"
	printf '%s\n' "Package: passwd" "Status: install ok installed" "Version: 1" \
		"Architecture: $(dpkg --print-architecture)" "Maintainer: nobody" "Description: users" \
		>"$root/var/lib/dpkg/status"
	cp api/catalog/demo.jsonl "$folder/catalog.jsonl"
}

in_root() { chroot "$root" "$@"; }
pack() { dpkg --root="$root" --log=/dev/null "$@"; }

# start: the node as the unit starts it, for its user and with the lines of its environment file.
start() {
	local ids
	ids=$(sed -n 's/^clobd:[^:]*:\([0-9]*:[0-9]*\):.*/\1/p' "$root/etc/passwd")
	mapfile -t settings < <(grep -v '^#\|^$' "$root/etc/clobd/clobd.env")
	env -i PATH="$PATH" CLOBD_DATA=/var/lib/clobd "${settings[@]}" \
		chroot --userspec="$ids" --groups= "$root" /usr/bin/clobd serve 2>>"$folder/node.log" &
	node_pid=$!
	in_root /usr/bin/clobd ready --admin "127.0.0.1:$admin" --wait 60s ||
		{ tail -n 20 "$folder/node.log"; return 1; }
}

stop() {
	local status=0
	kill -TERM "$node_pid"
	wait "$node_pid" || status=$?
	node_pid=
	((status == 0)) || fail "SIGTERM was answered with exit status $status"
}

# resting: the bids of the market, as anybody sees them.
resting() { curl -sf "http://127.0.0.1:$public/book?token_id=$token" | jq -c .bids; }

install() {
	pack -i "$folder"/old/*.deb
	[[ -x $root/usr/bin/clobd && -x $root/usr/bin/clobench ]]
	[[ -f $root/usr/share/bash-completion/completions/clobd ]]
	[[ -z $(ls -A "$root/var/lib/clobd") ]] || fail "installing started something"
	[[ $(stat -c %a "$root/var/lib/clobd") == 700 ]] || fail "anybody may read the data"
	cp "$folder/catalog.jsonl" "$root/etc/clobd/"
	printf '%s\n' "CLOBD_LISTEN=127.0.0.1:$public" "CLOBD_ADMIN=127.0.0.1:$admin" CLOBD_FAUCET=1000 \
		CLOBD_CATALOG=/etc/clobd/catalog.jsonl CLOBD_DISK_BALLAST=0 >>"$root/etc/clobd/clobd.env"
	start
	in_root /usr/bin/clobench order --url "http://127.0.0.1:$public" --key "0x$(printf %064d 17)" \
		--token "$token" --side BUY --price 0.42 --size 10 >"$folder/order"
	[[ $(resting) == '[{"price":"0.42","size":"10"}]' ]] || fail "no order rests"
	stop
}

upgrade() {
	pack -i --force-confold "$out"/*.deb
	[[ $(dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Version}' clobd) != 0.0.1 ]]
	grep -q "^CLOBD_ADMIN=127.0.0.1:$admin$" "$root/etc/clobd/clobd.env" || fail "a setting is lost"
	[[ $(in_root /usr/bin/clobd version) == "clobd $VERSION" ]] || fail "the program is the old one"
	start
	[[ $(resting) == '[{"price":"0.42","size":"10"}]' ]] || fail "an order is lost"
	stop
}

removal() {
	pack -r clobd
	[[ ! -e $root/usr/bin/clobd && -f $root/etc/clobd/clobd.env ]] || fail "remove took too much"
	pack -P clobd
	[[ ! -e $root/etc/clobd/clobd.env ]] || fail "purge left a setting"
	"$out/clobd" verify --data "$root/var/lib/clobd" | tail -n 1
	pack -i "$out"/*.deb
	[[ -d $root/var/lib/clobd/journal ]] || fail "the data is gone"
	touch "$root/etc/clobd/purge-data"
	pack -P clobd
	[[ ! -e $root/var/lib/clobd && ! -e $root/etc/clobd/purge-data ]] || fail "purge left the data"
	! grep -q '^clobd:' "$root/etc/passwd" "$root/etc/group" || fail "purge left the user"
	pack -i "$out"/*.deb
	CLOBD_PURGE_DATA=yes pack -P clobd
	[[ ! -e $root/var/lib/clobd && ! -e $root/etc/clobd/clobd.env ]] || fail "purge left the data"
}

# An image has the node, a folder, and a user who is nobody: what the Dockerfile names. Its health
# check works with an admin listener that speaks TLS, too, by the settings of the node.
container() {
	local image=$folder/image
	local in_image=(env -i PATH="$PATH" CLOBD_DATA=/data)
	local secure=(CLOBD_ADMIN="0.0.0.0:$admin" CLOBD_TLS_CERT=/data/cert.pem
		CLOBD_TLS_KEY=/data/key.pem)
	mkdir -p "$image/data"
	cp "$out/clobd" "$image/clobd"
	chown 65532:65532 "$image/data"
	"${in_image[@]}" CLOBD_LISTEN="127.0.0.1:$public" CLOBD_ADMIN="127.0.0.1:$admin" \
		CLOBD_DISK_BALLAST=0 chroot --userspec=65532:65532 --groups= "$image" /clobd serve \
		2>"$folder/image.log" &
	node_pid=$!
	health() {
		"${in_image[@]}" CLOBD_ADMIN="127.0.0.1:$admin" chroot "$image" /clobd ready "$@"
	}
	health --wait 60s ||
		{ tail -n 20 "$folder/image.log"; return 1; }
	stop
	! health 2>/dev/null || fail "a node that is gone is ready"
	openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=clobd -addext subjectAltName=DNS:clobd \
		-days 1 -keyout "$image/data/key.pem" -out "$image/data/cert.pem" 2>/dev/null
	chown 65532:65532 "$image"/data/*.pem
	"${in_image[@]}" CLOBD_LISTEN="127.0.0.1:$public" CLOBD_DISK_BALLAST=0 CLOBD_ADMIN_PUBLIC=true \
		"${secure[@]}" chroot --userspec=65532:65532 --groups= "$image" /clobd serve \
		2>"$folder/image.log" &
	node_pid=$!
	"${in_image[@]}" "${secure[@]}" chroot "$image" /clobd ready --wait 60s ||
		{ tail -n 20 "$folder/image.log"; return 1; }
	stop
}

# first_book: what somebody who has unpacked the release waits for.
first_book() {
	rm -rf "$folder/demo"
	"$out/clobd" serve --demo --data "$folder/demo" --listen "127.0.0.1:$public" \
		--admin "127.0.0.1:$admin" --disk-ballast 0 2>"$folder/demo.log" >/dev/null &
	node_pid=$!
	await_book "http://127.0.0.1:$public" "$token" ||
		{ tail -n 20 "$folder/demo.log"; return 1; }
}

export VERSION=${VERSION:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
readonly token=35263113354378275961127750085197586402039788513316889322517161777186976249322
public=$(free_port)
admin=$(free_port)
step "tools" need jq curl openssl node npm
step "linter" modules scripts/release
step "release" scripts/release.sh
step "papers" papers
step "settings" settings
step "from the release to a book" in_time 3000 first_book stop
stop
step "Dockerfile" scripts/release/node_modules/.bin/dockerfile-utils lint scripts/ops/Dockerfile
if ((EUID != 0)) || ! command -v dpkg >/dev/null; then
	echo "SKIPPED: a package is tried out by root, with Debian's dpkg"
	exit 0
fi
step "the version before" version_before
step "a root without systemd" make_root
step "install, start" install
step "upgrade" upgrade
step "remove, purge" removal
step "as in a container" container
