#!/usr/bin/env bash
# The tests of the packages in which a file differs from the last commit on main: what was committed
# since on another branch, what is not committed yet, and new files. Files in testdata, and others
# beside Go files, count for the nearest folder with Go files above them. Packages that only import
# a changed one are compiled, and not tested: make test does that.
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

changed() {
	local base
	base=$(git merge-base HEAD main 2>/dev/null) || base=HEAD
	git diff --name-only "$base" -- || exit
	git ls-files --others --exclude-standard
}

# package_of FILE: the nearest folder above it that holds Go files, none for the root's own files.
package_of() {
	local folder
	folder=$(dirname "$1")
	while [[ $folder != . ]]; do
		if [[ $folder != */testdata* ]] && compgen -G "$folder/*.go" >/dev/null; then
			echo "./$folder"
			return
		fi
		folder=$(dirname "$folder")
	done
}

packages() { changed | while read -r file; do package_of "$file"; done | sort -u; }

mapfile -t list < <(packages)
step "build" go build ./...
if ((${#list[@]} == 0)); then
	echo "no package differs from the last commit on main"
	exit
fi
printf 'changed: %s\n' "${list[*]}"
step "tests" go test -short -p "$((2 * $(nproc)))" -timeout 20m "${list[@]}"
