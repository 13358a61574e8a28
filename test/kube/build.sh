#!/bin/sh
# Prints the path of a program, and builds it first if there is none yet for the
# state of its sources: "kube", the control plane, or with the argument "node"
# what makes Pods run. SYNCER_CACHE, by default ~/.cache/syncer-kube, may be kept
# from one machine to the next of the same kind, and may be removed at any time.
set -eu
cd "$(dirname "$0")"
go=${GO:-go}
case ${1:-kube} in
kube) name=kube package=. what='etcd and kube-apiserver' sources=$(find . -name '*.go' ! -name '*_test.go' ! -path './node/*' | LC_ALL=C sort) ;;
node) name=node package=./node what='kubelet, scheduler, controllers and proxy' sources=$(find node -name '*.go' | LC_ALL=C sort) ;;
*) echo "usage: build.sh [node]" >&2; exit 2 ;;
esac
key=$(cat build.sh go.mod go.sum $sources | sha256sum | cut -c1-16)
program=${SYNCER_CACHE:-$HOME/.cache/syncer-kube}/$key/$name
if [ ! -x "$program" ]; then
	version=$(sed -n 's,^\tk8s.io/kubernetes v,,p' go.mod)
	minor=${version#*.}
	echo "building $what $version, once: about 4 minutes where nothing of it is cached" >&2
	mkdir -p "${program%/*}"
	# Two may build at once; the program appears whole. On a terminal the time runs.
	trap 'rm -f "$program.$$"; [ -z "$clock" ] || { kill "$clock"; echo >&2; }' EXIT
	clock=
	if [ -t 2 ]; then
		(s=0; while sleep 1; do s=$((s + 1)); printf '\r%s s ' "$s"; done) >&2 &
		clock=$!
	fi
	# Without a version the API server takes itself for v0.0.0.
	flags="-X k8s.io/component-base/version.gitVersion=v$version"
	flags="$flags -X k8s.io/component-base/version.gitMajor=${version%%.*}"
	flags="$flags -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
	CGO_ENABLED=0 "$go" build -trimpath -ldflags="-s -w $flags" -o "$program.$$" "$package" >&2
	mv "$program.$$" "$program"
	trap - EXIT
	[ -z "$clock" ] || { kill "$clock"; echo >&2; }
fi
echo "$program"
