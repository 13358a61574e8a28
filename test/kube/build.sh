#!/bin/sh
# Prints the path of a program, and builds it first if there is none yet for the
# state of its sources: "kube", the control plane, or with the argument "node"
# what makes Pods run. SYNCER_CACHE, by default ~/.cache/syncer-kube, may be kept
# from one machine to the next of the same kind, and may be removed at any time.
# SYNCER_KUBE_VERSION is the version of Kubernetes, by default that of go.mod.
set -eu
cd "$(dirname "$0")"
go=${GO:-go}
case ${1:-kube} in
kube) name=kube package=. what='etcd and kube-apiserver' sources=$(find . -name '*.go' ! -name '*_test.go' ! -path './node/*' | LC_ALL=C sort) ;;
node) name=node package=./node what='kubelet, scheduler, controllers and proxy' sources=$(find node -name '*.go' | LC_ALL=C sort) ;;
*) echo "usage: build.sh [node]" >&2; exit 2 ;;
esac
default=$(sed -n 's,^\tk8s.io/kubernetes v,,p' go.mod)
version=${SYNCER_KUBE_VERSION:-$default}
# The go.sum of another version is made, and must have this SHA-256. A version that is
# not here fails with its own.
case $version in
"$default") sum= ;;
1.34.4) sum=6c0e993d78800b89326309f2ca93fcbc3925b9629b551c73f60797cf6138bdc9 ;;
1.35.4) sum=cf2a048ce7adb8926231b0850b079e5edae3b741bdb9143753d1490c583b4655 ;;
1.36.3) sum=f8d2af3f004938d1767300164d46f7756826ed01adcda0ccffeb2160ff4e6ce5 ;;
*) sum=none ;;
esac

# derive writes a go.mod for the version. The modules beside Kubernetes have the
# versions that its release requires.
derive() {
	{
		sed -n '/^require/q;p' go.mod
		echo "require k8s.io/kubernetes v$version"
		sed -n '/^replace (/,$p' go.mod | sed "s/ v0${default#1}\$/ v0${version#1}/"
	} >"$scratch/go.mod"
	# The sum stands for the checksum database.
	GONOSUMDB='*' "$go" mod tidy -modfile="$scratch/go.mod" >&2
	made=$(sha256sum <"$scratch/go.sum" | cut -d' ' -f1)
	if [ "$made" != "$sum" ]; then
		echo "the go.sum of Kubernetes $version has the SHA-256 $made, but build.sh expects $sum" >&2
		exit 1
	fi
}

key=$(cat build.sh go.mod go.sum $sources | sha256sum | cut -c1-16)
program=${SYNCER_CACHE:-$HOME/.cache/syncer-kube}/$version-$key/$name
if [ ! -x "$program" ]; then
	minor=${version#*.}
	echo "building $what $version, once: about 4 minutes where nothing of it is cached" >&2
	mkdir -p "${program%/*}"
	scratch=$(mktemp -d)
	# Two may build at once; the program appears whole. On a terminal the time runs.
	trap 'rm -rf "$program.$$" "$scratch"; [ -z "$clock" ] || { kill "$clock"; echo >&2; }' EXIT
	clock=
	if [ -t 2 ]; then
		(s=0; while sleep 1; do s=$((s + 1)); printf '\r%s s ' "$s"; done) >&2 &
		clock=$!
	fi
	modfile=
	[ -z "$sum" ] || { derive; modfile=-modfile=$scratch/go.mod; }
	# Without a version the API server takes itself for v0.0.0.
	flags="-X k8s.io/component-base/version.gitVersion=v$version"
	flags="$flags -X k8s.io/component-base/version.gitMajor=${version%%.*}"
	flags="$flags -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
	CGO_ENABLED=0 "$go" build -trimpath $modfile -ldflags="-s -w $flags" -o "$program.$$" "$package" >&2
	mv "$program.$$" "$program"
	rm -rf "$scratch"
	trap - EXIT
	[ -z "$clock" ] || { kill "$clock"; echo >&2; }
fi
echo "$program"
